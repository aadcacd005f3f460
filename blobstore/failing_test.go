package blobstore

import (
	"errors"
	"io/fs"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

var errTable = errors.New("the table of contents cannot be read")

// TestFailingTable: an error of the caller's table ends the put and comes back as it is.
func TestFailingTable(t *testing.T) {
	s, tab := newStore(t), newTable()
	badIndex := func(merkle.Hash) (Location, bool, error) { return Location{}, false, errTable }
	badEnd := func(uint32) (uint64, bool, error) { return 0, false, errTable }
	large := sourceFile(t, content(1, 1<<20))

	b, err := s.Begin(badIndex, tab.packEnd)
	check(t, err)
	_, err = b.PutBytes([]byte("x"))
	wantErr(t, err, errTable)
	_, _, err = b.PutFile(large, "large")
	wantErr(t, err, errTable)
	_, _, _, err = b.LinkFile(large, "large")
	wantErr(t, err, errTable)
	recs, _, err := b.Sync()
	check(t, err)
	if len(recs) != 0 {
		t.Errorf("%d records of contents that were not stored", len(recs))
	}
	check(t, b.Close())
	if left := names(t, s, tmpDir); len(left) != 0 {
		t.Errorf("left in tmp: %v", left)
	}

	for range 2 { // without a pack, and with one
		b, err = s.Begin(tab.index, badEnd)
		check(t, err)
		_, err = b.PutBytes([]byte("x"))
		wantErr(t, err, errTable)
		check(t, b.Close())
		good := begin(t, s, tab)
		putOne(t, good, 1, 10)
		syncCommit(t, good, tab)
		check(t, good.Close())
	}
	wantErr(t, s.Scan(ScanOptions{PackEnd: badEnd}, func(Found) error { return nil }), errTable)
}

// TestPackGivenFree: a caller who answers an end of 0 gives a pack of its own free, whatever lies in it.
func TestPackGivenFree(t *testing.T) {
	s, tab := newStore(t), newTable()
	head := packHeader(s.opts.Owner)
	check(t, os.WriteFile(s.packPath(1), append(head[:], content(1, 500)...), 0o644))
	tab.ends[1] = 0
	b := begin(t, s, tab)
	h := putOne(t, b, 2, 100)
	fsyncs, _ := barriers(t, s, b, tab)
	if loc := tab.all()[h]; loc != (Location{1, packHeaderSize, 100}) || fsyncs != 2 {
		t.Errorf("went to %+v with %d fsyncs, want the beginning of pack 1 and 2", loc, fsyncs)
	}
	wantContent(t, s, tab, h, content(2, 100))
	if got := packSizeOnDisk(t, s, 1); got != packHeaderSize+RecordHeader+100 {
		t.Errorf("pack has %d bytes", got)
	}
}

// TestLostPackKeepsItsNumber: contents of a lost pack must not seem to lie in a new one.
func TestLostPackKeepsItsNumber(t *testing.T) {
	s, tab, hs := storeWith(t, content(1, 100))
	check(t, os.Remove(s.packPath(1)))
	b := begin(t, s, tab)
	h := putOne(t, b, 2, 100)
	syncCommit(t, b, tab)
	if p := tab.all()[h].Pack; p != 2 {
		t.Errorf("pack %d was made anew", p)
	}
	_, err := s.ReadSmall(hs[0], tab.all()[hs[0]], nil)
	wantErr(t, err, fs.ErrNotExist)
}

// TestPackLockedByItsFinder: whoever locks a new pack first has it; its maker takes the next number.
func TestPackLockedByItsFinder(t *testing.T) {
	s, tab := newStore(t), newTable()
	tab.ends[1] = 0
	f, err := s.createFile(s.packPath(1))
	check(t, err)
	defer f.Close()
	head := packHeader(s.opts.Owner)
	_, err = f.Write(head[:])
	check(t, err)
	ok, err := tryLock(f)
	check(t, err)
	if !ok {
		t.Fatal("cannot lock a new file")
	}
	b := begin(t, s, tab)
	h := putOne(t, b, 1, 10)
	syncCommit(t, b, tab)
	if p := tab.all()[h].Pack; p != 2 {
		t.Errorf("wrote to pack %d", p)
	}
}

// TestPackMovedWhileItIsLocked: a lock on a file that is no longer the pack is worth nothing.
func TestPackMovedWhileItIsLocked(t *testing.T) {
	s, tab, _ := storeWith(t, content(1, 100))
	b := begin(t, s, tab)
	f, err := os.OpenFile(s.packPath(1), os.O_RDWR, 0)
	check(t, err)
	defer f.Close()
	check(t, os.Rename(s.packPath(1), s.packPath(1)+".old"))
	check(t, os.WriteFile(s.packPath(1), nil, 0o644))
	p, err := b.lockPack(f, 1, 10)
	check(t, err)
	if p != nil {
		t.Error("a replaced pack was taken")
	}
}

func TestPresent(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	small := putOne(t, b, 1, 100)
	large, _, err := b.PutFile(sourceFile(t, content(2, 1<<20)), "large")
	check(t, err)
	syncCommit(t, b, tab)
	for h, loc := range tab.all() {
		check(t, s.Present(h, loc))
		longer := loc
		longer.Length++
		wantDamage(t, s.Present(h, longer), h, "")
	}
	loc := tab.all()[small]
	wantErr(t, s.Present(large, loc), ErrDamaged)
	wantErr(t, s.Present(small, Location{9, packHeaderSize, 1}), fs.ErrNotExist)
	wantErr(t, s.Present(small, Location{1, 1, 1}), ErrDamaged)
	check(t, patch(s.packPath(1), int64(loc.Offset), 0))
	wantDamage(t, s.Present(small, loc), small, s.packPath(1))
	check(t, os.Remove(s.wholePath(&large)))
	wantErr(t, s.Present(large, tab.all()[large]), fs.ErrNotExist)
}

// TestShortageIsNoDamage: what says something about the process alone must not be told as damage.
func TestShortageIsNoDamage(t *testing.T) {
	s := newStore(t)
	h := merkle.ContentHash(nil)
	for _, e := range []error{unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EACCES} {
		err := &fs.PathError{Op: "open", Path: "x", Err: e}
		if got := s.packError(&h, Location{Pack: 1}, err); errors.Is(got, ErrDamaged) || !errors.Is(got, e) {
			t.Errorf("%v becomes %v", e, got)
		}
		if got := s.wholeError(&h, err); errors.Is(got, ErrDamaged) || !errors.Is(got, e) {
			t.Errorf("%v becomes %v", e, got)
		}
	}
	if got := s.packError(&h, Location{Pack: 1}, unix.EIO); !errors.Is(got, ErrDamaged) || !errors.Is(got, unix.EIO) {
		t.Errorf("EIO becomes %v", got)
	}
}
