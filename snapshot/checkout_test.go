package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// twoStates makes two commits that differ in every way; the disk is at the second.
func twoStates(t *testing.T) (w *work, one, two merkle.Hash) {
	t.Helper()
	w = newWork(t)
	w.write("same", "same")
	w.write("changed", "1")
	w.write("mode", "m")
	w.write("toDir", "file")
	w.write("toLink", "file")
	w.write("fromDir/in/f", "1")
	w.link("link", "one")
	w.link("toFile", "one")
	w.write("gone/a/b", "1")
	w.write("dir/changed", "1")
	w.mkdir("emptied")
	w.write("attrs", "x")
	ok(t, unix.Setxattr(w.at("attrs"), "user.k", []byte("one"), 0))
	w.chmod("dir", 0o700)
	one = w.save("one")
	for _, p := range []string{"toDir", "toLink", "fromDir", "link", "toFile", "gone", "emptied"} {
		w.remove(p)
	}
	w.write("changed", "2")
	w.chmod("mode", 0o500)
	w.write("toDir/in", "2")
	w.link("toLink", "two")
	w.write("fromDir", "file")
	w.link("link", "two")
	w.write("toFile", "file")
	w.write("dir/changed", "2")
	w.write("new/a/b", "2")
	w.chmod("dir", 0o555)
	ok(t, unix.Setxattr(w.at("attrs"), "user.k", []byte("two"), 0))
	ok(t, unix.Setxattr(w.at("dir"), "user.d", []byte("two"), 0))
	two = w.save("two")
	return w, one, two
}

func TestCheckoutBothWays(t *testing.T) {
	w, one, two := twoStates(t)
	for range 2 {
		for _, id := range []merkle.Hash{one, two} {
			w.mustCheckout(id.String())
			wantTree(t, "disk", readDisk(t, w.root), readCommitTree(t, w.Repo, id))
			w.wantClean()
		}
	}
	head, err := w.Head()
	ok(t, err)
	if head.Branch != "" || head.Commit != two {
		t.Fatalf("HEAD is %+v", head)
	}
	w.mustCheckout("main")
	if head, err = w.Head(); err != nil || head.Branch != "main" {
		t.Fatalf("HEAD is %+v, %v", head, err)
	}
	left, err := os.ReadDir(w.file("tmp"))
	ok(t, err)
	if len(left) > 0 {
		t.Fatalf("left in .bole/tmp: %v", left)
	}
}

// TestCheckoutNeedsNoAddAfterwards: what a checkout wrote is known to the stat
// table, folders too.
func TestCheckoutNeedsNoAddAfterwards(t *testing.T) {
	w, one, _ := twoStates(t)
	settleClock()
	w.add() // knows what the checkout leaves alone
	w.mustCheckout(one.String())
	before, txn := w.blobs.Stats(), w.lastTxn()
	if res := w.add(); res.Bytes != 0 {
		t.Fatalf("add after a checkout read %d bytes", res.Bytes)
	}
	if now := w.blobs.Stats(); now != before || w.lastTxn() != txn {
		t.Fatalf("add after a checkout did something: %+v, before %+v; transaction %d, before %d", now, before, w.lastTxn(), txn)
	}
}

