package integration

import (
	"fmt"
	"testing"

	"bole/internal/treegen"
)

// auto takes passthrough where files are large, stateless where they are small.
func TestAutoChoosesTheMode(t *testing.T) {
	t.Parallel()
	small := smallRepo(t)
	m := small.mount("HEAD")
	if io := fmt.Sprint(findMount(listMounts(t), m.dir)["io"]); io != "stateless" && io != "handles" {
		t.Errorf("small files are mounted with io %s", io)
	}
	m.umount()
	large := newRepo(t)
	for i := range 3 {
		ok(t, treegen.Large(large.path(fmt.Sprint(i)), 2*mib, uint64(i)))
	}
	large.commit()
	m = large.mount("HEAD")
	if io := fmt.Sprint(findMount(listMounts(t), m.dir)["io"]); io != "passthrough" {
		t.Errorf("large files are mounted with io %s", io)
	}
	m.umount()
}

// In passthrough the kernel reads the stored file itself.
func TestPassthroughSendsNoRead(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	ok(t, treegen.Large(r.path("big"), 16*mib, 1))
	write(t, r.path("small"), "small")
	r.commit()
	want := read(t, r.path("big"))
	m := r.mount("HEAD", "--io", "passthrough")
	for range 3 {
		got := m.during(func() {
			if read(t, m.path("big")) != want {
				t.Error("big has other content")
			}
		})
		if got["READ"] != 0 {
			t.Errorf("reading a whole file sends %v", got)
		}
	}
	if got := m.during(func() { read(t, m.path("small")) }); got["READ"] == 0 {
		t.Errorf("reading a packed file sends no READ: the counters do not count: %v", got)
	}
	// Both kinds open at once, many times over, by name and through maps.
	for range 50 {
		data := mapRead(t, m.path("big"), 16*mib)
		if string(data[5*mib:5*mib+100]) != want[5*mib:5*mib+100] || read(t, m.path("small")) != "small" {
			t.Fatal("mixed reads differ")
		}
	}
	m.umountMapped(t)
}

// umountMapped: maps of this process end with the test, after the mount; so
// the mount is refused as busy and left to the clean-up.
func (m *mnt) umountMapped(t testing.TB) {
	t.Helper()
	checkRefused(t, bole(t, "umount", m.dir))
}
