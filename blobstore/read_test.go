package blobstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// storeWith makes a store with small contents in one pack, all committed.
func storeWith(t testing.TB, datas ...[]byte) (*Store, *table, []merkle.Hash) {
	t.Helper()
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	var hs []merkle.Hash
	for _, d := range datas {
		h, err := b.PutBytes(d)
		check(t, err)
		hs = append(hs, h)
	}
	syncCommit(t, b, tab)
	check(t, b.Close())
	return s, tab, hs
}

func wantDamage(t testing.TB, err error, h merkle.Hash, path string) *DamageError {
	t.Helper()
	wantErr(t, err, ErrDamaged)
	d, ok := errors.AsType[*DamageError](err)
	if !ok || d.Hash != h {
		t.Fatalf("damage is told of %+v", d)
	}
	if !strings.Contains(err.Error(), h.String()) || !strings.Contains(err.Error(), path) {
		t.Fatalf("error does not name the content and %s: %v", path, err)
	}
	return d
}

// TestFlippedByteIsNoticed flips each byte of the middle one of three records, and one bit at a
// time in turn.
func TestFlippedByteIsNoticed(t *testing.T) {
	datas := [][]byte{content(1, 50), content(2, 60), content(3, 70)}
	s, tab, hs := storeWith(t, datas...)
	loc := tab.all()[hs[1]]
	raw, err := os.ReadFile(s.packPath(1))
	check(t, err)
	for off := loc.Offset; off < loc.end(); off++ {
		bit := byte(1) << (off % 8)
		check(t, patch(s.packPath(1), int64(off), raw[off]^bit))
		fresh := reopen(t, s.dir)
		got, err := fresh.ReadSmall(hs[1], loc, nil)
		if got != nil {
			t.Fatalf("byte %d flipped: %d bytes were served", off, len(got))
		}
		wantDamage(t, err, hs[1], s.packPath(1))
		wantErr(t, fresh.Verify(hs[1], loc), ErrDamaged)
		// The neighbours are not touched.
		wantContent(t, fresh, tab, hs[0], datas[0])
		wantContent(t, fresh, tab, hs[2], datas[2])
		check(t, patch(s.packPath(1), int64(off), raw[off]))
		wantContent(t, fresh, tab, hs[1], datas[1])
	}
}

func TestCutOffPack(t *testing.T) {
	s, tab, hs := storeWith(t, content(1, 50), content(2, 60))
	loc := tab.all()[hs[1]]
	for size := int64(loc.end()) - 1; size >= 0; size -= 7 {
		check(t, os.Truncate(s.packPath(1), size))
		fresh := reopen(t, s.dir)
		_, err := fresh.ReadSmall(hs[1], loc, nil)
		wantDamage(t, err, hs[1], s.packPath(1))
	}
	check(t, os.Remove(s.packPath(1)))
	fresh := reopen(t, s.dir)
	_, err := fresh.ReadSmall(hs[1], loc, nil)
	wantDamage(t, err, hs[1], s.packPath(1))
	wantErr(t, err, fs.ErrNotExist)
}

// TestImpossibleLocations: an index that lies costs an error, not memory and not a panic.
func TestImpossibleLocations(t *testing.T) {
	s, _, hs := storeWith(t, content(1, 50), content(2, 60))
	for _, loc := range []Location{
		{1, 8, math.MaxUint64}, {1, 8, MaxRecord + 1}, {1, 8, MaxRecord}, {1, 8, 49}, {1, 8, 51},
		{1, math.MaxUint64, 50}, {1, math.MaxInt64, 50}, {1, 0, 50}, {1, 9, 50}, {1, 102, 60},
		{2, 8, 50}, {math.MaxUint32, 8, 50},
	} {
		if _, err := s.ReadSmall(hs[0], loc, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("%+v: %v", loc, err)
		}
	}
	_, err := s.ReadSmall(hs[0], Location{Length: 50}, nil)
	wantErr(t, err, ErrLocation)
}

