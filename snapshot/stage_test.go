package snapshot

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bole/merkle"
)

// wantStaged compares what the next commit would change.
func (w *work) wantStaged(want ...string) {
	w.t.Helper()
	var got []string
	ok(w.t, w.DiffStaged(func(c PathChange) error {
		got = append(got, c.Kind.String()+" "+c.Path)
		return nil
	}))
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		w.t.Fatalf("staged (-want +got):\n%s", d)
	}
}

// wantUnstaged compares what the next add would record, untracked names as "? NAME".
func (w *work) wantUnstaged(want ...string) {
	w.t.Helper()
	st := w.status()
	got := letters(st.Unstaged)
	for _, p := range st.Untracked {
		got = append(got, "? "+p)
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		w.t.Fatalf("unstaged (-want +got):\n%s", d)
	}
}

// wantPaths compares the names of a commit's tree.
func (w *work) wantPaths(id merkle.Hash, want ...string) {
	w.t.Helper()
	var got []string
	for p := range readCommitTree(w.t, w.Repo, id) {
		if p != "" {
			got = append(got, p)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		w.t.Fatalf("paths of the commit (-want +got):\n%s", d)
	}
}

func TestFileBecomesDirectoryAndBack(t *testing.T) {
	w := newWork(t)
	w.write("x", "file")
	first := w.save("file")

	w.remove("x")
	w.write("x/in", "inside")
	w.wantUnstaged("T x")
	w.add()
	w.wantStaged("T x", "A x/in")
	second := w.commit("directory")
	w.wantPaths(second, "x", "x/in")
	w.wantClean()

	w.remove("x")
	w.write("x", "file")
	w.add()
	w.wantStaged("T x")
	third := w.commit("file again")
	w.wantPaths(third, "x")
	w.wantClean()

	w.mustCheckout(second.String())
	wantTree(t, "disk", readDisk(t, w.root), readCommitTree(t, w.Repo, second))
	w.mustCheckout(first.String())
	wantTree(t, "disk", readDisk(t, w.root), readCommitTree(t, w.Repo, first))
	w.wantSound()
}

// TestDirectoryMadeAnew removes a directory and brings back a part of it: what
// the base had in it must not show through.
func TestDirectoryMadeAnew(t *testing.T) {
	w := newWork(t)
	w.write("d/f", "1")
	w.write("d/g", "2")
	w.write("d/sub/h", "3")
	w.save("first")

	w.remove("d")
	w.add()
	w.wantStaged("D d")
	w.write("d/f", "1")
	w.add("d/f")
	w.wantStaged("D d/g", "D d/sub")
	id := w.commit("half of it")
	w.wantPaths(id, "d", "d/f")
	w.wantClean()
	w.wantSound()
}

func TestFreshDirectoryInsideFreshDirectory(t *testing.T) {
	w := newWork(t)
	w.write("d/e/f", "1")
	w.write("d/e/g", "2")
	w.save("first")
	w.remove("d")
	w.add()
	w.write("d/e/f", "other")
	w.add()
	w.wantStaged("M d/e/f", "D d/e/g")
	w.write("d/e/g", "2")
	w.write("d/e/f", "1")
	w.add()
	w.wantStaged()
	_, err := w.tryCommit("nothing")
	wantErr(t, err, ErrNothing)
}

// TestRecordsThatReturnDisappear takes each kind of change back and wants
// nothing left to be committed.
func TestRecordsThatReturnDisappear(t *testing.T) {
	w := newWork(t)
	w.write("f", "base")
	w.write("d/g", "base")
	w.link("l", "f")
	w.mkdir("empty")
	w.save("first")
	for name, c := range map[string]struct{ change, back func() }{
		"content":   {func() { w.write("d/g", "else") }, func() { w.write("d/g", "base") }},
		"mode":      {func() { w.chmod("f", 0o600) }, func() { w.chmod("f", 0o644) }},
		"new":       {func() { w.write("d/new", "x") }, func() { w.remove("d/new") }},
		"new dir":   {func() { w.write("d/n/n/n", "x") }, func() { w.remove("d/n") }},
		"gone":      {func() { w.remove("f") }, func() { w.write("f", "base") }},
		"gone dir":  {func() { w.remove("d") }, func() { w.write("d/g", "base") }},
		"empty dir": {func() { w.remove("empty") }, func() { w.mkdir("empty") }},
		"link":      {func() { w.remove("l"); w.link("l", "g") }, func() { w.remove("l"); w.link("l", "f") }},
		"kind":      {func() { w.remove("f"); w.mkdir("f") }, func() { w.remove("f"); w.write("f", "base") }},
		"dir mode":  {func() { w.chmod("d", 0o700) }, func() { w.chmod("d", 0o755) }},
		"root mode": {func() { w.chmod(".", 0o700) }, func() { w.chmod(".", 0o755) }},
	} {
		c.change()
		w.add()
		if len(w.status().Staged) == 0 {
			t.Errorf("%s: the change is not staged", name)
		}
		c.back()
		w.add()
		if st := w.status(); !st.Clean() {
			t.Errorf("%s: taken back, and yet staged %v, unstaged %v", name, letters(st.Staged), letters(st.Unstaged))
		}
		if _, err := w.tryCommit(name); err == nil {
			t.Errorf("%s: taken back, and yet there was something to commit", name)
		}
	}
}

// setTimes gives what is there of a list of paths times of its own.
func (w *work) setTimes() {
	w.t.Helper()
	for i, p := range []string{"d/e/a", "d/e/b", "d/l", "d/e", "d", "top", "."} {
		if _, err := os.Lstat(w.at(p)); err == nil {
			w.touch(p, 1_500_000_000_000_000_000+int64(i))
		}
	}
}

// timedSave commits everything with the times of setTimes and returns the tree.
func (w *work) timedSave() merkle.Hash {
	w.t.Helper()
	w.setTimes()
	c, err := w.ReadCommit(w.save("timed"))
	ok(w.t, err)
	return c.Tree
}

// TestTwoHistoriesOneTree reaches one state on two ways, with equal times.
func TestTwoHistoriesOneTree(t *testing.T) {
	straight := newWork(t)
	straight.write("d/e/a", "A")
	straight.write("d/e/b", "B")
	straight.link("d/l", "e/a")
	straight.write("top", "T")
	want := straight.timedSave()

	w := newWork(t)
	w.write("top/x", "a directory first")
	w.write("gone", "g")
	w.timedSave()
	w.remove("top")
	w.remove("gone")
	w.write("top", "T")
	w.write("d", "a file first")
	w.timedSave()
	w.remove("d")
	w.write("d/e/b", "another B")
	w.write("d/e/c", "C")
	w.setTimes()
	w.add("d/e")
	w.commit("part")
	w.remove("d/e/c")
	w.remove("d/e/b") // replaced, not written to
	w.write("d/e/b", "B")
	w.timedSave()
	w.write("d/e/a", "A")
	w.link("d/l", "e/a")
	if got := w.timedSave(); got != want {
		t.Fatalf("two histories of one state end in trees %s and %s", got, want)
	}
}

// TestRemoveAndAddAgain goes round many times and wants counts that never drift.
func TestRemoveAndAddAgain(t *testing.T) {
	w := newWork(t)
	w.mkdir("d/sub/deep")
	w.write("d/other", "stays")
	for i := range 20 {
		w.write("d/f", fmt.Sprint(i%3))
		w.save("with")
		w.wantClean()
		w.remove("d/f")
		id := w.save("without")
		w.wantClean()
		w.wantPaths(id, "d", "d/other", "d/sub", "d/sub/deep")
	}
	if n := w.stageRecords(); n != 0 {
		t.Fatalf("%d records are left in the stage", n)
	}
	w.wantSound()
}

// TestRename lists a move once on each side.
func TestRename(t *testing.T) {
	w := newWork(t)
	w.write("d/a", "content")
	w.save("first")
	ok(t, os.Rename(w.at("d/a"), w.at("d/b")))
	w.wantUnstaged("D d/a", "? d/b")
	if res := w.add(); res.Added != 1 || res.Deleted != 1 || res.Modified != 0 {
		t.Fatalf("counts of a move: %+v", res)
	}
	w.wantStaged("D d/a", "A d/b")
}

func TestOnlyTimesAreNoChange(t *testing.T) {
	w := newWork(t)
	w.write("d/f", "x")
	w.link("l", "x")
	first := readCommitTree(t, w.Repo, w.save("first"))
	for _, p := range []string{"d/f", "d", "l", "."} {
		w.touch(p, 42)
	}
	w.wantClean()
	w.add()
	_, err := w.tryCommit("times")
	wantErr(t, err, ErrNothing)
	w.write("new", "x")
	second := readCommitTree(t, w.Repo, w.save("second"))
	for _, p := range []string{"d/f", "d", "l"} {
		if first[p] != second[p] {
			t.Errorf("%s: the stored time of an unchanged path moved", p)
		}
	}
}

func TestEmptyDirectoryAloneIsAChange(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	w.save("first")
	w.mkdir("e1/e2")
	w.wantUnstaged("? e1/")
	w.add()
	w.wantStaged("A e1", "A e1/e2")
	w.wantPaths(w.commit("empty"), "f", "e1", "e1/e2")
	w.remove("e1/e2")
	w.wantUnstaged("D e1/e2")
	w.wantPaths(w.save("one less"), "f", "e1")
}

func TestModeOfTheRootIsAChange(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	w.save("first")
	w.chmod(".", 0o711)
	w.wantUnstaged("M .")
	w.add()
	w.wantStaged("M .")
	id := w.commit("root")
	if e, err := w.Lookup(id, ""); err != nil || e.Perm != 0o711 {
		t.Fatalf("the root has mode %o, %v", e.Perm, err)
	}
	w.wantClean()
}

func TestNothingToCommit(t *testing.T) {
	w := newWork(t)
	_, err := w.tryCommit("without add")
	wantErr(t, err, ErrNothing)
	w.write("f", "x")
	_, err = w.tryCommit("without add")
	wantErr(t, err, ErrNothing)
	w.save("first")
	before := w.lastTxn()
	_, err = w.tryCommit("again")
	wantErr(t, err, ErrNothing)
	if now := w.lastTxn(); now != before {
		t.Fatalf("a refused commit wrote: transaction %d, before %d", now, before)
	}
	id, _, err := w.CommitStaged(ctx, Meta{Message: "empty", AllowEmpty: true})
	ok(t, err)
	if c, err := w.ReadCommit(id); err != nil || c.Message != "empty" {
		t.Fatalf("%v, %v", c, err)
	}
}

// TestOddNames commits names that trip up text.
func TestOddNames(t *testing.T) {
	w := newWork(t)
	odd := []string{"a\nb", "d\n/c", "\xff\xfe", "é", "é", " ", "-", "--help", "*", "[x]", "a\tb", "'", "\"", "\\", "\x01\x7f",
		"con", "nul.txt", "%s", "${x}", strings.Repeat("n", 255), "README", "readme", "a", "a.b", "a-b", "a0", "..a", "...", ".a"}
	for _, p := range odd {
		w.write(p, p)
	}
	id := w.save("odd")
	w.wantClean()
	disk := readDisk(t, w.root)
	wantTree(t, "the commit", readCommitTree(t, w.Repo, id), disk)
	for p := range disk {
		if p != "" && !strings.Contains(p, "/") {
			w.remove(p)
		}
	}
	empty := w.save("empty")
	w.wantPaths(empty)
	w.mustCheckout(id.String())
	wantTree(t, "the disk", readDisk(t, w.root), disk)
}
