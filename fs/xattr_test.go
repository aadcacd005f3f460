package fs

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

func listxattr(t testing.TB, path string) string {
	t.Helper()
	n, err := unix.Llistxattr(path, nil)
	check(t, err)
	buf := make([]byte, n)
	if n > 0 {
		n, err = unix.Llistxattr(path, buf)
		check(t, err)
	}
	names := strings.Split(strings.TrimSuffix(string(buf[:n]), "\x00"), "\x00")
	sort.Strings(names)
	return strings.Join(names, " ")
}

func getxattr(path, name string) (string, error) {
	buf := make([]byte, 70_000)
	n, err := unix.Lgetxattr(path, name, buf)
	return string(buf[:max(n, 0)]), err
}

func xattrTree(t testing.TB) (string, merkle.Hash, merkle.Hash) {
	b := newBuilder(t)
	big := string(noise(3, 60_000))
	list := b.attrs(merkle.Attr{Name: "user.DosStream.x:$DATA", Value: []byte{0, 1}}, merkle.Attr{Name: "user.empty"}, merkle.Attr{Name: "user.fork", Value: []byte(big)})
	plain := b.file("plain", []byte("p"))
	b.file("rich", []byte("r"), func(e *merkle.Entry) { e.Attrs = list })
	b.set("dir", merkle.Entry{Kind: merkle.KindDir, Perm: 0o755, Attrs: list})
	b.symlink("link", "plain")
	b.root.RootAttrs = list
	dir, id := b.build()
	return dir, id, plain
}

func TestExtendedAttributes(t *testing.T) {
	dir, id, plain := xattrTree(t)
	m := mount(t, dir, id)
	const names = "user.DosStream.x:$DATA user.empty user.fork"
	for path, want := range map[string]string{"plain": "", "rich": names, "dir": names, "": names, "link": ""} {
		if got := listxattr(t, m.path(path)); got != want {
			t.Errorf("list of %q: %q, want %q", path, got, want)
		}
	}
	for _, path := range []string{"rich", "dir", ""} {
		for name, want := range map[string]string{"user.DosStream.x:$DATA": "\x00\x01", "user.empty": "", "user.fork": string(noise(3, 60_000))} {
			if got, err := getxattr(m.path(path), name); err != nil || got != want {
				t.Errorf("%s of %q: %d bytes, %v", name, path, len(got), err)
			}
		}
		if n, err := unix.Lgetxattr(m.path(path), "user.fork", nil); n != 60_000 || err != nil {
			t.Errorf("size alone: %d %v", n, err)
		}
		if _, err := unix.Lgetxattr(m.path(path), "user.fork", make([]byte, 100)); err != unix.ERANGE {
			t.Errorf("no room: %v", err)
		}
		if _, err := unix.Llistxattr(m.path(path), make([]byte, 5)); err != unix.ERANGE {
			t.Errorf("no room for the list: %v", err)
		}
	}
	for _, path := range []string{"plain", "rich", "dir"} {
		for name, want := range map[string]error{
			"user.none": unix.ENODATA, "user.bole.none": unix.ENODATA, "user.bole.": unix.ENODATA, "security.capability": unix.EOPNOTSUPP,
			"security.selinux": unix.EOPNOTSUPP, "system.posix_acl_access": unix.EOPNOTSUPP, "system.posix_acl_default": unix.EOPNOTSUPP,
			"trusted.x": unix.EOPNOTSUPP,
		} {
			if _, err := getxattr(m.path(path), name); err != want {
				t.Errorf("%s of %s: %v, want %v", name, path, err, want)
			}
		}
	}
	for _, path := range []string{"plain", "rich", "dir", ""} {
		if got, err := getxattr(m.path(path), attrRevision); err != nil || got != id.String() {
			t.Errorf("revision of %q: %q %v", path, got, err)
		}
	}
	if got, err := getxattr(m.path("plain"), attrHash); err != nil || got != plain.String() {
		t.Errorf("hash: %q %v", got, err)
	}
	f := open(t, dir, id)
	if got, err := getxattr(m.dir, attrHash); err != nil || got != f.root.Hash.String() {
		t.Errorf("hash of the root: %q %v", got, err)
	}
	if got, err := getxattr(m.path("link"), attrHash); err != unix.ENODATA {
		t.Errorf("hash of a symlink: %q %v", got, err)
	}
}

// TestCopiesCarryNoVirtualAttributes: what cp -a makes has the stored ones alone.
func TestCopiesCarryNoVirtualAttributes(t *testing.T) {
	dir, id, _ := xattrTree(t)
	m := mount(t, dir, id)
	to := t.TempDir() // a tmpfs or ext4: both hold user.* attributes of this size or refuse them
	out, err := exec.Command("cp", "-a", m.path("plain"), to).CombinedOutput()
	if err != nil {
		t.Fatalf("cp: %v: %s", err, out)
	}
	if got := listxattr(t, to+"/plain"); got != "" {
		t.Errorf("copied: %q", got)
	}
	if data, err := os.ReadFile(to + "/plain"); err != nil || !bytes.Equal(data, []byte("p")) {
		t.Errorf("copied %q %v", data, err)
	}
	before := m.stats()
	for range 100 {
		_, _ = getxattr(m.path("plain"), "user.none")
	}
	if d := m.since(before); d["GETXATTR"] != 100 {
		t.Errorf("requests: %s", fmt.Sprint(d))
	}
}
