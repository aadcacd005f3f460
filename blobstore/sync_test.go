package blobstore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// barriers returns what one Sync asked of the disk, and commits it.
func barriers(t testing.TB, s *Store, b *Batch, tab *table) (fsyncs, syncfs uint64) {
	t.Helper()
	before := s.Stats()
	syncCommit(t, b, tab)
	after := s.Stats()
	return after.Fsyncs - before.Fsyncs, after.Syncfs - before.Syncfs
}

func putLargeOnes(t testing.TB, b *Batch, first uint64, n int) {
	t.Helper()
	for i := range uint64(n) {
		f := sourceFile(t, content(first+i, DefaultLimit+1))
		_, _, err := b.PutFile(f, "source")
		check(t, errors.Join(err, f.Close()))
	}
}

func TestBarrierCounts(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	want := func(what string, fsyncs, syncfs uint64) {
		t.Helper()
		f, sf := barriers(t, s, b, tab)
		if f > fsyncs || sf != syncfs {
			t.Errorf("%s: %d fsyncs and %d syncfs, want %d and %d", what, f, sf, fsyncs, syncfs)
		}
	}
	want("nothing", 0, 0)
	for i := range uint64(2000) {
		putOne(t, b, i, 500)
	}
	want("2,000 small contents in a new pack: the pack, packs/", 2, 0)
	putOne(t, b, 5000, 500)
	want("one more: the pack", 1, 0)
	putLargeOnes(t, b, 10000, 1)
	want("a whole file: itself, its folder, whole/", 3, 0)
	putLargeOnes(t, b, 11000, fsyncEach)
	want("64 whole files: each, its folder, whole/", 2*fsyncEach+1, 0)
	putOne(t, b, 6000, 500)
	want("a small one again: the pack", 1, 0)
	if !s.trustSyncFS {
		t.Skip("this kernel's syncfs does not report lost writes")
	}
	putLargeOnes(t, b, 12000, fsyncEach+1)
	putOne(t, b, 7000, 500)
	want("65 whole files and a small one: syncfs, their folders", fsyncEach, 1)
	putLargeOnes(t, b, 13000, 3*fsyncEach)
	want("192 whole files: syncfs before and behind the renames", 0, 2)
	if open := openDescriptors(t); open > 40 {
		t.Errorf("%d descriptors are open", open)
	}
	verifyAll(t, s, tab)
}

func openDescriptors(t testing.TB) int {
	list, err := readNames("/proc/self/fd")
	if err != nil {
		t.Skip(err)
	}
	return len(list)
}

func TestKnownContentsAreNotStoredAgain(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	small, large := content(1, 1000), content(2, 1<<20)
	put := func() (written uint64) {
		before := s.Stats()
		_, err := b.PutBytes(small)
		check(t, err)
		_, _, err = b.PutFile(sourceFile(t, large), "source")
		check(t, err)
		return s.Stats().BytesWritten - before.BytesWritten
	}
	put()
	if n, bytes := b.Pending(); n != 2 || bytes != uint64(len(small)+len(large)) {
		t.Errorf("%d contents and %d bytes are pending", n, bytes)
	}
	if recs := syncCommit(t, b, tab); len(recs) != 2 {
		t.Fatalf("%d records for two new contents", len(recs))
	}
	for round := range 3 {
		// The copy of the large one is made to learn its hash, then dropped.
		if written := put(); written != uint64(len(large)) {
			t.Errorf("round %d: %d bytes written", round, written)
		}
		if recs := syncCommit(t, b, tab); len(recs) != 0 {
			t.Errorf("round %d: known contents gave %d records", round, len(recs))
		}
	}
	if left := names(t, s, tmpDir); len(left) != 1 { // the owner's lock
		t.Errorf("dropped copies are still there: %v", left)
	}
}

func TestHandedOverIsKnownBeforeTheTransaction(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	putOne(t, b, 1, 100)
	recs, ends, err := b.Sync()
	check(t, err)
	putOne(t, b, 1, 100)
	if n, _ := b.Pending(); n != 0 {
		t.Errorf("%d contents pending: it was stored again while its transaction was under way", n)
	}
	// The records are the caller's: what it does to them must not confuse the batch.
	recs[0].Hash[0] ^= 1
	putOne(t, b, 1, 100)
	if n, _ := b.Pending(); n != 0 {
		t.Error("the batch looks at records that it gave away")
	}
	recs[0].Hash[0] ^= 1
	tab.commit(recs, ends)
}