// TestConflicts changes each kind of thing that a checkout would overwrite,
// and wants it listed and nothing changed.
func TestConflicts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(w *work)
		want   []string
	}{
		"modified":           {func(w *work) { w.write("changed", "mine") }, []string{"changed"}},
		"same size":          {func(w *work) { w.overwrite("changed", "x") }, []string{"changed"}},
		"mode":               {func(w *work) { w.chmod("changed", 0o600) }, []string{"changed"}},
		"attribute":          {func(w *work) { ok(w.t, unix.Setxattr(w.at("attrs"), "user.k", []byte("mine"), 0)) }, []string{"attrs"}},
		"link":               {func(w *work) { w.remove("link"); w.link("link", "mine") }, []string{"link"}},
		"link for a file":    {func(w *work) { w.remove("changed"); w.link("changed", "x") }, []string{"changed"}},
		"file for a link":    {func(w *work) { w.remove("link"); w.write("link", "x") }, []string{"link"}},
		"file for a folder":  {func(w *work) { w.remove("dir"); w.write("dir", "x") }, []string{"dir"}},
		"link for a folder":  {func(w *work) { w.remove("dir"); w.link("dir", "emptied") }, []string{"dir"}},
		"folder for a file":  {func(w *work) { w.remove("changed"); w.mkdir("changed") }, []string{"changed"}},
		"folder mode":        {func(w *work) { w.chmod("dir", 0o711) }, []string{"dir"}},
		"untracked file":     {func(w *work) { w.write("gone/a/b", "mine") }, []string{"gone/a/b"}},
		"untracked in dir":   {func(w *work) { w.write("gone", "mine") }, []string{"gone"}},
		"untracked inside":   {func(w *work) { w.write("toDir/mine", "mine") }, []string{"toDir"}},
		"deeper inside":      {func(w *work) { w.mkdir("toDir/mine/deep") }, []string{"toDir"}},
		"folder in folder":   {func(w *work) { w.remove("toDir/in"); w.write("toDir/in/mine", "x") }, []string{"toDir"}},
		"link inside":        {func(w *work) { w.remove("toDir/in"); w.link("toDir/in", "/") }, []string{"toDir/in"}},
		"modified in folder": {func(w *work) { w.write("toDir/in", "mine") }, []string{"toDir/in"}},
		"two":                {func(w *work) { w.write("changed", "mine"); w.write("fromDir", "mine") }, []string{"changed", "fromDir"}},
		"staged":             {func(w *work) { w.write("changed", "mine"); w.add("changed"); w.write("changed", "2") }, []string{"changed"}},
		"staged deletion":    {func(w *work) { w.remove("changed"); w.add("changed") }, []string{"changed"}},
		"staged dir gone":    {func(w *work) { w.remove("dir"); w.add("dir") }, []string{"dir"}},
		"staged new in new":  {func(w *work) { w.write("new/mine", "x"); w.add("new/mine") }, []string{"new/mine"}},
		"staged folder mode": {func(w *work) { w.chmod("dir", 0o711); w.add(); w.chmod("dir", 0o555) }, []string{"dir"}},
		"staged fresh dir": {func(w *work) {
			w.remove("dir")
			w.add("dir")
			w.write("dir/changed", "2")
			w.chmod("dir", 0o555)
			ok(w.t, unix.Setxattr(w.at("dir"), "user.d", []byte("two"), 0))
			w.add("dir")
		}, []string{"dir"}},
	} {
		t.Run(name, func(t *testing.T) {
			w, one, _ := twoStates(t)
			c.change(w)
			disk, staged := readDisk(t, w.root), w.status()
			_, err := w.checkout(one.String())
			wantConflicts(t, err, c.want...)
			wantTree(t, "the disk after a refusal", readDisk(t, w.root), disk)
			now := w.status()
			if a, b := letters(staged.Staged), letters(now.Staged); !slices.Equal(a, b) || now.Head.Branch != "main" {
				t.Fatalf("the stage after a refusal is %q, before %q", b, a)
			}
			w.mustCheckout(one.String(), true)
			want := readCommitTree(t, w.Repo, one)
			for p, n := range readDisk(t, w.root) {
				if have, ok := want[p]; ok && have != n {
					t.Fatalf("after a forced checkout %q is %+v, want %+v", p, n, have)
				}
				delete(want, p)
			}
			if len(want) > 0 {
				t.Fatalf("a forced checkout did not write %v", want)
			}
			if st := w.status(); len(st.Staged)+len(st.Unstaged) > 0 {
				t.Fatalf("after a forced checkout staged %v, unstaged %v", letters(st.Staged), letters(st.Unstaged))
			}
		})
	}
}

