package fs

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
	"bole/snapshot"
)

func smallTree(t testing.TB) (string, merkle.Hash) {
	b := newBuilder(t)
	b.dirAt("d", 0o755)
	b.file("d/f", []byte("content"))
	return b.build()
}

// TestUnmount: a mount in use goes on; one that is not ends, and so does its daemon.
func TestUnmount(t *testing.T) {
	dir, id := smallTree(t)
	m := mount(t, dir, id)
	f, err := os.Open(m.path("d/f"))
	check(t, err)
	if _, err := m.ask("unmount"); err == nil || !strings.Contains(err.Error(), ErrBusy.Error()) {
		t.Fatalf("with an open file: %v", err)
	}
	if got, err := os.ReadFile(m.path("d/f")); err != nil || string(got) != "content" {
		t.Errorf("afterwards: %q %v", got, err)
	}
	check(t, f.Close())
	if _, err := m.ask("unmount"); err != nil {
		t.Fatal(err)
	}
	if err := m.cmd.Wait(); err != nil {
		t.Errorf("daemon: %v\n%s", err, m.log)
	}
	if es, err := os.ReadDir(m.dir); err != nil || len(es) != 0 {
		t.Errorf("mount point: %v %v", es, err)
	}
	if m.log.String() != "" {
		t.Errorf("log: %s", m.log)
	}
}

// TestDeadDaemon: its mount is known as dead, and taken off by the next one.
func TestDeadDaemon(t *testing.T) {
	dir, id := smallTree(t)
	m := mount(t, dir, id)
	held, err := os.Open(m.path("d/f"))
	check(t, err)
	defer held.Close()
	if Dead(m.dir) {
		t.Error("a living mount is taken for dead")
	}
	check(t, m.cmd.Process.Kill())
	_ = m.cmd.Wait()
	if _, err := os.ReadDir(m.dir); !errors.Is(err, unix.ENOTCONN) {
		t.Fatalf("list: %v", err)
	}
	if !Dead(m.dir) {
		t.Error("a dead mount is not seen")
	}
	again := mount(t, dir, id, func(c *daemonConfig) { c.Mountpoint = m.dir })
	if got, err := os.ReadFile(again.path("d/f")); err != nil || string(got) != "content" {
		t.Errorf("%q %v", got, err)
	}
	check(t, again.cmd.Process.Kill())
	_ = again.cmd.Wait()
	check(t, Detach(m.dir))
	if es, err := os.ReadDir(m.dir); err != nil || len(es) != 0 || Dead(m.dir) {
		t.Errorf("after Detach: %v %v", es, err)
	}
	if err := Detach(m.dir); err == nil {
		t.Error("what is not mounted is taken off")
	}
}

// TestBadMountpoints are refused before anything is mounted.
func TestBadMountpoints(t *testing.T) {
	dir, id := smallTree(t)
	repo, err := snapshot.Open(dir, snapshot.OpenOptions{})
	check(t, err)
	defer func() { check(t, repo.Close()) }()
	place := t.TempDir()
	check(t, os.WriteFile(place+"/file", nil, 0o644))
	check(t, os.Symlink(dir, place+"/link"))
	check(t, os.Mkdir(dir+"/.bole/inside", 0o755))
	for mp, want := range map[string]error{
		place + "/none":          os.ErrNotExist,
		place + "/file":          unix.ENOTDIR,
		dir:                      ErrOverRepository,
		dir + "/":                ErrOverRepository,
		place + "/link":          ErrOverRepository,
		filepath.Dir(dir):        ErrOverRepository,
		"/":                      ErrOverRepository,
		dir + "/.bole":           ErrOverRepository,
		dir + "/.bole/inside":    ErrOverRepository,
		dir + "/.bole/contents":  ErrOverRepository,
		place + "/link/.bole/db": ErrOverRepository,
	} {
		s, err := Mount(repo, Options{Mountpoint: mp, Commit: id})
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", mp, err, want)
		}
		if err == nil {
			_ = s.Unmount()
		}
	}
	if _, err := Mount(repo, Options{Mountpoint: place, Commit: merkle.Hash{1}}); err == nil {
		t.Error("an unknown commit is mounted")
	}
	for path, want := range map[[2]string]bool{{"/a", "/a"}: true, {"/a/b", "/a"}: true, {"/ab", "/a"}: false, {"/a", "/a/b"}: false, {"/a", "/"}: true, {"/", "/"}: true} {
		if got := within(path[0], path[1]); got != want {
			t.Errorf("%s within %s: %v", path[0], path[1], got)
		}
	}
}

// TestMountInWorkingDirectory: below the repository's folder, beside .bole, is allowed.
func TestMountInWorkingDirectory(t *testing.T) {
	dir, id := smallTree(t)
	m := mount(t, dir, id, func(c *daemonConfig) { c.Mountpoint = filepath.Join(dir, "M") })
	if got, err := os.ReadFile(m.path("d/f")); err != nil || string(got) != "content" {
		t.Errorf("%q %v", got, err)
	}
}

func TestUserAllowOther(t *testing.T) {
	p := filepath.Join(t.TempDir(), "fuse.conf")
	if userAllowOther(p) {
		t.Error("no file allows it")
	}
	for text, want := range map[string]bool{"": false, "# user_allow_other\n": false, "mount_max = 5\nuser_allow_other": true, " user_allow_other \n": true, "user_allow_others\n": false} {
		check(t, os.WriteFile(p, []byte(text), 0o644))
		if got := userAllowOther(p); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}

// TestReadyQuickly counts what a mount costs before anybody looks at it: it
// does not depend on the size of the commit.
func TestMountReadsNothingAhead(t *testing.T) {
	dir, id := flatTree(t, 20, 50, 10)
	m := mount(t, dir, id)
	s := m.stats()
	for op, n := range s.Requests {
		if op != "INIT" && op != "GETATTR" || n != 1 {
			t.Errorf("%d %s", n, op)
		}
	}
	if s.Rows != 1 {
		t.Errorf("%d rows", s.Rows)
	}
}