// TestFailedBarrierIsFinal breaks the descriptor of the pack, so that fdatasync fails.
func TestFailedBarrierIsFinal(t *testing.T) {
	s, tab := newStore(t), newTable()
	b, err := s.Begin(tab.index, tab.packEnd)
	check(t, err)
	kept := putOne(t, b, 1, 100)
	syncCommit(t, b, tab)
	putOne(t, b, 2, 100)
	putLargeOnes(t, b, 3, 2)
	pack := b.pack
	check(t, pack.f.Close())
	recs, _, err := b.Sync()
	if err == nil || len(recs) != 0 {
		t.Fatalf("Sync gave %d records and %v after a failed fdatasync", len(recs), err)
	}
	if !strings.Contains(err.Error(), s.packPath(1)) {
		t.Errorf("error does not name the pack: %v", err)
	}
	fsyncs := s.Stats().Fsyncs
	if _, _, again := b.Sync(); !errors.Is(again, unix.EBADF) {
		t.Errorf("the second Sync says %v", again)
	}
	if _, again := b.PutBytes([]byte("x")); !errors.Is(again, unix.EBADF) {
		t.Errorf("a Put afterwards says %v", again)
	}
	if got := s.Stats().Fsyncs; got != fsyncs {
		t.Error("a failed barrier was tried again")
	}
	if err := b.Close(); err == nil {
		t.Error("Close does not say that it could not cut the pack back")
	}
	if u, err := s.Usage(); err != nil || u.Whole != 0 || len(names(t, s, tmpDir)) != 0 {
		t.Errorf("left behind: %+v, %v, tmp %v", u, err, names(t, s, tmpDir))
	}
	// What was committed before is still there; the next batch takes another pack.
	check(t, s.Verify(kept, tab.all()[kept]))
	b = begin(t, s, tab)
	h := putOne(t, b, 2, 100)
	syncCommit(t, b, tab)
	if p := tab.all()[h].Pack; p != 2 {
		t.Errorf("pack %d is written to after its fdatasync failed", p)
	}
	verifyAll(t, s, tab)
}

func TestFolderThatAnotherMadeIsFlushed(t *testing.T) {
	s, tab := newStore(t), newTable()
	data := content(1, DefaultLimit+1)
	f := sourceFile(t, data)
	b := begin(t, s, tab)
	h, _, err := b.PutFile(f, "source")
	check(t, err)
	check(t, os.Mkdir(filepath.Dir(s.wholePath(&h)), 0o755)) // by a process that died before it flushed whole/
	if n, _ := barriers(t, s, b, tab); n != 3 {
		t.Errorf("%d barriers, want 3: the file, its folder, whole/", n)
	}
}

// TestWithoutSyncFS: on kernels whose syncfs hides lost writes each file is flushed by itself,
// while it is open.
func TestWithoutSyncFS(t *testing.T) {
	s, tab := newStore(t), newTable()
	s.trustSyncFS = false
	b := begin(t, s, tab)
	const n = fsyncEach + 10
	putLargeOnes(t, b, 1, n)
	if early := s.Stats().Fsyncs; early < 10 {
		t.Errorf("%d files were flushed before they were closed", early)
	}
	syncCommit(t, b, tab)
	st := s.Stats()
	folders := uint64(len(names(t, s, wholeDir)))
	if want := n + folders + 1; st.Fsyncs != want || st.Syncfs != 0 {
		t.Errorf("%d fsyncs and %d syncfs, want %d and none", st.Fsyncs, st.Syncfs, want)
	}
	verifyAll(t, s, tab)
}

// TestFailedFsyncOfWholeFile: nothing of the batch gets its final name.
func TestFailedFsyncOfWholeFile(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	putLargeOnes(t, b, 1, 3)
	check(t, b.whole[1].f.Close())
	recs, _, err := b.Sync()
	wantErr(t, err, os.ErrClosed)
	if len(recs) != 0 {
		t.Errorf("%d records", len(recs))
	}
	if u, err := s.Usage(); err != nil || u.Whole != 0 || len(names(t, s, tmpDir)) != 1 {
		t.Errorf("left behind: %+v, %v, tmp %v", u, err, names(t, s, tmpDir))
	}
}