// TestUnsavedWorkIsKept makes changes that are in nobody's way.
func TestUnsavedWorkIsKept(t *testing.T) {
	w, one, two := twoStates(t)
	w.write("same", "mine")
	w.write("untracked/f", "mine")
	w.write("dir/untracked", "mine")
	w.chmod(".", 0o711)
	w.write("staged", "mine")
	w.write("dir/staged", "mine")
	w.add("staged", "dir/staged")
	w.remove("emptied") // absent in the second already
	for _, id := range []merkle.Hash{one, two, one, two} {
		w.mustCheckout(id.String())
		for p, want := range map[string]string{"same": "mine", "untracked/f": "mine", "dir/untracked": "mine", "staged": "mine", "dir/staged": "mine"} {
			if got := w.read(p); got != want {
				t.Fatalf("%s holds %q", p, got)
			}
		}
		w.wantStaged("A staged", "A dir/staged")
		w.wantUnstaged("M same", "M .", "? untracked/", "? dir/untracked")
	}
	w.add("same")
	id := w.commit("mine")
	if got := readCommitTree(t, w.Repo, id)["dir/staged"].Data; got != "mine" {
		t.Fatalf("what was staged was committed as %q", got)
	}
}

// TestDeletedFoldersComeBackInPart: a change below a folder that was deleted and
// not recorded makes the folders on the way.
func TestDeletedFoldersComeBackInPart(t *testing.T) {
	w := newWork(t)
	w.write("d/e/f", "1")
	w.write("d/e/stays", "1")
	w.chmod("d/e", 0o750)
	one := w.save("one")
	w.write("d/e/f", "2")
	w.save("two")
	w.remove("d")
	w.mustCheckout(one.String())
	w.wantUnstaged("D d/e/stays")
	if fi, err := os.Stat(w.at("d/e")); err != nil || fi.Mode().Perm() != 0o750 {
		t.Fatalf("d/e: %v, %v", fi.Mode(), err)
	}
}

// TestStageIsSettled: what the target has already is not staged any more.
func TestStageIsSettled(t *testing.T) {
	w, one, two := twoStates(t)
	w.mustCheckout(one.String())
	w.write("changed", "2")
	w.remove("gone")
	w.write("new/a/b", "2")
	w.write("new/c", "mine")
	w.add()
	w.wantStaged("M changed", "D gone", "A new", "A new/a", "A new/a/b", "A new/c")
	w.mustCheckout(two.String())
	w.wantStaged("A new/c")
	w.wantUnstaged()
	w.remove("new/c")
	w.add()
	w.wantStaged()
	w.wantClean()
}

// TestUpdateToTheSameCommit changes nothing about what is staged.
func TestUpdateToTheSameCommit(t *testing.T) {
	w := newWork(t)
	w.write("d/f", "1")
	w.save("first")
	w.write("d/new", "x")
	w.add()
	for range 2 {
		_, err := w.Update(ctx, CheckoutOptions{})
		ok(t, err)
		w.wantStaged("A d/new")
	}
	w.wantPaths(w.commit("second"), "d", "d/f", "d/new")
}

// TestUpdateAfterTheBranchMoved: somebody else commits; a commit from here is
// refused, and update brings the files forward.
func TestUpdateAfterTheBranchMoved(t *testing.T) {
	w := newWork(t)
	w.write("d/f", "1")
	w.write("mine", "1")
	w.save("first")
	src := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(src, "f"), []byte("imported"), 0o644))
	res, err := w.Import(ctx, ImportOptions{Source: src, Dest: "d", Meta: Meta{Message: "import"}})
	ok(t, err)
	w.write("mine", "2")
	w.write("d/new", "x")
	w.add()
	st := w.status()
	if !st.Moved || st.Head.Commit != res.ID {
		t.Fatalf("status does not say that the branch moved: %+v", st)
	}
	_, err = w.tryCommit("over it")
	wantErr(t, err, ErrRefMoved)
	w.wantStaged("M mine", "A d/new")
	_, err = w.Update(ctx, CheckoutOptions{})
	ok(t, err)
	w.wantStaged("M mine", "A d/new")
	if w.read("d/f") != "imported" || w.read("mine") != "2" {
		t.Fatal("update did not bring the files forward")
	}
	id := w.commit("after it")
	c, err := w.ReadCommit(id)
	ok(t, err)
	if len(c.Parents) != 1 || c.Parents[0] != res.ID {
		t.Fatalf("parents %v, want %s", c.Parents, res.ID)
	}
	w.wantClean()
	if w.status().Moved {
		t.Fatal("status says that the branch moved")
	}
}

