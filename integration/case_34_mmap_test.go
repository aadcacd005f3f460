package integration

import (
	"bytes"
	"os"
	"runtime/debug"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// mapRead maps size bytes of a file for reading, shared.
func mapRead(t testing.TB, path string, size int) []byte {
	t.Helper()
	f, err := os.Open(path)
	ok(t, err)
	defer f.Close()
	m, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		t.Fatalf("map %s: %v", path, err)
	}
	t.Cleanup(func() { _ = unix.Munmap(m) })
	return m
}

// faults says whether reading one byte raises SIGBUS.
func faults(m []byte, at int) (bus bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { bus = recover() != nil }()
	sink = m[at]
	return false
}

var sink byte

func TestCase34SharedMaps(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	big := bytes.Repeat([]byte("big file that is stored whole. "), 70_000)
	contents := map[string][]byte{"small": []byte("small file"), "pages": bytes.Repeat([]byte("p"), 2*4096+1), "big": big}
	for name, c := range contents {
		write(t, r.path(name), string(c))
	}
	write(t, r.path("empty"), "")
	r.commit()
	for _, io := range []string{"auto", "stateless", "passthrough", "handles"} {
		t.Run(io, func(t *testing.T) {
			r := *r
			r.t = t
			m := r.mount("HEAD", "--io", io)
			for name, c := range contents {
				whole := (len(c) + 4095) / 4096 * 4096
				// One page more than the file has.
				data := mapRead(t, m.path(name), whole+4096)
				if !bytes.Equal(data[:len(c)], c) {
					t.Errorf("%s: the map differs", name)
				}
				for i := len(c); i < whole; i++ {
					if data[i] != 0 {
						t.Errorf("%s: byte %d behind the end is %d", name, i, data[i])
						break
					}
				}
				if !faults(data, whole) {
					t.Errorf("%s: no SIGBUS beyond the last page", name)
				}
				if faults(data, 0) || faults(data, whole-1) {
					t.Errorf("%s: SIGBUS inside the file", name)
				}
				ok(t, unix.Munmap(data))
			}
			f, err := os.Open(m.path("empty"))
			ok(t, err)
			if _, err := unix.Mmap(int(f.Fd()), 0, 0, unix.PROT_READ, unix.MAP_SHARED); err != unix.EINVAL {
				t.Errorf("a map of 0 bytes: %v, want EINVAL", err)
			}
			ok(t, f.Close())
			mapHoldsMount(t, m, big)
			m.umount()
		})
	}
}

// mapHoldsMount: a mapped file makes the mount busy; the refused umount leaves
// it serving, and pages are shared by processes.
func mapHoldsMount(t *testing.T, m *mnt, big []byte) {
	t.Helper()
	data := mapRead(t, m.path("big"), len(big))
	checkRefused(t, bole(t, "umount", m.dir))
	if !bytes.Equal(data, big) {
		t.Error("the map differs after the refused umount")
	}
	second := m.during(func() {
		var self *account
		if got := self.helper(t, "touchpages", m.path("big")); got["map"] != "ok" {
			t.Errorf("another process cannot map: %v", got)
		}
	})
	if second["READ"] != 0 {
		t.Errorf("the second process reads again: %v", second)
	}
	ok(t, unix.Munmap(data))
	time.Sleep(10 * time.Millisecond)
}
