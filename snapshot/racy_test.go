package snapshot

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// rounds is how often a race is tried.
func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// overwrite changes the bytes of a file in place: same size, same inode.
func (w *work) overwrite(path, data string) {
	w.t.Helper()
	f, err := os.OpenFile(w.at(path), os.O_WRONLY, 0)
	ok(w.t, err)
	_, err = f.WriteAt([]byte(data), 0)
	ok(w.t, err)
	ok(w.t, f.Close())
}

// indexData is what the next commit would have at a path.
func (w *work) indexHash(path string) (h merkle.Hash) {
	w.t.Helper()
	ok(w.t, w.DiffStaged(func(c PathChange) error {
		if c.Path == path && c.New != nil {
			h = c.New.Hash
		}
		return nil
	}))
	return h
}

// TestRacilyClean edits files right after add, in the same tick of the clock
// where it can, by a write of the same size, with and without setting the time
// back, and wants every edit noticed by status and recorded by the next add.
func TestRacilyClean(t *testing.T) {
	w := newWork(t)
	w.write("f", "....")
	w.save("first")
	var st unix.Stat_t
	for i := range rounds(4000) {
		w.add()
		ok(t, unix.Lstat(w.at("f"), &st))
		want := fmt.Sprintf("%04d", i)
		w.overwrite("f", want)
		if i%2 == 0 { // the time that add has seen
			w.touch("f", st.Mtim.Nano())
		}
		if i%8 == 0 {
			if st := w.status(); len(st.Unstaged) != 1 {
				t.Fatalf("round %d: status lists %v unstaged", i, letters(st.Unstaged))
			}
		}
		w.add()
		if got := w.indexHash("f"); got != merkle.ContentHash([]byte(want)) {
			t.Fatalf("round %d: an edit of the same size was missed", i)
		}
	}
}

// TestRacilyCleanAttribute does the same with an attribute of a file and of a directory.
func TestRacilyCleanAttribute(t *testing.T) {
	w := newWork(t)
	w.write("d/f", "x")
	w.save("first")
	for i := range rounds(500) {
		for _, path := range []string{"d", "d/f", "."} {
			w.add()
			ok(t, unix.Setxattr(w.at(path), "user.n", fmt.Appendf(nil, "%d %s", i, path), 0))
			w.add()
			w.wantAttr(path, fmt.Sprintf("%d %s", i, path))
		}
	}
}

// wantAttr wants an attribute user.n in the index.
func (w *work) wantAttr(path, value string) {
	w.t.Helper()
	got := "nothing"
	ok(w.t, w.DiffStaged(func(c PathChange) error {
		if c.Path != path || c.New == nil {
			return nil
		}
		attrs, err := w.Attributes(c.New.Attrs)
		got = showAttrs(attrs)
		return err
	}))
	if got != "user.n="+value+";" {
		w.t.Fatalf("%s has %s in the stage, want user.n=%s", path, got, value)
	}
}

// TestRacilyCleanAfterCheckout edits files right after a checkout wrote them.
func TestRacilyCleanAfterCheckout(t *testing.T) {
	w := newWork(t)
	for i := range 20 {
		w.write(fmt.Sprintf("f%02d", i), "....")
	}
	one := w.save("one")
	for i := range 20 {
		w.write(fmt.Sprintf("f%02d", i), "----")
	}
	two := w.save("two")
	for i := range rounds(40) {
		id := []merkle.Hash{one, two}[i%2]
		w.mustCheckout(id.String(), true)
		want := fmt.Sprintf("%04d", i)
		fi, err := os.Lstat(w.at("f07"))
		ok(t, err)
		w.overwrite("f07", want)
		w.touch("f07", fi.ModTime().UnixNano())
		if got := letters(w.status().Unstaged); len(got) != 1 || got[0] != "M f07" {
			t.Fatalf("round %d: status lists %v", i, got)
		}
	}
}

// TestSettledFilesAreNotRead proves that the stat table is believed once the
// clock has moved on: a file whose bytes nobody may read any more counts as
// unchanged.
func TestSettledFilesAreNotRead(t *testing.T) {
	w := newWork(t)
	w.write("f", strings.Repeat("x", 1000))
	w.add()
	settleClock()
	w.add()
	w.commit("first")
	before := w.blobs.Stats()
	res := w.add()
	w.wantClean()
	if now := w.blobs.Stats(); now != before || res.Bytes != 0 || res.Unchanged != 1 {
		t.Fatalf("an unchanged file was read: %+v, before %+v, now %+v", res, before, now)
	}
}

func TestStatRecordRacy(t *testing.T) {
	const now, slack = int64(1_700_000_000_123_456_789), int64(20e6)
	for _, c := range []struct {
		mtime, ctime int64
		racy         bool
	}{
		{now - slack - 1, now - slack - 1, false},
		{now - slack, now - slack - 1, true},
		{now - slack - 1, now - slack, true},
		{now + 5e9, now - 5e9, true}, // a time in the future is no proof
		{now - 5e9, now + 5e9, true},
		{now - now%1e9 - 1e9, now - now%1e9 - 1e9, true}, // whole seconds: the file system may know no finer ones
		{now - now%1e9 - 2e9, now - now%1e9 - 2e9, false},
		{-5e9, -5e9, false},
	} {
		rec := newStatRecord(&fileStat{kind: merkle.KindFile, mtime: c.mtime, ctime: c.ctime}, merkle.Hash{}, merkle.Hash{}, now, slack)
		if rec.racy != c.racy {
			t.Errorf("mtime %d, ctime %d before now: racy is %v", now-c.mtime, now-c.ctime, rec.racy)
		}
	}
}

func TestStatRecordProves(t *testing.T) {
	st := fileStat{kind: merkle.KindFile, perm: 0o644, size: 5, mtime: 6, ctime: 7, ino: 8}
	rec := newStatRecord(&st, merkle.Hash{1}, merkle.Hash{2}, 5e9, 1)
	if !rec.proves(&st) {
		t.Fatal("a record does not prove what it was made from")
	}
	for name, change := range map[string]func(*fileStat){
		"kind": func(s *fileStat) { s.kind = merkle.KindDir }, "size": func(s *fileStat) { s.size++ },
		"mtime": func(s *fileStat) { s.mtime++ }, "ctime": func(s *fileStat) { s.ctime++ }, "inode": func(s *fileStat) { s.ino++ },
	} {
		other := st
		change(&other)
		if rec.proves(&other) {
			t.Errorf("a record proves a file of another %s", name)
		}
	}
	rec.racy = true
	if rec.proves(&st) {
		t.Error("a racy record proves something")
	}
	if coarseNow() > time.Now().UnixNano() {
		t.Error("the coarse clock is ahead")
	}
}
