package snapshot

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// mountImage makes an ext4 file system in a file and mounts it for the length of the test.
func mountImage(t *testing.T, options ...string) string {
	t.Helper()
	needRoot(t)
	image := filepath.Join(t.TempDir(), "image")
	ok(t, os.WriteFile(image, nil, 0o600))
	ok(t, os.Truncate(image, 64<<20))
	dir := filepath.Join(t.TempDir(), "disk")
	ok(t, os.Mkdir(dir, 0o755))
	for _, args := range [][]string{
		append(append([]string{"mkfs.ext4", "-q"}, options...), image),
		{"mount", "-o", "loop", image, dir},
	} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%v: %v: %s", args, err, out)
		}
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	return dir
}

// workOn makes a repository in a folder of a disk.
func workOn(t *testing.T, dir string) *work {
	t.Helper()
	ok(t, Init(dir, InitOptions{}))
	return openWork(t, dir)
}

// TestAttributesThatDoNotFit: ext4 holds about 4 KiB of attributes a file. What
// does not fit is named, everything else is restored, and what is missing on
// disk is no change that anybody made.
func TestAttributesThatDoNotFit(t *testing.T) {
	dir := filepath.Join(mountImage(t), "r")
	w := workOn(t, dir)
	list := []merkle.Attr{{Name: "user.com.apple.ResourceFork", Value: []byte(strings.Repeat("R", 60_000))}, {Name: "user.small", Value: []byte("fits")}}
	attrs, err := merkle.EncodeAttrs(list)
	ok(t, err)
	h := merkle.NodeHash(attrs)
	w.write("f", "content")
	w.write("d/in", "x")
	w.save("first")
	head, err := w.Head()
	ok(t, err)
	id := w.putTree(head.Commit, map[merkle.Hash][]byte{h: attrs}, map[string]merkle.Entry{
		"f": {Kind: merkle.KindFile, Perm: 0o644, Size: 7, Hash: merkle.ContentHash([]byte("content")), Mtime: 1, Attrs: h},
		"d": {Kind: merkle.KindDir, Perm: 0o755, Mtime: 2, Attrs: h},
	})
	var problems []Problem
	rev, err := w.Resolve(id.String())
	ok(t, err)
	_, err = w.Checkout(ctx, rev, CheckoutOptions{Problem: func(p Problem) { problems = append(problems, p) }})
	ok(t, err)
	if len(problems) != 2 {
		t.Fatalf("problems: %v", problems)
	}
	for _, p := range problems {
		if p.Path != "f" && p.Path != "d" || !strings.Contains(p.Reason, "user.com.apple.ResourceFork") {
			t.Fatalf("problem: %+v", p)
		}
	}
	for _, p := range []string{"f", "d"} {
		if got := diskAttrs(t, w.at(p)); got != "user.small=fits;" {
			t.Fatalf("%s has %s", p, got)
		}
	}
	w.wantClean()
	w.mustCheckout("main")
	w.wantClean()
	if got := diskAttrs(t, w.at("f")); got != "" {
		t.Fatalf("f has %s", got)
	}
}

// putTree commits a tree made of entries alone, past add, on no branch.
func (w *work) putTree(parent merkle.Hash, nodes map[merkle.Hash][]byte, entries map[string]merkle.Entry) merkle.Hash {
	w.t.Helper()
	store := merkle.NewMemStore()
	tree := buildEntries(w.t, store, entries)
	ok(w.t, eachNode(store, tree.Hash, nodes))
	return w.putCommit(merkle.Commit{Tree: tree.Hash, Totals: tree.Totals(), RootPerm: 0o755, RootMtime: 3, Parents: []merkle.Hash{parent}}, nodes)
}

