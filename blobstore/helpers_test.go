package blobstore

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"bole/merkle"
)

// table stands for the caller's database: what commit was given is committed, and stays when the
// store is opened anew.
type table struct {
	mu   sync.Mutex
	recs map[merkle.Hash]Location
	ends map[uint32]uint64
}

func newTable() *table {
	return &table{recs: map[merkle.Hash]Location{}, ends: map[uint32]uint64{}}
}

func (t *table) index(h merkle.Hash) (Location, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	loc, ok := t.recs[h]
	return loc, ok, nil
}

func (t *table) packEnd(n uint32) (uint64, bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	end, ok := t.ends[n]
	return end, ok, nil
}

func (t *table) commit(recs []Record, ends []PackEnd) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, r := range recs {
		// The stored form is what a database would give back.
		loc, err := DecodeLocation(r.Location.Encode())
		if err != nil {
			panic(err)
		}
		t.recs[r.Hash] = loc
	}
	for _, e := range ends {
		t.ends[e.Pack] = e.End
	}
}

func (t *table) all() map[merkle.Hash]Location {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.recs)
}

// newStore makes an empty store with packs of at most 4 MiB, so that they roll over in tests.
func newStore(t testing.TB) *Store {
	t.Helper()
	return createAt(t, filepath.Join(t.TempDir(), "contents"))
}

func createAt(t testing.TB, dir string) *Store {
	t.Helper()
	check(t, Create(dir, Options{}))
	return reopen(t, dir)
}

func reopen(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir, Options{})
	check(t, err)
	s.packSize = 4 << 20
	t.Cleanup(func() { check(t, s.Close()) })
	return s
}

func begin(t testing.TB, s *Store, tab *table) *Batch {
	t.Helper()
	b, err := s.Begin(tab.index, tab.packEnd)
	check(t, err)
	t.Cleanup(func() { check(t, b.Close()) })
	return b
}

// syncCommit is a barrier and the transaction behind it.
func syncCommit(t testing.TB, b *Batch, tab *table) []Record {
	t.Helper()
	recs, ends, err := b.Sync()
	check(t, err)
	tab.commit(recs, ends)
	return recs
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantErr(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("error is %v, want %v", err, want)
	}
}

// content makes n bytes that are the same for the same seed.
func content(seed uint64, n int) []byte {
	var key [32]byte
	for i := range 8 {
		key[i] = byte(seed >> (8 * i))
	}
	b := make([]byte, n)
	rand.NewChaCha8(key).Read(b)
	return b
}

// sourceFile writes a file outside the store and opens it for reading.
func sourceFile(t testing.TB, data []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "source")
	check(t, os.WriteFile(path, data, 0o644))
	return openSource(t, path)
}

func openSource(t testing.TB, path string) *os.File {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	t.Cleanup(func() { f.Close() })
	return f
}

// readBack returns the bytes of a content, wherever it lies.
func readBack(t testing.TB, s *Store, h merkle.Hash, loc Location) []byte {
	t.Helper()
	if loc.Pack != 0 {
		data, err := s.ReadSmall(h, loc, nil)
		check(t, err)
		return data
	}
	f, err := s.Whole(h)
	check(t, err)
	defer f.Release()
	data := make([]byte, f.Size())
	_, err = f.File().ReadAt(data, 0)
	check(t, err)
	return data
}

// wantContent checks that a content reads back as what was put in.
func wantContent(t testing.TB, s *Store, tab *table, h merkle.Hash, want []byte) {
	t.Helper()
	loc, ok, _ := tab.index(h)
	if !ok {
		t.Fatalf("content %s is not in the table", h)
	}
	if got := readBack(t, s, h, loc); !bytes.Equal(got, want) {
		t.Fatalf("content %s: got %d bytes that differ from the %d put in", h, len(got), len(want))
	}
}

// verifyAll hashes everything the table names.
func verifyAll(t testing.TB, s *Store, tab *table) {
	t.Helper()
	for h, loc := range tab.all() {
		check(t, s.Verify(h, loc))
	}
}

// names lists a folder of the store.
func names(t testing.TB, s *Store, dir string) []string {
	t.Helper()
	list, err := readNames(filepath.Join(s.dir, dir))
	check(t, err)
	return list
}
