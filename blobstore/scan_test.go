package blobstore

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bole/merkle"
)

// scanned collects what Scan finds.
type scanned struct {
	good   []Record
	damage []*DamageError
}

func scan(t testing.TB, s *Store, o ScanOptions) scanned {
	t.Helper()
	var out scanned
	check(t, s.Scan(o, func(f Found) error {
		if f.Err == nil {
			out.good = append(out.good, f.Record)
			return nil
		}
		d, ok := errors.AsType[*DamageError](f.Err)
		if !ok || !errors.Is(f.Err, ErrDamaged) {
			t.Errorf("scan reports %v", f.Err)
			return nil
		}
		out.damage = append(out.damage, d)
		return nil
	}))
	return out
}

func (s scanned) has(h merkle.Hash) bool {
	return slices.ContainsFunc(s.good, func(r Record) bool { return r.Hash == h })
}

func TestRebuildFindsWhatTheTableKnew(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	for i := range uint64(200) {
		putOne(t, b, i, int(i*i*7%(128<<10)))
	}
	putLargeOnes(t, b, 500, 3)
	syncCommit(t, b, tab)
	check(t, b.Close())

	got := newTable()
	ends, err := s.Rebuild(func(f Found) error {
		got.commit([]Record{f.Record}, nil)
		return f.Err
	})
	check(t, err)
	got.commit(nil, ends)
	if len(got.recs) != len(tab.recs) || len(got.ends) != len(tab.ends) {
		t.Fatalf("%d records and %d packs, want %d and %d", len(got.recs), len(got.ends), len(tab.recs), len(tab.ends))
	}
	for h, loc := range tab.recs {
		if got.recs[h] != loc {
			t.Errorf("%s lies at %+v, rebuilt as %+v", h, loc, got.recs[h])
		}
	}
	for n, end := range tab.ends {
		if got.ends[n] != end {
			t.Errorf("pack %d ends at %d, rebuilt as %d", n, end, got.ends[n])
		}
	}
	// The rebuilt table serves a writer.
	b = begin(t, s, got)
	h := putOne(t, b, 1000, 100)
	syncCommit(t, b, got)
	check(t, s.Verify(h, got.all()[h]))
	verifyAll(t, s, tab)
}

// TestScanGoesOnBehindDamage flips each byte of the middle record: it is reported at its place, and
// the others are found.
func TestScanGoesOnBehindDamage(t *testing.T) {
	s, tab, hs := storeWith(t, content(1, 50), content(2, 60), content(3, 70))
	loc := tab.all()[hs[1]]
	raw, err := os.ReadFile(s.packPath(1))
	check(t, err)
	for off := loc.Offset; off < loc.end(); off++ {
		for _, bit := range []byte{1, 0x80} {
			check(t, patch(s.packPath(1), int64(off), raw[off]^bit))
			got := scan(t, s, ScanOptions{Contents: true})
			if len(got.good) != 2 || !got.has(hs[0]) || !got.has(hs[2]) {
				t.Fatalf("byte %d flipped: %d sound records", off-loc.Offset, len(got.good))
			}
			if len(got.damage) != 1 || got.damage[0].Offset != loc.Offset || got.damage[0].Pack != 1 {
				t.Fatalf("byte %d flipped: damage is %v", off-loc.Offset, got.damage)
			}
		}
		check(t, patch(s.packPath(1), int64(off), raw[off]))
	}
	if got := scan(t, s, ScanOptions{Contents: true}); len(got.damage) != 0 || len(got.good) != 3 {
		t.Errorf("whole again: %d sound, damage %v", len(got.good), got.damage)
	}
}

func TestScanOfCutOffPack(t *testing.T) {
	s, tab, hs := storeWith(t, content(1, 50), content(2, 60))
	loc := tab.all()[hs[1]]
	for size := loc.end() - 1; size > 0; size-- {
		check(t, os.Truncate(s.packPath(1), int64(size)))
		for _, o := range []ScanOptions{{}, {Contents: true}, {Contents: true, PackEnd: tab.packEnd}} {
			got := scan(t, s, o)
			if want := size >= loc.Offset; got.has(hs[0]) != want || got.has(hs[1]) {
				t.Fatalf("%d bytes: found %v", size, got.good)
			}
			boundary := size == loc.Offset || size == packHeaderSize
			if len(got.damage) == 0 && (!boundary || o.PackEnd != nil) {
				t.Fatalf("%d bytes, %+v: no damage reported", size, o)
			}
		}
	}
	check(t, os.Remove(s.packPath(1)))
	// A pack that is gone is no file to scan: the locations that name it are found out by Verify.
	wantErr(t, s.Verify(hs[0], tab.all()[hs[0]]), ErrDamaged)
}

// TestScanStopsAtTheCommittedEnd: what a killed writer left is no damage.
func TestScanStopsAtTheCommittedEnd(t *testing.T) {
	s, tab, hs := storeWith(t, content(1, 50))
	f, err := os.OpenFile(s.packPath(1), os.O_WRONLY|os.O_APPEND, 0)
	check(t, err)
	_, err = f.Write(content(2, 100))
	check(t, errors.Join(err, f.Close()))
	check(t, os.WriteFile(s.packPath(2), content(3, 5), 0o644))
	got := scan(t, s, ScanOptions{Contents: true, PackEnd: tab.packEnd})
	if len(got.damage) != 0 || len(got.good) != 1 || !got.has(hs[0]) {
		t.Errorf("sound %v, damage %v", got.good, got.damage)
	}
	if got := scan(t, s, ScanOptions{Contents: true}); len(got.damage) == 0 {
		t.Error("without ends, the torn tail is not reported")
	}
}