// TestNothingButPacksIsOpened: what stands in the place of a pack is not followed and not waited on.
func TestNothingButPacksIsOpened(t *testing.T) {
	for name, place := range map[string]func(path string) error{
		"FIFO":    func(p string) error { return unix.Mkfifo(p, 0o644) },
		"symlink": func(p string) error { return os.Symlink("00000002.pack", p) },
		"folder":  func(p string) error { return os.Mkdir(p, 0o755) },
	} {
		t.Run(name, func(t *testing.T) {
			s, tab, hs := storeWith(t, content(1, 50))
			check(t, os.Rename(s.packPath(1), s.packPath(2)))
			check(t, place(s.packPath(1)))
			_, err := s.ReadSmall(hs[0], tab.all()[hs[0]], nil)
			wantDamage(t, err, hs[0], s.packPath(1))
		})
	}
}

func TestReplacedPackIsOpenedAnew(t *testing.T) {
	s, tab, hs := storeWith(t, content(1, 50), content(2, 60))
	wantContent(t, s, tab, hs[1], content(2, 60)) // the descriptor is cached now
	other, otherTab, _ := storeWith(t, content(2, 60))
	check(t, os.Rename(other.packPath(1), s.packPath(1)))
	wantContent(t, s, otherTab, hs[1], content(2, 60))
}

func TestReadSmallReusesMemory(t *testing.T) {
	s, tab, hs := storeWith(t, content(1, 5000), content(2, 100))
	dst := make([]byte, 0, 5000+RecordHeader)
	for _, h := range hs {
		loc := tab.all()[h]
		got, err := s.ReadSmall(h, loc, dst)
		check(t, err)
		if &got[0] != &dst[:1][0] || cap(got) != cap(dst) {
			t.Error("the caller's memory was not used, or lost capacity")
		}
		if raceEnabled {
			continue // the race detector allocates
		}
		if n := testing.AllocsPerRun(100, func() {
			if dst, err = s.ReadSmall(h, loc, dst); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("a warm read allocates %v times", n)
		}
	}
	got, err := s.ReadSmall(hs[1], tab.all()[hs[1]], make([]byte, 10))
	check(t, err)
	if !bytes.Equal(got, content(2, 100)) {
		t.Error("short dst: wrong bytes")
	}
}

// TestHashedOnce: the second read trusts the first, Verify does not, and a reopened store starts anew.
func TestHashedOnce(t *testing.T) {
	s, tab, hs := storeWith(t, content(1, 500))
	loc := tab.all()[hs[0]]
	wantContent(t, s, tab, hs[0], content(1, 500))
	check(t, patch(s.packPath(1), int64(loc.end())-1, ^content(1, 500)[499]))
	if got, err := s.ReadSmall(hs[0], loc, nil); err != nil || bytes.Equal(got, content(1, 500)) {
		t.Errorf("second read hashed again, or did not read: %v", err)
	}
	wantErr(t, s.Verify(hs[0], loc), ErrDamaged)
	// Known to be wrong now.
	_, err := s.ReadSmall(hs[0], loc, nil)
	wantDamage(t, err, hs[0], s.packPath(1))
}

func TestVerifiedTable(t *testing.T) {
	var v verified
	h := merkle.ContentHash([]byte("x"))
	loc := Location{1, 8, 1}
	if v.has(&h, loc) {
		t.Error("an empty table knows a record")
	}
	v.add(&h, loc)
	for _, other := range []Location{{2, 8, 1}, {1, 9, 1}, {1, 8, 2}} {
		if v.has(&h, other) {
			t.Errorf("%+v is taken for %+v", other, loc)
		}
	}
	v.remove(&h, Location{2, 8, 1})
	if !v.has(&h, loc) {
		t.Error("removed by another place's removal")
	}
	v.remove(&h, loc)
	if v.has(&h, loc) {
		t.Error("still there after removal")
	}
}

func TestWholeFilesAreShared(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	data := content(1, 1<<20)
	h, _, err := b.PutFile(sourceFile(t, data), "source")
	check(t, err)
	syncCommit(t, b, tab)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				f, err := s.Whole(h)
				if err != nil {
					t.Error(err)
					return
				}
				buf := make([]byte, 100)
				if _, err := f.File().ReadAt(buf, 5000); err != nil || !bytes.Equal(buf, data[5000:5100]) {
					t.Errorf("wrong bytes, %v", err)
				}
				f.Release()
			}
		})
	}
	wg.Wait()
	f, err := s.Whole(h)
	check(t, err)
	defer f.Release()
	if f.Size() != 1<<20 {
		t.Errorf("size is %d", f.Size())
	}
	if _, err := f.File().Write([]byte("x")); err == nil {
		t.Error("a whole file could be written to")
	}
}