// TestFoldingFileSystem: a commit whose names a file system cannot keep apart is
// refused before anything is written, naming both.
func TestFoldingFileSystem(t *testing.T) {
	disk := mountImage(t, "-O", "casefold", "-E", "encoding=utf8")
	dir := filepath.Join(disk, "r")
	ok(t, os.Mkdir(dir, 0o755))
	if out, err := exec.Command("chattr", "+F", dir).CombinedOutput(); err != nil {
		t.Skipf("chattr +F: %v: %s", err, out)
	}
	w := workOn(t, dir)
	w.write("keep", "x")
	w.write("sub/keep", "x")
	first := w.save("first")
	for name, c := range map[string][]string{
		"case":        {"README", "readme"},
		"form":        {"caf\u00e9", "cafe\u0301"},
		"folder":      {"Sub2/a", "sub2/b"},
		"below":       {"sub/X", "sub/x"},
		"repository":  {".bo\u200dle/config.toml", ".bole"}, // a joiner that the file system does not see
		"repository2": {"x/.bole2", "x/.BOLE2"},
	} {
		t.Run(name, func(t *testing.T) {
			entries := map[string]merkle.Entry{}
			for _, p := range c {
				if p != ".bole" {
					entries[p] = merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Size: 1, Hash: merkle.ContentHash([]byte("x")), Mtime: 1}
				}
				if d := parentPath(p); d != "" {
					entries[d] = merkle.Entry{Kind: merkle.KindDir, Perm: 0o755, Mtime: 1}
				}
			}
			entries["before"] = merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Size: 1, Hash: merkle.ContentHash([]byte("x")), Mtime: 1}
			id := w.putTree(first, map[merkle.Hash][]byte{}, entries)
			disk := readDisk(t, w.root)
			for _, force := range []bool{false, true} {
				_, err := w.checkout(id.String(), force)
				var fold *FoldError
				if !errors.As(err, &fold) {
					t.Fatalf("error %v", err)
				}
				pair := []string{fold.Path, fold.Other}
				for _, p := range c {
					if p, _, _ := strings.Cut(p, "/config"); pair[0] != p && pair[1] != p && parentPath(p) != pair[0] && parentPath(p) != pair[1] {
						t.Fatalf("%q are named, not %q", pair, p)
					}
				}
				wantTree(t, "the disk", readDisk(t, w.root), disk)
			}
		})
	}
	// A name that only changes its letters goes there and back.
	ok(t, os.Rename(w.at("keep"), w.at("KEEP")))
	w.wantUnstaged("D keep", "? KEEP")
	second := w.save("second")
	for _, id := range []merkle.Hash{first, second, first} {
		w.mustCheckout(id.String())
		wantTree(t, "disk", readDisk(t, w.root), readCommitTree(t, w.Repo, id))
		w.wantClean()
	}
}

// TestFoldingFolder: one folder alone folds.
func TestFoldingFolder(t *testing.T) {
	disk := mountImage(t, "-O", "casefold", "-E", "encoding=utf8")
	w := workOn(t, filepath.Join(disk, "r"))
	w.mkdir("plain")
	w.mkdir("folds")
	if out, err := exec.Command("chattr", "+F", w.at("folds")).CombinedOutput(); err != nil {
		t.Skipf("chattr +F: %v: %s", err, out)
	}
	w.mkdir("folds/in")
	w.write("plain/A", "1")
	w.write("plain/a", "2")
	w.write("folds/in/b", "3")
	first := w.save("first")
	file := merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Size: 1, Hash: merkle.ContentHash([]byte("1")), Mtime: 1}
	dir := merkle.Entry{Kind: merkle.KindDir, Perm: 0o755, Mtime: 1}
	bad := w.putTree(first, map[merkle.Hash][]byte{}, map[string]merkle.Entry{
		"a": file, "plain": dir, "plain/B": file, "plain/b": file, "folds": dir, "folds/in": dir, "folds/in/B": file, "folds/in/b": file})
	before := readDisk(t, w.root)
	_, err := w.checkout(bad.String())
	wantErr(t, err, ErrFolds, "folds/in/b", "folds/in/B")
	wantTree(t, "the disk", readDisk(t, w.root), before)
	good := w.putTree(first, map[merkle.Hash][]byte{}, map[string]merkle.Entry{
		"a": file, "plain": dir, "plain/B": file, "plain/b": file, "folds": dir, "folds/in": dir, "folds/in/b": file})
	w.mustCheckout(good.String())
	w.wantClean()
}

// TestDiskWithoutAttributes: a file system that has none makes no complaint.
func TestDiskWithoutAttributes(t *testing.T) {
	needRoot(t)
	dir := filepath.Join(t.TempDir(), "disk")
	ok(t, os.Mkdir(dir, 0o755))
	if err := unix.Mount("none", dir, "ramfs", 0, ""); err != nil {
		t.Skip("no ramfs: ", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	w := workOn(t, filepath.Join(dir, "r"))
	if err := unix.Setxattr(w.root, "user.x", nil, 0); err == nil {
		t.Skip("ramfs holds attributes")
	}
	w.write("d/f", "x")
	id := w.save("first")
	w.wantClean()
	w.remove("d")
	w.mustCheckout(id.String(), true)
	w.wantClean()
}
