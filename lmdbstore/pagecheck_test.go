package lmdbstore

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// damages returns what CheckFile reports.
func damages(t testing.TB, dir string) (found []Damage) {
	t.Helper()
	err := CheckFile(dir, Options{}, func(d Damage) error {
		found = append(found, d)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// mixedDir returns a closed database with all kinds of pages in it.
func mixedDir(t testing.TB) string {
	t.Helper()
	s := newStore(t)
	update(t, s, putNodes(0, 3000, 700))
	for round := range 4 {
		update(t, s, func(w *Writer) error {
			for i := range 600 {
				if err := w.Put(Blobs, fmt.Appendf(nil, "blob %d", i*(round+1)), make([]byte, 50+round)); err != nil {
					return err
				}
			}
			return putNodes(3000+20*round, 3020+20*round, 9000)(w)
		})
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.Dir()
}

func TestCheckSoundDatabase(t *testing.T) {
	if found := damages(t, newDir(t)); found != nil {
		t.Errorf("empty: %v", found)
	}
	dir := mixedDir(t)
	if found := damages(t, dir); found != nil {
		t.Errorf("full: %v", found)
	}
	s := openDir(t, dir)
	mustFail(t, CheckFile(dir, Options{}, nil), ErrOpenTwice)
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := 5000; ; i++ {
			select {
			case <-stop:
				return
			default:
				s.Update(putNodes(i, i+1, 700))
			}
		}
	}()
	for range 20 {
		if err := s.CheckPages(func(d Damage) error { return fmt.Errorf("%v", d) }); err != nil {
			t.Errorf("beside a writer: %v", err)
		}
	}
	close(stop)
	<-done
}

// pagesOfKind returns the numbers of the pages in use with these flags.
func pagesOfKind(file []byte, flags uint16) (pages []uint64) {
	for n := uint64(2); n < uint64(len(file)/4096); n++ {
		if page := rawPage(file[n*4096:][:4096]); page.flags() == flags && page.number() == n {
			pages = append(pages, n)
		}
	}
	return pages
}

func TestCheckFindsDamage(t *testing.T) {
	dir := mixedDir(t)
	whole, err := os.ReadFile(filepath.Join(dir, "data.mdb"))
	if err != nil {
		t.Fatal(err)
	}
	le := binary.LittleEndian
	for _, c := range []struct {
		name   string
		kind   uint16
		change func(page rawPage)
		reason string
	}{
		{"another number", pageLeaf, func(p rawPage) { le.PutUint64(p, 3) }, "says that it is page 3"},
		{"another kind", pageLeaf, func(p rawPage) { p[10] = pageOverflow }, "is of kind 0x4"},
		{"a leaf without records", pageLeaf, func(p rawPage) { le.PutUint16(p[12:], pageHeader) }, "bounds"},
		{"slots over records", pageLeaf, func(p rawPage) { le.PutUint16(p[12:], 4000) }, "bounds"},
		{"a record outside", pageLeaf, func(p rawPage) { le.PutUint16(p[16:], 5000) }, "outside"},
		{"a long key", pageLeaf, func(p rawPage) { rec, _, _ := p.record(0); le.PutUint16(rec[6:], 4000) }, "outside"},
		{"a long value", pageLeaf, func(p rawPage) { rec, _, _ := p.record(0); le.PutUint32(rec, 1<<30) }, "outside"},
		{"swapped records", pageLeaf, func(p rawPage) {
			a, b := le.Uint16(p[16:]), le.Uint16(p[18:])
			le.PutUint16(p[16:], b)
			le.PutUint16(p[18:], a)
		}, "out of order"},
		{"a record of another kind", pageLeaf, func(p rawPage) { rec, _, _ := p.record(0); rec[4] = 4 }, "kind 0x4"},
		{"a branch with one child", pageBranch, func(p rawPage) { le.PutUint16(p[12:], pageHeader+2) }, "bounds"},
		{"a child behind the end", pageBranch, func(p rawPage) { rec, _, _ := p.record(1); rec[3] = 0x7F }, "behind the last page"},
		{"a child twice", pageBranch, func(p rawPage) {
			a, _, _ := p.record(0)
			b, _, _ := p.record(1)
			copy(a[:6], b[:6])
		}, "twice"},
		{"swapped children", pageBranch, func(p rawPage) {
			a, b := le.Uint16(p[18:]), le.Uint16(p[20:])
			le.PutUint16(p[18:], b)
			le.PutUint16(p[20:], a)
		}, "out of order"},
		{"an overflow page of another number", pageOverflow, func(p rawPage) { le.PutUint64(p, 3) }, "is not the first of 3 overflow pages"},
		{"fewer overflow pages", pageOverflow, func(p rawPage) { le.PutUint32(p[12:], 2) }, "is not the first of 3 overflow pages"},
	} {
		t.Run(c.name, func(t *testing.T) {
			// One of the pages of that kind is in use; the others may be free.
			for _, n := range pagesOfKind(whole, c.kind) {
				b := bytes.Clone(whole)
				c.change(b[n*4096:][:4096])
				bad := writeDatabase(t, b)
				for _, d := range damages(t, bad) {
					if strings.Contains(d.Reason, c.reason) {
						if !strings.Contains(d.String(), d.Table) || d.Table == "" {
							t.Errorf("%v", d)
						}
						return
					}
				}
			}
			t.Errorf("not found")
		})
	}
}

// writeDatabase makes a folder whose data.mdb holds these bytes.
func writeDatabase(t testing.TB, b []byte) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "db")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data.mdb"), b, 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestCheckStopsWhenTold(t *testing.T) {
	dir := mixedDir(t)
	whole, err := os.ReadFile(filepath.Join(dir, "data.mdb"))
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range pagesOfKind(whole, pageLeaf) {
		whole[n*4096+10] = 0xFF
	}
	boom := errors.New("boom")
	calls := 0
	err = CheckFile(writeDatabase(t, whole), Options{}, func(Damage) error { calls++; return boom })
	mustFail(t, err, boom)
	if calls != 1 {
		t.Errorf("%d calls", calls)
	}
}

// smallPage is a page of 256 bytes with these records, for the fuzzer: it
// spends its time on what matters when the input is short.
func smallPage(flags uint16, records ...[]byte) []byte {
	le := binary.LittleEndian
	page := make([]byte, 256)
	le.PutUint64(page, 5)
	le.PutUint16(page[10:], flags)
	upper := len(page)
	for i, rec := range records {
		upper -= (len(rec) + 1) &^ 1
		copy(page[upper:], rec)
		le.PutUint16(page[pageHeader+2*i:], uint16(upper))
	}
	le.PutUint16(page[12:], uint16(pageHeader+2*len(records)))
	le.PutUint16(page[14:], uint16(upper))
	return page
}

func TestSmallPage(t *testing.T) {
	page := rawPage(smallPage(pageLeaf,
		[]byte("\x03\x00\x00\x00\x00\x00\x02\x00k1abc"),
		[]byte("\x00\x10\x00\x00\x01\x00\x02\x00k2\x07\x00\x00\x00\x00\x00\x00\x00")))
	if n, ok := page.count(); n != 2 || !ok || page.number() != 5 {
		t.Fatalf("%d records, %v", n, ok)
	}
	if r, ok := page.leaf(0); !ok || string(r.key) != "k1" || string(r.value) != "abc" || r.flags != 0 {
		t.Errorf("%+v, %v", r, ok)
	}
	if r, ok := page.leaf(1); !ok || string(r.key) != "k2" || r.overflow != 7 || r.size != 4096 {
		t.Errorf("%+v, %v", r, ok)
	}
	if _, ok := page.leaf(2); ok {
		t.Error("a third record")
	}
}

// FuzzRawPage: no bytes make the decoder of pages panic or lend what lies
// outside the page.
func FuzzRawPage(f *testing.F) {
	f.Add(make([]byte, 256))
	f.Add([]byte("short"))
	f.Add(smallPage(pageLeaf,
		[]byte("\x03\x00\x00\x00\x00\x00\x02\x00k1abc"),
		[]byte("\x00\x10\x00\x00\x01\x00\x02\x00k2\x07\x00\x00\x00\x00\x00\x00\x00")))
	f.Add(smallPage(pageBranch,
		[]byte("\x03\x00\x00\x00\x00\x00\x00\x00"),
		[]byte("\x04\x00\x00\x00\x00\x00\x02\x00k2")))
	f.Fuzz(func(t *testing.T, b []byte) {
		page := make(rawPage, 256)
		copy(page, b)
		page.number()
		page.overflowPages()
		decodeMeta(page)
		decodeTable(b)
		n, ok := page.count()
		if ok && n > len(page)/2 {
			t.Errorf("%d records", n)
		}
		for i := -1; i <= n; i++ {
			_, key, isChild := page.child(i)
			r, isLeaf := page.leaf(i)
			if (isChild || isLeaf) && (i < 0 || i >= n) {
				t.Errorf("record %d of %d", i, n)
			}
			if isChild && len(key) > len(page) || isLeaf && len(r.key)+len(r.value) > len(page) {
				t.Errorf("record %d: keys of %d and %d bytes, a value of %d", i, len(key), len(r.key), len(r.value))
			}
		}
	})
}
