package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// bigText is more than goes into a pack.
func bigText(s string) string { return strings.Repeat(s, 200_000/len(s)) }

// source makes a tree outside any working directory, on the disk of the repository.
func source(t *testing.T) (dir string, put func(path, data string)) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "src")
	ok(t, os.Mkdir(dir, 0o755))
	return dir, func(path, data string) {
		t.Helper()
		p := filepath.Join(dir, path)
		ok(t, os.MkdirAll(filepath.Dir(p), 0o755))
		ok(t, os.WriteFile(p, []byte(data), 0o644))
	}
}

func (w *work) tryImport(o ImportOptions) (ImportResult, error) {
	o.Meta.Message = "import"
	return w.Import(ctx, o)
}

func (w *work) mustImport(o ImportOptions) ImportResult {
	w.t.Helper()
	res, err := w.tryImport(o)
	ok(w.t, err)
	return res
}

// mixed fills a source with a bit of everything.
func mixed(t *testing.T, src string, put func(path, data string)) {
	t.Helper()
	put("small", "small")
	put("d/large", bigText("large"))
	put("d/large again", bigText("large"))
	put("d/e/other", bigText("other"))
	ok(t, os.Mkdir(filepath.Join(src, "empty"), 0o750))
	ok(t, os.Symlink("../outside", filepath.Join(src, "link")))
	ok(t, os.Symlink(strings.Repeat("l", 300), filepath.Join(src, "long")))
	ok(t, os.Chmod(filepath.Join(src, "d/e"), 0o700))
	ok(t, unix.Setxattr(filepath.Join(src, "small"), "user.k", []byte("v"), 0))
	ok(t, os.Chtimes(filepath.Join(src, "d/large"), time.Time{}, time.Unix(-5, 7)))
	ok(t, os.Chmod(src, 0o711))
}

func TestImport(t *testing.T) {
	for _, move := range []bool{false, true} {
		for _, dest := range []string{"", "in/some/folder"} {
			t.Run(fmt.Sprintf("move %v to %q", move, dest), func(t *testing.T) {
				w := newWork(t, InitOptions{Bare: true})
				src, put := source(t)
				mixed(t, src, put)
				want := readDisk(t, src)
				var plan Plan
				res := w.mustImport(ImportOptions{Source: src, Dest: dest, Move: move, Plan: func(p Plan) { plan = p }})
				wantTree(t, "what was imported", readSubtree(t, w.Repo, res.ID, dest), want)
				toWrite := map[bool]uint64{false: 600_005, true: 5}[move] // what is linked needs no room
				if plan.Files != 4 || plan.Bytes != toWrite || plan.Free == 0 {
					t.Fatalf("plan: %+v", plan)
				}
				if move && (res.Linked != 400_000 || res.Remain != 0) || !move && res.Linked != 0 || res.Bytes < 600_005 {
					t.Fatalf("result: %+v", res)
				}
				left := readDisk(t, src)
				if move && len(left) != 1 {
					t.Fatalf("left in the source: %v", left)
				} else if !move {
					wantTree(t, "the source", left, want)
				}
				w.wantSound()
				if n := w.ledgerRecords(); n != 0 {
					t.Fatalf("%d records are left of the import", n)
				}
				head, err := w.Head()
				ok(t, err)
				if head.Branch != "main" || head.Commit != res.ID {
					t.Fatalf("HEAD is %+v", head)
				}
			})
		}
	}
}

// TestImportOver lays a tree over what is there: it replaces and deletes nothing else.
func TestImportOver(t *testing.T) {
	w := newWork(t)
	w.write("at/kept", "kept")
	w.write("at/changed", "old")
	w.write("at/file", "becomes a folder")
	w.write("at/folder/in", "becomes a file")
	w.write("beside", "beside")
	w.save("first")
	src, put := source(t)
	put("changed", "new")
	put("file/in", "in")
	put("folder", "file")
	put("new", "new")
	res := w.mustImport(ImportOptions{Source: src, Dest: "at"})
	w.wantPaths(res.ID, "at", "at/changed", "at/file", "at/file/in", "at/folder", "at/kept", "at/new", "beside")
	if res.Files != 4+1 { // the folder too
		t.Fatalf("result: %+v", res)
	}
	_, err := w.tryImport(ImportOptions{Source: src, Dest: "at"})
	wantErr(t, err, ErrNothing)
	_, err = w.tryImport(ImportOptions{Source: src, Dest: "at/kept"})
	wantErr(t, err, ErrNotDir, "at/kept")
	_, err = w.tryImport(ImportOptions{Source: src, Dest: "at/kept/below"})
	wantErr(t, err, ErrNotDir, "at/kept")
	if n := w.ledgerRecords(); n != 0 {
		t.Fatalf("%d records are left of the imports", n)
	}
}