// TestScanFindsRecordsInsideContents only behind damage, and never as a second copy of sound bytes.
func TestScanFindsRecordsInsideContents(t *testing.T) {
	inner := content(1, 30)
	h := merkle.ContentHash(inner)
	record := make([]byte, RecordHeader, 100)
	putRecordHeader(record, &h, uint64(len(inner)))
	outer := slices.Concat(content(2, 40), record, inner, content(3, 40))
	s, tab, hs := storeWith(t, outer, content(4, 10))
	if got := scan(t, s, ScanOptions{Contents: true}); got.has(h) || len(got.good) != 2 {
		t.Errorf("a record inside a sound content was taken for one: %v", got.good)
	}
	loc := tab.all()[hs[0]]
	check(t, patch(s.packPath(1), int64(loc.Offset), 0))
	got := scan(t, s, ScanOptions{Contents: true})
	if !got.has(hs[1]) || len(got.damage) == 0 {
		t.Errorf("sound %v, damage %v", got.good, got.damage)
	}
	for _, r := range got.good {
		check(t, s.Verify(r.Hash, r.Location))
	}
}

// TestScanSearchIsBounded: a damaged pack full of bytes that look like headers is given up, not
// hashed for hours.
func TestScanSearchIsBounded(t *testing.T) {
	s := newStore(t)
	head := packHeader([16]byte{})
	fake := make([]byte, RecordHeader)
	putRecordHeader(fake, &merkle.Hash{1}, 1<<18)
	pack := append(head[:], 'x')
	pack = append(pack, bytes.Repeat(fake, 3<<20/len(fake))...)
	check(t, os.WriteFile(s.packPath(1), pack, 0o644))
	got := scan(t, s, ScanOptions{Contents: true})
	if len(got.good) != 0 || len(got.damage) != 1 {
		t.Errorf("%d sound, %d damaged", len(got.good), len(got.damage))
	}
}

func TestScanOfWholeFiles(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	putLargeOnes(t, b, 1, 3)
	recs := syncCommit(t, b, tab)
	bad := s.wholePath(&recs[0].Hash)
	check(t, os.Chmod(bad, 0o644))
	check(t, patch(bad, 77, ^content(1, 78)[77]))
	// Names that are not the store's are left alone.
	check(t, os.WriteFile(filepath.Join(s.dir, wholeDir, "note"), nil, 0o644))
	check(t, os.WriteFile(filepath.Join(filepath.Dir(bad), "note"), nil, 0o644))
	check(t, os.Symlink("/etc/passwd", bad[:len(bad)-1]+"g"))
	if got := scan(t, s, ScanOptions{}); len(got.good) != 3 || len(got.damage) != 0 {
		t.Errorf("by name: %d sound, damage %v", len(got.good), got.damage)
	}
	got := scan(t, s, ScanOptions{Contents: true})
	if len(got.good) != 2 || len(got.damage) != 1 || got.damage[0].Hash != recs[0].Hash || got.damage[0].Path != bad {
		t.Errorf("by bytes: %d sound, damage %v", len(got.good), got.damage)
	}
	_, err := s.Whole(recs[0].Hash)
	wantErr(t, err, ErrDamaged)
	stop := errors.New("stop")
	wantErr(t, s.Scan(ScanOptions{}, func(Found) error { return stop }), stop)
}

func TestScanOfStrangePacks(t *testing.T) {
	s, _, hs := storeWith(t, content(1, 50))
	check(t, os.WriteFile(s.packPath(2), []byte("not a pack at all, only text"), 0o644))
	check(t, os.WriteFile(s.packPath(3), nil, 0o644))
	check(t, os.Mkdir(s.packPath(4), 0o755))
	got := scan(t, s, ScanOptions{Contents: true})
	if !got.has(hs[0]) || len(got.good) != 1 {
		t.Errorf("found %v", got.good)
	}
	var packs []uint32
	for _, d := range got.damage {
		packs = append(packs, d.Pack)
	}
	if packs = slices.Compact(packs); !slices.Equal(packs, []uint32{2, 4}) {
		t.Errorf("damage in packs %v, want 2 and 4: %v", packs, got.damage)
	}
}

func TestUsage(t *testing.T) {
	s, tab := newStore(t), newTable()
	if u, err := s.Usage(); err != nil || u != (Usage{}) {
		t.Errorf("an empty store uses %+v, %v", u, err)
	}
	b := begin(t, s, tab)
	putOne(t, b, 1, 1000)
	putLargeOnes(t, b, 2, 2)
	syncCommit(t, b, tab)
	u, err := s.Usage()
	check(t, err)
	if u.Packs != 1 || u.PackBytes != packHeaderSize+RecordHeader+1000 ||
		u.Whole != 2 || u.WholeBytes != 2*(DefaultLimit+1) {
		t.Errorf("usage is %+v", u)
	}
	if u.PackAllocated < u.PackBytes || u.WholeAllocated < u.WholeBytes {
		t.Errorf("less is allocated than stored: %+v", u)
	}
}
