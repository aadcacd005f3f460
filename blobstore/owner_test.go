package blobstore

import (
	"bytes"
	"errors"
	"io/fs"
	"maps"
	"os"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"bole/merkle"
)

// copyOf is what a copied database knows.
func (t *table) copyOf() *table {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &table{recs: maps.Clone(t.recs), ends: maps.Clone(t.ends)}
}

// owned opens a store for the table with this owner.
func owned(t testing.TB, dir string, owner byte) *Store {
	t.Helper()
	s := reopen(t, dir)
	s.opts.Owner = [16]byte{15: owner}
	return s
}

// TestPackOfAnotherOwner is neither appended to nor cut back by a table that knows less of it.
func TestPackOfAnotherOwner(t *testing.T) {
	for _, owner := range []byte{1, 0} { // 0: a caller that names none
		dir, first := newStore(t).dir, newTable()
		s := owned(t, dir, 7)
		store := func(s *Store, tab *table, seed uint64) Location {
			t.Helper()
			b := begin(t, s, tab)
			h := putOne(t, b, seed, 100)
			syncCommit(t, b, tab)
			check(t, b.Close())
			return tab.all()[h]
		}
		store(s, first, 1)
		second, other := first.copyOf(), owned(t, dir, owner)
		if loc := store(s, first, 2); loc.Pack != 1 {
			t.Fatalf("the owner wrote to pack %d", loc.Pack)
		}
		before, err := os.ReadFile(s.packPath(1))
		check(t, err)
		if loc := store(other, second, 3); loc.Pack != 2 {
			t.Errorf("another owner wrote to pack %d", loc.Pack)
		}
		if loc := store(other, second, 4); loc.Pack != 2 {
			t.Errorf("another owner left its own pack for pack %d", loc.Pack)
		}
		if after, err := os.ReadFile(s.packPath(1)); err != nil || !bytes.Equal(after, before) {
			t.Errorf("the pack changed in another owner's hands: %v", err)
		}
		if loc := store(s, first, 5); loc.Pack != 1 {
			t.Errorf("the owner left its pack for pack %d", loc.Pack)
		}
		verifyAll(t, s, first)
		verifyAll(t, s, second) // readers do not ask for the owner
		verifyAll(t, other, first)
	}
}

// TestCopiedTables: however tables are copied, and whoever stores next or dies on the way, every
// table reads all that it knows.
func TestCopiedTables(t *testing.T) {
	dir := newStore(t).dir
	rapid.Check(t, func(rt *rapid.T) {
		check(t, os.RemoveAll(dir))
		check(t, Create(dir, Options{}))
		tabs := []*table{newTable()}
		contents := map[merkle.Hash][]byte{}
		for seed := range uint64(rapid.IntRange(1, 20).Draw(rt, "steps")) {
			i := rapid.IntRange(0, len(tabs)-1).Draw(rt, "table")
			if len(tabs) < 4 && rapid.Bool().Draw(rt, "copy") {
				tabs = append(tabs, tabs[i].copyOf())
				continue
			}
			s, err := Open(dir, Options{Owner: [16]byte{byte(i + 1)}})
			check(t, err)
			b, err := s.Begin(tabs[i].index, tabs[i].packEnd)
			check(t, err)
			data := content(seed, rapid.IntRange(0, 300).Draw(rt, "size"))
			h, err := b.PutBytes(data)
			check(t, err)
			contents[h] = data
			recs, ends, err := b.Sync()
			check(t, err)
			if rapid.IntRange(0, 3).Draw(rt, "dies") > 0 {
				tabs[i].commit(recs, ends)
			}
			check(t, errors.Join(b.Close(), s.Close()))
		}
		s, err := Open(dir, Options{})
		check(t, err)
		defer s.Close()
		for i, tab := range tabs {
			for h, loc := range tab.all() {
				if got, err := s.ReadSmall(h, loc, nil); err != nil || !bytes.Equal(got, contents[h]) {
					rt.Fatalf("table %d: content %s at %+v: %v", i, h, loc, err)
				}
			}
		}
	})
}

// TestOpenMissing: a folder that is not there, and the empty one where a disk is not mounted.
func TestOpenMissing(t *testing.T) {
	empty := t.TempDir()
	for _, dir := range []string{empty, empty + "/none"} {
		_, err := Open(dir, Options{})
		wantErr(t, err, fs.ErrNotExist)
		if want := "the contents folder " + dir + " is missing or not mounted"; !strings.Contains(err.Error(), want) {
			t.Errorf("error %q does not say %q", err, want)
		}
	}
}
