package integration

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCase07ZeroBytes(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, name := range []string{"a", "b", "sub/c"} {
		write(t, r.path(name), "")
	}
	ok(t, os.Chmod(r.path("b"), 0o755))
	id := r.commit()
	want := readTree(t, r.dir)
	r.wantClean()
	r.fsck()
	if got := r.must("cat", "HEAD:a"); got != "" {
		t.Errorf("cat gives %q", got)
	}
	for _, io := range []string{"auto", "stateless", "passthrough"} {
		m := r.mount(id, "--io", io)
		sameTree(t, "mount --io "+io, want, readTree(t, m.dir), sameOpts{})
		fd, err := unix.Open(m.path("a"), unix.O_RDONLY, 0)
		ok(t, err)
		if _, err := unix.Mmap(fd, 0, 0, unix.PROT_READ, unix.MAP_SHARED); err != unix.EINVAL {
			t.Errorf("--io %s: mapping 0 bytes: %v, want EINVAL", io, err)
		}
		unix.Close(fd)
		copied := scratch(t) + "/c"
		tool(t, "cp", "--sparse=always", m.path("sub/c"), copied)
		tool(t, "cp", "-a", m.path("b"), copied)
		if read(t, copied) != "" {
			t.Errorf("--io %s: the copy is not empty", io)
		}
		m.umount()
	}
	other := r.elsewhere(id)
	other.wantClean()
	sameTree(t, "checkout", want, readTree(t, other.dir), sameOpts{})

	// From empty to full and back.
	write(t, r.path("a"), "now full")
	second := r.commit()
	write(t, r.path("a"), "")
	third := r.commit()
	for rev, content := range map[string]string{id: "", second: "now full", third: ""} {
		r.must("checkout", rev)
		if got := read(t, r.path("a")); got != content {
			t.Errorf("checkout of %s gives %q, want %q", rev, got, content)
		}
		m := r.mount(rev)
		if got := read(t, m.path("a")); got != content {
			t.Errorf("mount of %s gives %q, want %q", rev, got, content)
		}
		m.umount()
	}
	r.fsck()
}