// TestFirstCheckout fills a working directory that stands on nothing.
func TestFirstCheckout(t *testing.T) {
	w := newWork(t)
	src := t.TempDir()
	ok(t, os.MkdirAll(filepath.Join(src, "d"), 0o750))
	ok(t, os.WriteFile(filepath.Join(src, "d/f"), []byte("imported"), 0o640))
	_, err := w.Update(ctx, CheckoutOptions{})
	wantErr(t, err, ErrUnborn)
	res, err := w.Import(ctx, ImportOptions{Source: src, Meta: Meta{Message: "import"}})
	ok(t, err)
	w.write("d/f", "in the way")
	_, err = w.Update(ctx, CheckoutOptions{})
	wantConflicts(t, err, "d/f")
	w.write("d/f", "imported")
	w.chmod("d/f", 0o640)
	_, err = w.Update(ctx, CheckoutOptions{})
	ok(t, err)
	wantTree(t, "disk", readDisk(t, w.root), readCommitTree(t, w.Repo, res.ID))
	w.wantClean()
}

func TestCheckoutOfAPath(t *testing.T) {
	w, _, _ := twoStates(t)
	_, err := w.checkout("HEAD:dir")
	wantErr(t, err, ErrNoPath)
}

// TestSparseFilesStaySparse writes holes back as holes.
func TestSparseFilesStaySparse(t *testing.T) {
	w := newWork(t)
	for name, size := range map[string]int64{"large": 64 << 20, "small": 100_000} {
		f, err := os.Create(w.at(name))
		ok(t, err)
		_, err = f.WriteAt([]byte("middle"), size/2)
		ok(t, err)
		ok(t, f.Truncate(size))
		ok(t, f.Close())
	}
	id := w.save("sparse")
	before := readDisk(t, w.root)
	w.remove("large")
	w.remove("small")
	w.save("none")
	w.mustCheckout(id.String())
	wantTree(t, "disk", readDisk(t, w.root), before)
	for _, name := range []string{"large", "small"} {
		var st unix.Stat_t
		ok(t, unix.Stat(w.at(name), &st))
		if st.Blocks*512 > 64<<10 {
			t.Errorf("%s takes %d bytes", name, st.Blocks*512)
		}
	}
	w.wantClean()
}

func TestWriteSparse(t *testing.T) {
	for _, text := range []string{"", "x", strings.Repeat("\x00", 4096), strings.Repeat("\x00", 4095), "a" + strings.Repeat("\x00", 20000) + "b",
		strings.Repeat("\x00", 8192) + "x", strings.Repeat("x", 5000) + strings.Repeat("\x00", 4096*3)} {
		for _, off := range []int64{0, 1, 4096, 5000} {
			f, err := os.Create(filepath.Join(t.TempDir(), "f"))
			ok(t, err)
			ok(t, writeSparse(f, []byte(text), off))
			ok(t, f.Truncate(off+int64(len(text))))
			got, err := os.ReadFile(f.Name())
			ok(t, err)
			ok(t, f.Close())
			if string(got) != strings.Repeat("\x00", int(off))+text {
				t.Errorf("%d bytes at %d came back as others", len(text), off)
			}
		}
	}
}

// TestCheckoutProgress counts what is written, and a stopped one says so and can go on.
func TestCheckoutStopped(t *testing.T) {
	w := newWork(t)
	for i := range 300 {
		w.write(fmt.Sprintf("d%d/f", i), fmt.Sprint(i))
	}
	full := w.save("full")
	for i := range 300 {
		w.remove(fmt.Sprintf("d%d", i))
	}
	empty := w.save("empty")
	stopCtx, stop := contextWithStop()
	rev, err := w.Resolve(full.String())
	ok(t, err)
	n := 0
	_, err = w.Checkout(stopCtx, rev, CheckoutOptions{Progress: func(p Progress) {
		if n++; n == 20 {
			stop()
		}
	}})
	wantErr(t, err, stopCtx.Err())
	if got := w.status(); got.Base != empty || len(got.Untracked) == 0 {
		t.Fatalf("after a stop the base is %s, untracked %d", got.Base, len(got.Untracked))
	}
	w.mustCheckout(full.String())
	wantTree(t, "disk", readDisk(t, w.root), readCommitTree(t, w.Repo, full))
	w.wantClean()
}