func TestImportRefuses(t *testing.T) {
	w := newWork(t)
	w.write("d/f", "x")
	w.save("first")
	src, put := source(t)
	put("f", "x")
	for _, dir := range []string{w.root, w.at("d"), w.at(".bole"), filepath.Dir(w.root), w.ContentsDir(), "/"} {
		_, err := w.tryImport(ImportOptions{Source: dir})
		wantErr(t, err, ErrInside, dir)
	}
	ok(t, os.Symlink(w.root, filepath.Join(src, "link")))
	_, err := w.tryImport(ImportOptions{Source: filepath.Join(src, "link")})
	wantErr(t, err, ErrInside)
	for _, dir := range []string{filepath.Join(src, "nope"), filepath.Join(src, "f")} {
		if _, err := w.tryImport(ImportOptions{Source: dir}); err == nil {
			t.Fatalf("%s is imported", dir)
		}
	}
	_, err = w.tryImport(ImportOptions{Source: src, Dest: "../x"})
	wantErr(t, err, ErrNoPath)
	for _, dest := range []string{"a/.bole/b", ".BOLE", strings.Repeat("n", 300)} {
		_, err := w.tryImport(ImportOptions{Source: src, Dest: dest})
		wantErr(t, err, merkle.ErrBadName)
	}
	_, err = w.tryImport(ImportOptions{Source: src, Branch: "bad name"})
	wantErr(t, err, ErrRefName)
	if w.branches()["main"] != w.head() {
		t.Fatal("a refused import moved something")
	}
}

// TestImportToABranch makes it, and leaves HEAD where it is.
func TestImportToABranch(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	first := w.save("first")
	src, put := source(t)
	put("g", "y")
	one := w.mustImport(ImportOptions{Source: src, Branch: "data"})
	w.wantBranches(refMap{"data": one.ID, "main": first})
	w.wantPaths(one.ID, "g")
	c, err := w.ReadCommit(one.ID)
	ok(t, err)
	if len(c.Parents) != 0 {
		t.Fatal("a new branch has a parent")
	}
	put("h", "z")
	two := w.mustImport(ImportOptions{Source: src, Branch: "data"})
	w.wantPaths(two.ID, "g", "h")
	w.wantClean()
}

// TestImportReportsWhatItLeavesOut and keeps it in the source.
func TestImportReportsWhatItLeavesOut(t *testing.T) {
	w := newWork(t, InitOptions{Bare: true})
	src, put := source(t)
	put("f", "x")
	put(".DS_Store", "x")
	put("d/a.o", "x")
	put("d/"+IgnoreFile, "*.o\n")
	put("nested/f", "x")
	ok(t, Init(filepath.Join(src, "nested"), InitOptions{}))
	put(".bole/x", "not a repository of ours")
	ok(t, unix.Mkfifo(filepath.Join(src, "pipe"), 0o644))
	var skipped []string
	res := w.mustImport(ImportOptions{Source: src, Move: true, Skipped: func(p Problem) { skipped = append(skipped, p.Path) }})
	wantList(t, "left out", skipped, ".DS_Store", ".bole", "d/a.o", "nested", "pipe")
	w.wantPaths(res.ID, "d", "d/"+IgnoreFile, "f")
	left := readDisk(t, src).names("")
	wantList(t, "left in the source", left, ".DS_Store", "d", "nested", "pipe")
	if _, err := os.Stat(filepath.Join(src, "d/a.o")); err != nil || res.Remain == 0 {
		t.Fatalf("remain %d, %v", res.Remain, err)
	}
}

// TestMoveCopiesWhatIsOpen: a file that somebody writes to is not shared with them.
func TestMoveCopiesWhatIsOpen(t *testing.T) {
	w := newWork(t, InitOptions{Bare: true})
	src, put := source(t)
	put("open", bigText("open"))
	put("twice", bigText("twice"))
	put("free", bigText("free"))
	ok(t, os.Link(filepath.Join(src, "twice"), filepath.Join(src, "second name")))
	f, err := os.OpenFile(filepath.Join(src, "open"), os.O_WRONLY, 0)
	ok(t, err)
	defer f.Close()
	res := w.mustImport(ImportOptions{Source: src, Move: true})
	if res.Linked != uint64(len(bigText("free"))) {
		t.Fatalf("result: %+v", res)
	}
	_, err = f.WriteAt([]byte("written after the import"), 5)
	ok(t, err)
	w.wantSound()
	if got := readCommitTree(t, w.Repo, res.ID); got["second name"].Data != got["twice"].Data || len(got) != 5 {
		t.Fatalf("the commit holds %v", got)
	}
	if left := readDisk(t, src); len(left) != 1 {
		t.Fatalf("left in the source: %v", left)
	}
}