// TestBadWholeFileIsNotServed until another file stands in its place, and adding the source again
// puts one there.
func TestBadWholeFileIsNotServed(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	data := content(1, 1<<20)
	src := sourceFile(t, data)
	h, _, err := b.PutFile(src, "source")
	check(t, err)
	syncCommit(t, b, tab)
	path := s.wholePath(&h)
	check(t, s.VerifyWhole(h))
	f, err := s.Whole(h)
	check(t, err)
	f.Release()

	check(t, os.Chmod(path, 0o644))
	check(t, patch(path, 1<<19, ^data[1<<19]))
	check(t, os.Chmod(path, 0o444))
	wantDamage(t, s.VerifyWhole(h), h, path)
	_, err = s.Whole(h)
	wantDamage(t, err, h, path)
	wantErr(t, s.Verify(h, tab.all()[h]), ErrDamaged)

	b = begin(t, s, tab) // the first one still knows that it stored the content
	if _, _, err := b.PutFile(src, "source"); err != nil {
		t.Fatal(err)
	}
	syncCommit(t, b, tab)
	wantContent(t, s, tab, h, data)
	check(t, s.VerifyWhole(h))
}

func TestMissingWholeFile(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	src := sourceFile(t, content(1, 1<<20))
	h, _, err := b.PutFile(src, "source")
	check(t, err)
	syncCommit(t, b, tab)
	check(t, os.Remove(s.wholePath(&h)))
	_, err = s.Whole(h)
	wantDamage(t, err, h, s.wholePath(&h))
	wantErr(t, err, fs.ErrNotExist)
	wantErr(t, s.VerifyWhole(h), fs.ErrNotExist)
	b = begin(t, s, tab)
	_, _, err = b.PutFile(src, "source")
	check(t, err)
	syncCommit(t, b, tab)
	check(t, s.Verify(h, tab.all()[h]))
	wantErr(t, s.Verify(h, Location{Length: 5}), ErrDamaged)
}

func TestDescriptorCacheIsBounded(t *testing.T) {
	opened := map[int]*os.File{}
	c := newFDCache(3, func(n int) (*File, error) {
		if n < 0 {
			return nil, fs.ErrNotExist
		}
		f, err := os.Open(os.DevNull)
		opened[n] = f
		return newFile(f, fileStat{}), err
	})
	closed := func(n int) bool { return opened[n].Fd() == ^uintptr(0) }
	held, err := c.get(0)
	check(t, err)
	for n := 1; n <= 5; n++ {
		f, err := c.get(n)
		check(t, err)
		f.Release()
	}
	for n, want := range []bool{false, true, true, false, false, false} {
		if closed(n) != want {
			t.Errorf("file %d closed: %v, want %v", n, !want, want)
		}
	}
	if c.lru.Len() != 3 {
		t.Errorf("%d files are cached", c.lru.Len())
	}
	held.Release()
	if !closed(0) {
		t.Error("the last user did not close a file that fell out")
	}
	again, err := c.get(0)
	check(t, err)
	if again == held {
		t.Error("a closed file was lent")
	}
	c.drop(0, held) // another one stands there: stays
	if c.lru.Len() != 3 {
		t.Error("the wrong file was dropped")
	}
	c.drop(0, again)
	again.Release()
	if !closed(0) {
		t.Error("a dropped file stays open")
	}
	_, err = c.get(-1)
	wantErr(t, err, fs.ErrNotExist)
	check(t, c.purge())
	for n := range opened {
		if !closed(n) {
			t.Errorf("file %d is open after purge", n)
		}
	}
}

func TestDamageErrorText(t *testing.T) {
	h := merkle.ContentHash([]byte("abc"))
	for _, c := range []struct {
		err  *DamageError
		want string
	}{
		{&DamageError{Hash: h, Path: "w", Reason: "r"}, fmt.Sprintf("content %s is damaged: w: r", h)},
		{&DamageError{Hash: h, Pack: 1, Offset: 8, Path: "p", Reason: "r", Err: unix.EIO},
			fmt.Sprintf("content %s is damaged: p at offset 8: r: input/output error", h)},
		{&DamageError{Pack: 1, Offset: 8, Path: "p", Reason: "r"}, "record is damaged: p at offset 8: r"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
