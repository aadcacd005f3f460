package snapshot

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bole/merkle"
)

func TestInit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "deep")
	ok(t, Init(dir, InitOptions{Branch: "trunk"}))
	wantErr(t, Init(dir, InitOptions{}), ErrExists, dir)
	w := openWork(t, dir)
	head, err := w.Head()
	ok(t, err)
	if head != (Head{Branch: "trunk"}) || w.Bare() || w.Root() != dir || w.Dir() != filepath.Join(dir, DirName) {
		t.Fatalf("HEAD %+v, root %s", head, w.Root())
	}
	w.wantClean()
	left, err := os.ReadDir(dir)
	ok(t, err)
	if len(left) != 1 {
		t.Fatalf("init left %v", left)
	}
	for _, o := range []InitOptions{{NodeStore: "files"}, {Branch: "bad name"}, {Contents: filepath.Join(dir, "no", "such", "folder")}} {
		other := filepath.Join(t.TempDir(), "r")
		if err := Init(other, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
		if left, err := os.ReadDir(other); err == nil && len(left) > 0 {
			t.Errorf("a failed init left %v", left)
		}
	}
	ok(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o644))
	if err := Init(filepath.Join(dir, "file"), InitOptions{}); err == nil {
		t.Error("a file became a repository")
	}
}

// TestInitAtOnce: of several only one makes the repository, and it is whole.
func TestInitAtOnce(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "r")
	var wg sync.WaitGroup
	var mu sync.Mutex
	made := 0
	for range 6 {
		wg.Go(func() {
			err := Init(dir, InitOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made++
			} else if !errors.Is(err, ErrExists) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if made != 1 {
		t.Fatalf("%d repositories were made", made)
	}
	w := openWork(t, dir)
	w.write("f", "x")
	w.save("first")
	w.wantSound()
}

func TestFind(t *testing.T) {
	root := initWork(t)
	ok(t, os.MkdirAll(filepath.Join(root, "a/b"), 0o755))
	link := filepath.Join(t.TempDir(), "link")
	ok(t, os.Symlink(filepath.Join(root, "a"), link))
	for _, start := range []string{root, filepath.Join(root, "a/b"), filepath.Join(root, DirName, "db"), link, filepath.Join(link, "b")} {
		if got, err := Find(start); err != nil || got != root {
			t.Errorf("from %s: %s, %v", start, got, err)
		}
	}
	ok(t, Init(filepath.Join(root, "a"), InitOptions{}))
	if got, err := Find(filepath.Join(root, "a/b")); err != nil || got != filepath.Join(root, "a") {
		t.Errorf("the inner one is not found: %s, %v", got, err)
	}
	_, err := Find(t.TempDir())
	wantErr(t, err, ErrNoRepository)
	if _, err := Find(filepath.Join(root, "nope")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("from nowhere: %v", err)
	}
	plain := t.TempDir() // a file or a link of the name is no repository
	ok(t, os.WriteFile(filepath.Join(plain, DirName), nil, 0o644))
	_, err = Find(plain)
	wantErr(t, err, ErrNoRepository)
}

func TestOpenRefuses(t *testing.T) {
	_, err := Open(t.TempDir(), OpenOptions{})
	wantErr(t, err, ErrNoRepository)
	for name, harm := range map[string]func(dir string) error{
		"config.toml": func(dir string) error { return os.Remove(filepath.Join(dir, "config.toml")) },
		"unknown": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "config.toml"), []byte("[core]\nnode_store = \"unknown\"\n"), 0o644)
		},
		"contents": func(dir string) error { return os.RemoveAll(filepath.Join(dir, "contents")) },
		"data.mdb": func(dir string) error { return os.Remove(filepath.Join(dir, "db/data.mdb")) },
	} {
		root := initWork(t)
		ok(t, harm(filepath.Join(root, DirName)))
		if _, err := Open(root, OpenOptions{}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("without %s: %v", name, err)
		}
	}
}

