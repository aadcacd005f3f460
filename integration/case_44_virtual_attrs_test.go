package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCase44VirtualAttributes(t *testing.T) {
	t.Parallel()
	needTool(t, "rsync")
	r := newRepo(t)
	for _, p := range []string{"f", "d/g", "big"} {
		write(t, r.path(p), strings.Repeat(p, 300_000/len(p)))
	}
	mkdir(t, r.path("e"))
	ok(t, os.Symlink("f", r.path("l")))
	for _, p := range []string{"f", "d", "e"} {
		ok(t, unix.Setxattr(r.path(p), "user.mine", []byte("value of "+p), 0))
	}
	ok(t, unix.Setxattr(r.path("f"), "user.empty", nil, 0))
	ok(t, unix.Setxattr(r.path("f"), "user.bole.hash", []byte("forged"), 0))
	ok(t, unix.Setxattr(r.path("d"), "user.bole.anything", []byte("forged"), 0))
	// Old times: rsync takes two times in one second for equal.
	r.setTimes()
	id := r.commit()
	want := readTree(t, r.dir)
	for _, p := range []string{"f", "d"} {
		for name := range want[p].attrs {
			if strings.HasPrefix(name, "user.bole.") {
				delete(want[p].attrs, name)
			}
		}
	}
	m := r.mount(id)
	sameTree(t, "listed attributes", want, readTree(t, m.dir), sameOpts{})
	for p, n := range want {
		if n.kind == "link" {
			continue // the kernel keeps user.* off symbolic links
		}
		if got := getAttr(t, m.path(p), "user.bole.revision"); got != id {
			t.Errorf("%s: user.bole.revision is %q", p, got)
		}
		if n.kind == "file" {
			hashesMatch(t, m.dir, p)
		}
	}
	checkAttrErrors(t, m)

	// Copies carry the real ones and nothing else.
	out := scratch(t)
	tool(t, "cp", "-a", m.path("f"), filepath.Join(out, "f"))
	tool(t, "rsync", "-aX", m.dir+"/", filepath.Join(out, "tree")+"/")
	ok(t, unix.Removexattr(r.path("f"), "user.bole.hash"))
	ok(t, unix.Removexattr(r.path("d"), "user.bole.anything"))
	copied := readTree(t, filepath.Join(out, "tree"))
	sameTree(t, "rsync -aX", want, copied, sameOpts{})
	if got := readTree(t, out)["f"].attrs; fmt.Sprint(got) != fmt.Sprint(want["f"].attrs) {
		t.Errorf("cp -a copies %v, want %v", got, want["f"].attrs)
	}
	if d := tool(t, "rsync", "-aniX", "--checksum", "--delete", "--exclude=/.bole", r.dir+"/", m.dir+"/"); d != "" {
		t.Errorf("rsync finds differences:\n%s", d)
	}
	// A copy back into the working directory is no change but the name.
	tool(t, "cp", "-a", m.path("f"), r.path("copy"))
	r.wantStatus("copy")
	r.commit()
	m.umount()
	second := r.mount("HEAD")
	if got := readTree(t, second.dir)["copy"].attrs; fmt.Sprint(got) != fmt.Sprint(want["f"].attrs) {
		t.Errorf("the copy was committed with %v", got)
	}
	second.umount()
}

// checkAttrErrors asks for what is not there and sets what must not be set.
func checkAttrErrors(t *testing.T, m *mnt) {
	t.Helper()
	for _, p := range []string{"f", "d", "e", "."} {
		for name, want := range map[string]unix.Errno{
			"user.absent": unix.ENODATA, "user.bole.nothing": unix.ENODATA, "security.selinux": unix.EOPNOTSUPP,
			"security.capability": unix.EOPNOTSUPP, "system.posix_acl_access": unix.EOPNOTSUPP, "trusted.x": unix.EOPNOTSUPP,
		} {
			if _, err := unix.Lgetxattr(m.path(p), name, make([]byte, 256)); err != want {
				t.Errorf("getxattr %s of %s: %v, want %v", name, p, err, want)
			}
		}
		for _, name := range []string{"user.bole.hash", "user.bole.revision", "user.bole.new", "user.mine"} {
			if err := unix.Lsetxattr(m.path(p), name, []byte("x"), 0); err != unix.EPERM && err != unix.EROFS {
				t.Errorf("setxattr %s of %s: %v, want EPERM or EROFS", name, p, err)
			}
			if err := unix.Lremovexattr(m.path(p), name); err != unix.EPERM && err != unix.EROFS {
				t.Errorf("removexattr %s of %s: %v, want EPERM or EROFS", name, p, err)
			}
		}
	}
	// The sizes of a short buffer are asked for before the value.
	n, err := unix.Lgetxattr(m.path("f"), "user.bole.hash", nil)
	if err != nil || n != 64 {
		t.Errorf("the size of user.bole.hash is %d, %v", n, err)
	}
	if _, err := unix.Lgetxattr(m.path("f"), "user.bole.hash", make([]byte, 10)); err != unix.ERANGE {
		t.Errorf("a buffer of 10 bytes: %v, want ERANGE", err)
	}
	if _, err := unix.Llistxattr(m.path("f"), make([]byte, 3)); err != unix.ERANGE {
		t.Errorf("listing into 3 bytes: %v, want ERANGE", err)
	}
}