// TestMoveKeepsWhatChanged: a source that is not what was committed any more stays.
func TestMoveKeepsWhatChanged(t *testing.T) {
	w := newWork(t, InitOptions{Bare: true})
	src, put := source(t)
	put("small", "small")
	put("mode", "mode")
	put("large", bigText("large"))
	put("gone", "gone")
	put("link", "file")
	put("dir/in", "x")
	im := &importer{repo: w.Repo, o: ImportOptions{Move: true, Meta: Meta{Message: "x"}}, source: src, led: importLedger(src)}
	ok(t, im.begin())
	_, err := im.a.run(ctx)
	ok(t, err)
	im.head.Commit, _, err = im.commit(ctx)
	ok(t, err)
	put("small", "other")
	ok(t, os.Chmod(filepath.Join(src, "mode"), 0o600))
	ok(t, os.Remove(filepath.Join(src, "gone")))
	ok(t, os.Remove(filepath.Join(src, "link")))
	ok(t, os.Symlink("small", filepath.Join(src, "link")))
	put("dir/new", "x")
	remain, err := im.unlinkSources(ctx)
	ok(t, err)
	wantList(t, "left", slices.Sorted(func(yield func(string) bool) {
		for p := range readDisk(t, src) {
			if !yield(p) {
				return
			}
		}
	}), "", "dir", "dir/new", "link", "mode", "small")
	if remain != 4 {
		t.Fatalf("%d are said to remain", remain)
	}
	w.wantSound()
}

// TestImportUnreadable makes no commit, and the next run reads only what is missing.
func TestImportUnreadable(t *testing.T) {
	w := newWork(t, InitOptions{Bare: true})
	src, put := source(t)
	put("good", bigText("good"))
	put("far", "x")
	ok(t, unix.UtimesNanoAt(unix.AT_FDCWD, filepath.Join(src, "far"), []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: 9_300_000_000}}, 0))
	settleClock()
	_, err := w.tryImport(ImportOptions{Source: src})
	wantErr(t, err, ErrUnreadable, "far")
	w.wantBranches(refMap{})
	ok(t, os.Chtimes(filepath.Join(src, "far"), time.Time{}, time.Unix(1, 0)))
	before := w.blobs.Stats()
	w.mustImport(ImportOptions{Source: src})
	if now := w.blobs.Stats(); now.BytesHashed-before.BytesHashed > 100 {
		t.Fatalf("%d bytes were read again", now.BytesHashed-before.BytesHashed)
	}
}

// TestImportGoesOnElsewhere: what a killed import meant to commit does not turn
// up in one that goes to another place.
func TestImportGoesOnElsewhere(t *testing.T) {
	w := newWork(t, InitOptions{Bare: true})
	other, putOther := source(t)
	putOther("d/there", "there")
	w.mustImport(ImportOptions{Source: other, Dest: "one"})
	src, put := source(t)
	put("d/a", "a")
	put("b", "b")
	im := &importer{repo: w.Repo, o: ImportOptions{Dest: "one"}, source: src, led: importLedger(src)}
	ok(t, im.begin())
	_, err := im.a.run(ctx) // and here it is killed
	ok(t, err)
	ok(t, os.Remove(filepath.Join(src, "b")))
	res := w.mustImport(ImportOptions{Source: src, Dest: "two"})
	w.wantPaths(res.ID, "one", "one/d", "one/d/there", "two", "two/d", "two/d/a")
}

// TestImportWhileTheBranchMoves is refused, and goes through when it is run again.
func TestImportWhileTheBranchMoves(t *testing.T) {
	w := newWork(t)
	w.write("f", "1")
	w.save("first")
	src, put := source(t)
	put("g", "x")
	_, err := w.tryImport(ImportOptions{Source: src, Plan: func(Plan) {
		w.write("f", "2")
		w.save("meanwhile")
	}})
	wantErr(t, err, ErrRefMoved)
	res := w.mustImport(ImportOptions{Source: src})
	w.wantPaths(res.ID, "f", "g")
}

// TestContentsElsewhere keeps packs and whole files on another file system; move copies then.
func TestContentsElsewhere(t *testing.T) {
	contents := filepath.Join(mountImage(t), "contents")
	w := newWork(t, InitOptions{Contents: contents})
	w.write("f", "x")
	w.write("big", bigText("big"))
	w.save("first")
	w.wantSound()
	src, put := source(t)
	put("moved", bigText("moved"))
	res := w.mustImport(ImportOptions{Source: src, Dest: "d", Move: true})
	if res.Linked != 0 || res.Copied < 200_000 || len(readDisk(t, src)) != 1 {
		t.Fatalf("result: %+v", res)
	}
	if _, err := os.Stat(w.file("contents")); !os.IsNotExist(err) {
		t.Fatalf("there are contents in .bole: %v", err)
	}
	_, err := w.tryImport(ImportOptions{Source: filepath.Dir(contents)})
	wantErr(t, err, ErrInside)
	_, err = w.Update(ctx, CheckoutOptions{})
	ok(t, err)
	w.wantClean()
	w.wantSound()
}
