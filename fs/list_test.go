package fs

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// dirent is one entry of getdents64. off is the position after it.
type dirent struct {
	ino  uint64
	off  int64
	kind uint8
	name string
}

// getdents reads one buffer of a directory.
func getdents(t testing.TB, fd int, size int) []dirent {
	t.Helper()
	buf := make([]byte, size)
	n, err := unix.Getdents(fd, buf)
	if err != nil {
		t.Fatalf("getdents with %d bytes: %v", size, err)
	}
	var out []dirent
	for buf = buf[:n]; len(buf) > 0; {
		le := binary.LittleEndian // struct linux_dirent64 of this machine
		reclen := le.Uint16(buf[16:])
		out = append(out, dirent{le.Uint64(buf), int64(le.Uint64(buf[8:])), buf[18], strings.TrimRight(string(buf[19:reclen]), "\x00")})
		buf = buf[reclen:]
	}
	return out
}

func openDir(t testing.TB, path string) int {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// list reads a whole directory with one size of buffer.
func list(t testing.TB, path string, size int) []dirent {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	check(t, err)
	defer unix.Close(fd)
	return rest(t, fd, size)
}

func rest(t testing.TB, fd, size int) []dirent {
	t.Helper()
	var all []dirent
	for {
		some := getdents(t, fd, size)
		if len(some) == 0 {
			return all
		}
		all = append(all, some...)
	}
}

// longNames is a directory of n names of 1 to 255 bytes.
func longNames(b *builder, dir string, n int) map[string]bool {
	want := map[string]bool{".": true, "..": true}
	for i := range n {
		name := fmt.Sprintf("%d", i)
		name += strings.Repeat("x", min(i%256, 255-len(name)))
		b.file(dir+"/"+name, []byte{1})
		want[name] = true
	}
	return want
}

func TestListingWithAnyBuffer(t *testing.T) {
	b := newBuilder(t)
	b.dirAt("d", 0o755)
	want := longNames(b, "d", 500)
	dir, id := b.build()
	for _, size := range []int{300, 1024, 4096, 32768, 1 << 20} {
		m := mount(t, dir, id) // nothing cached
		for pass := range 2 {
			seen := map[string]bool{}
			for _, e := range list(t, m.path("d"), size) {
				if seen[e.name] || !want[e.name] {
					t.Fatalf("buffer %d, pass %d: %q twice or unknown", size, pass, e.name)
				}
				seen[e.name] = true
			}
			if len(seen) != len(want) {
				t.Errorf("buffer %d, pass %d: %d names, want %d", size, pass, len(seen), len(want))
			}
		}
	}
}

func TestSeekdir(t *testing.T) {
	b := newBuilder(t)
	b.dirAt("d", 0o755)
	longNames(b, "d", 500)
	dir, id := b.build()
	for _, cached := range []bool{false, true} {
		m := mount(t, dir, id)
		all := list(t, m.path("d"), 32768)
		if !cached {
			m = mount(t, dir, id)
		}
		fd := openDir(t, m.path("d"))
		for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(all)) {
			size := []int{300, 1024, 32768}[i%3]
			pos := int64(0)
			if i > 0 {
				pos = all[i-1].off
			}
			if _, err := unix.Seek(fd, pos, unix.SEEK_SET); err != nil {
				t.Fatal(err)
			}
			if got := getdents(t, fd, size); len(got) == 0 || got[0] != all[i] {
				t.Fatalf("cached %v: position %d gives %v, want %v", cached, pos, got, all[i])
			}
		}
		// The end, beyond it, and back to the beginning.
		for pos, want := range map[int64]int{all[len(all)-1].off: 0, 1 << 40: 0, 0: len(all), all[10].off: len(all) - 11} {
			_, err := unix.Seek(fd, pos, unix.SEEK_SET)
			check(t, err)
			if got := rest(t, fd, 1024); len(got) != want {
				t.Errorf("cached %v: %d entries from %d, want %d", cached, len(got), pos, want)
			}
		}
	}
}

// TestListingRequests: only the first reply of a listing carries
// attributes while nobody asks for any.
func TestListingRequests(t *testing.T) {
	b := newBuilder(t)
	b.dirAt("d", 0o755)
	const n = 10_000
	for i := range n {
		b.file(fmt.Sprintf("d/file-%05d", i), []byte{1})
	}
	dir, id := b.build()
	m := mount(t, dir, id)
	before := m.stats()
	if got := len(list(t, m.path("d"), 32768)); got != n+2 {
		t.Fatalf("%d entries", got)
	}
	d := m.since(before)
	if d["READDIRPLUS"] != 1 || d["READDIR"] == 0 || d["LOOKUP"] > 1 || d["GETATTR"] != 0 {
		t.Errorf("names alone: %v", d)
	}
	m.settles("listing again", func() {
		if got := len(list(t, m.path("d"), 32768)); got != n+2 {
			t.Fatalf("%d entries", got)
		}
	})

	m = mount(t, dir, id)
	before = m.stats()
	fd := openDir(t, m.path("d"))
	for {
		some := getdents(t, fd, 32768)
		if len(some) == 0 {
			break
		}
		for _, e := range some { // as ls -l does
			var st unix.Stat_t
			check(t, unix.Fstatat(fd, e.name, &st, unix.AT_SYMLINK_NOFOLLOW))
			for _, name := range []string{"security.selinux", "system.posix_acl_access"} {
				_, err := unix.Lgetxattr(m.path("d", e.name), name, nil)
				if err != unix.EOPNOTSUPP {
					t.Fatalf("%s: %v", name, err)
				}
				break // ls stops asking after this errno
			}
		}
	}
	d = m.since(before)
	if d["GETATTR"]+d["LOOKUP"]+d["STATX"] >= 10 {
		t.Errorf("names with attributes: %v", d)
	}
	if r := m.stats().Rows; r != 2 {
		t.Errorf("%d rows for one directory and the root", r)
	}
}
