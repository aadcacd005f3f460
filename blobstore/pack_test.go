package blobstore

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"bole/merkle"
)

func putOne(t testing.TB, b *Batch, seed uint64, n int) merkle.Hash {
	t.Helper()
	h, err := b.PutBytes(content(seed, n))
	check(t, err)
	return h
}

func packSizeOnDisk(t testing.TB, s *Store, n uint32) int64 {
	t.Helper()
	fi, err := os.Stat(s.packPath(n))
	check(t, err)
	return fi.Size()
}

func TestTornTailDisappears(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	first := putOne(t, b, 1, 1000)
	syncCommit(t, b, tab)
	check(t, b.Close())
	end := int64(tab.ends[1])

	// What a writer leaves that was killed in the middle of a record.
	f, err := os.OpenFile(s.packPath(1), os.O_WRONLY|os.O_APPEND, 0)
	check(t, err)
	_, err = f.Write(content(2, 77))
	check(t, errors.Join(err, f.Close()))

	b = begin(t, s, tab)
	second := putOne(t, b, 3, 500)
	syncCommit(t, b, tab)
	if loc := tab.all()[second]; loc.Pack != 1 || int64(loc.Offset) != end {
		t.Errorf("the next record went to %+v, want pack 1 offset %d", loc, end)
	}
	if got, want := packSizeOnDisk(t, s, 1), end+RecordHeader+500; got != want {
		t.Errorf("pack has %d bytes, want %d", got, want)
	}
	wantContent(t, s, tab, first, content(1, 1000))
	wantContent(t, s, tab, second, content(3, 500))
}

func TestTwoWritersTakeTwoPacks(t *testing.T) {
	s, tab := newStore(t), newTable()
	other := reopen(t, s.dir)
	a, b := begin(t, s, tab), begin(t, other, tab)
	ha, hb := putOne(t, a, 1, 100), putOne(t, b, 2, 100)
	syncCommit(t, a, tab)
	syncCommit(t, b, tab)
	if pa, pb := tab.all()[ha].Pack, tab.all()[hb].Pack; pa == pb {
		t.Fatalf("both wrote to pack %d", pa)
	}
	verifyAll(t, s, tab)
	// Held until Close, not only until Sync: the end is not committed before that.
	c := begin(t, s, tab)
	hc := putOne(t, c, 3, 100)
	syncCommit(t, c, tab)
	if p := tab.all()[hc].Pack; p != 3 {
		t.Errorf("a third writer got pack %d", p)
	}
	for _, x := range []*Batch{a, b, c} {
		check(t, x.Close())
	}
	d := begin(t, s, tab)
	hd := putOne(t, d, 4, 100)
	syncCommit(t, d, tab)
	if p := tab.all()[hd].Pack; p != 3 {
		t.Errorf("a free pack was passed over for pack %d", p)
	}
}

func TestPacksRollOver(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	const n, size = 60, 128 << 10 // 7.5 MiB, in packs of 4 MiB
	for i := range uint64(n) {
		putOne(t, b, i, size)
	}
	syncCommit(t, b, tab)
	nums, err := s.packNumbers()
	check(t, err)
	if !slices.Equal(nums, []uint32{1, 2}) {
		t.Errorf("packs are %v, want 1 and 2", nums)
	}
	for _, num := range nums {
		if size := packSizeOnDisk(t, s, num); uint64(size) > s.packSize || uint64(size) != tab.ends[num] {
			t.Errorf("pack %d has %d bytes, committed %d, limit %d", num, size, tab.ends[num], s.packSize)
		}
	}
	verifyAll(t, s, tab)
	// A full pack whose end is committed is let go at the next Sync.
	putOne(t, b, n, 10)
	syncCommit(t, b, tab)
	if len(b.packs) != 1 {
		t.Errorf("%d packs are still held", len(b.packs))
	}
}

func TestUncommittedPackIsLeftAlone(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	putOne(t, b, 1, 100)
	_, _, err := b.Sync() // handed over, but the transaction never comes
	check(t, err)
	check(t, b.Close())
	size := packSizeOnDisk(t, s, 1)

	b = begin(t, s, tab)
	h := putOne(t, b, 2, 100)
	syncCommit(t, b, tab)
	if p := tab.all()[h].Pack; p != 2 {
		t.Errorf("appended to pack %d, of which the caller knows nothing", p)
	}
	if got := packSizeOnDisk(t, s, 1); got != size {
		t.Errorf("pack 1 went from %d to %d bytes", size, got)
	}
}

func TestDamagedPackIsNotAppendedTo(t *testing.T) {
	for name, harm := range map[string]func(path string) error{
		"shorter than committed": func(p string) error { return os.Truncate(p, 60) },
		"wrong magic":            func(p string) error { return patch(p, 0, 'X') },
		"a symlink": func(p string) error {
			return errors.Join(os.Rename(p, p+".away"), os.Symlink(p+".away", p))
		},
		"gone": os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			s, tab := newStore(t), newTable()
			b := begin(t, s, tab)
			putOne(t, b, 1, 100)
			syncCommit(t, b, tab)
			check(t, b.Close())
			check(t, harm(s.packPath(1)))

			b = begin(t, s, tab)
			h := putOne(t, b, 2, 100)
			syncCommit(t, b, tab)
			if p := tab.all()[h].Pack; p != 2 {
				t.Errorf("wrote to pack %d", p)
			}
			check(t, s.Verify(h, tab.all()[h]))
		})
	}
}

// patch replaces one byte of a file.
func patch(path string, off int64, b byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt([]byte{b}, off)
	return errors.Join(err, f.Close())
}

func TestCloseTakesBackWhatWasNotSynced(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	putOne(t, b, 1, 1000)
	if len(names(t, s, packsDir)) != 1 {
		t.Fatal("no pack was made")
	}
	check(t, b.Close())
	if left := names(t, s, packsDir); len(left) != 0 {
		t.Errorf("a pack without a record was left: %v", left)
	}

	b = begin(t, s, tab)
	putOne(t, b, 1, 1000)
	syncCommit(t, b, tab)
	putOne(t, b, 2, 5000)
	_, _, err := b.PutFile(sourceFile(t, content(3, 1<<20)), "source")
	check(t, err)
	check(t, b.Close())
	if got := packSizeOnDisk(t, s, 1); uint64(got) != tab.ends[1] {
		t.Errorf("pack has %d bytes, want %d", got, tab.ends[1])
	}
	if u, err := s.Usage(); err != nil || u.Whole != 0 || len(names(t, s, tmpDir)) != 0 {
		t.Errorf("left behind: %+v, %v, tmp %v", u, err, names(t, s, tmpDir))
	}
	if _, err := b.PutBytes([]byte("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed batch answers %v", err)
	}
}

func TestPackNames(t *testing.T) {
	for _, name := range []string{"", "1.pack", "00000000.pack", "0000000A.pack", "+0000001.pack",
		"00000001.pack.bak", "000000001.pack"} {
		if n, ok := parsePackName(name); ok {
			t.Errorf("%q is taken for pack %d", name, n)
		}
	}
	for _, n := range []uint32{1, 0xabcdef, 0xffffffff} {
		if got, ok := parsePackName(fmt.Sprintf("%08x.pack", n)); !ok || got != n {
			t.Errorf("pack %d is read as %d, %v", n, got, ok)
		}
	}
}