// TestRepositoryReachedThroughALink is the same repository.
func TestRepositoryReachedThroughALink(t *testing.T) {
	root := initWork(t)
	link := filepath.Join(t.TempDir(), "link")
	ok(t, os.Symlink(root, link))
	w := openWork(t, link)
	if w.Root() != root {
		t.Fatalf("root %s, want %s", w.Root(), root)
	}
}

// TestReadOnlyDisk opens a repository where nothing can be written.
func TestReadOnlyDisk(t *testing.T) {
	disk := mountImage(t)
	root := filepath.Join(disk, "r")
	ok(t, Init(root, InitOptions{}))
	first, err := Open(root, OpenOptions{})
	ok(t, err)
	w := &work{t, first}
	w.write("f", "x")
	id := w.save("first")
	ok(t, first.Close())
	if out, err := exec.Command("mount", "-o", "remount,ro", disk).CombinedOutput(); err != nil {
		t.Skipf("remount: %v: %s", err, out)
	}
	r, err := Open(root, OpenOptions{ReadOnly: true})
	ok(t, err)
	ro := &work{t, r}
	ro.wantPaths(id, "f")
	ro.wantSound()
	ro.wantClean()
	for what, err := range map[string]error{
		"add":    func() error { _, err := ro.tryAdd(); return err }(),
		"commit": func() error { _, err := ro.tryCommit("x"); return err }(),
		"update": func() error { _, err := ro.Update(ctx, CheckoutOptions{}); return err }(),
		"branch": ro.CreateBranch("x", id, false),
	} {
		if err == nil {
			t.Errorf("%s went well", what)
		}
	}
	l, err := ro.Lease(LeaseInfo{Mountpoint: "/mnt"}) // in the user's own folder
	ok(t, err)
	if list, err := ro.Leases(); err != nil || len(list) != 1 || list[0].Mountpoint != "/mnt" {
		t.Errorf("leases %v, %v", list, err)
	}
	ok(t, l.Close())
	ok(t, r.Close())
}

func TestInfo(t *testing.T) {
	w := newWork(t)
	i, err := w.Info()
	ok(t, err)
	if i.Head != "main" || i.Commit != "" || i.Files != 0 || i.Root != w.root {
		t.Errorf("an empty repository: %+v", i)
	}
	w.write("d/f", "12345")
	w.write("large", bigText("large"))
	id := w.save("first")
	if i, err = w.Info(); err != nil {
		t.Fatal(err)
	}
	if i.Commit != id.String() || i.Files != 2 || i.Dirs != 1 || i.Bytes != 200_005 || i.Branches != 1 ||
		i.Contents.Contents != 2 || i.Contents.Whole != 1 || i.Contents.Packs != 1 || i.Contents.Bytes < 200_005 ||
		i.Database.Tables["nodes"].Entries != 3 || i.Database.FileSize == 0 || i.Database.LastTxn == 0 {
		t.Errorf("info: %+v", i)
	}
	w.mustCheckout(id.String())
	if i, err := w.Info(); err != nil || i.Head != id.String() {
		t.Errorf("on no branch: %q, %v", i.Head, err)
	}
}

// TestCommitMeta keeps who, when and why.
func TestCommitMeta(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	w.add()
	author := mustIdentity(t, "Ada <ada@example.org>")
	author.When, author.Zone = -5, -90
	id, c, err := w.CommitStaged(ctx, Meta{Message: "subject\n\nbody\n", Author: author})
	ok(t, err)
	got, err := w.ReadCommit(id)
	ok(t, err)
	if got.Author != author || got.Committer.Name != "Test" || got.Message != "subject\n\nbody\n" || c.Tree != got.Tree || len(got.Parents) != 0 {
		t.Errorf("%+v", got)
	}
	w.write("f", "y")
	w.add()
	_, _, err = w.CommitStaged(ctx, Meta{Message: "a\x00b"})
	wantErr(t, err, merkle.ErrBadCommit)
	w.wantStaged("M f")
}
