package fs

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"bole/blobstore"
	"bole/lmdbstore"
	"bole/merkle"
	"bole/snapshot"
)

// builder makes a repository of one commit from what a test lists, and, where
// a test wants it, one that no honest program would write.
type builder struct {
	t       testing.TB
	dir     string
	changes []merkle.Change
	data    map[merkle.Hash][]byte
	root    merkle.Commit
	nodes   map[merkle.Hash][]byte // written as they are, under that name
	lost    map[merkle.Hash]bool   // contents that are left out
}

func newBuilder(t testing.TB) *builder {
	t.Helper()
	b := &builder{t: t, dir: t.TempDir(), data: map[merkle.Hash][]byte{}, nodes: map[merkle.Hash][]byte{}, lost: map[merkle.Hash]bool{}}
	b.root = merkle.Commit{RootPerm: 0o755, RootMtime: 1_600_000_000_000_000_007, Message: "test"}
	return b
}

// someTime is the time of what a test gives none.
const someTime = 1_500_000_000_123_456_789

func (b *builder) set(path string, e merkle.Entry) {
	b.changes = append(b.changes, merkle.Change{Path: []byte(path), Op: merkle.OpSet, Entry: e})
}

func (b *builder) dirAt(path string, perm uint16) {
	b.set(path, merkle.Entry{Kind: merkle.KindDir, Perm: perm, Mtime: someTime})
}

// file adds a file; change may alter its entry.
func (b *builder) file(path string, data []byte, change ...func(*merkle.Entry)) merkle.Hash {
	h := merkle.ContentHash(data)
	b.data[h] = data
	e := merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Size: uint64(len(data)), Hash: h, Mtime: someTime}
	for _, c := range change {
		c(&e)
	}
	b.set(path, e)
	return h
}

func (b *builder) symlink(path, target string) {
	e := merkle.Entry{Kind: merkle.KindSymlink, Perm: 0o777, Size: uint64(len(target)), Mtime: someTime}
	if len(target) <= merkle.InlineTarget {
		e.Target = []byte(target)
	} else {
		e.Hash = merkle.ContentHash([]byte(target))
		b.data[e.Hash] = []byte(target)
	}
	b.set(path, e)
}

// attrs stores a list of attributes and returns a change that gives an entry these.
func (b *builder) attrs(list ...merkle.Attr) merkle.Hash {
	enc, err := merkle.EncodeAttrs(list)
	check(b.t, err)
	h := merkle.NodeHash(enc)
	b.nodes[h] = enc
	return h
}

// build writes the repository and returns its folder and the commit.
func (b *builder) build() (string, merkle.Hash) {
	b.t.Helper()
	check(b.t, snapshot.Init(b.dir, snapshot.InitOptions{Bare: true}))
	db, err := lmdbstore.Open(filepath.Join(b.dir, ".bole/db"), lmdbstore.Options{})
	check(b.t, err)
	defer func() { check(b.t, db.Close()) }()
	records := b.store()
	slices.SortFunc(b.changes, func(x, y merkle.Change) int { return merkle.ComparePaths(x.Path, y.Path) })
	var id merkle.Hash
	check(b.t, db.Update(func(w *lmdbstore.Writer) error {
		for _, r := range records {
			if err := w.Put(lmdbstore.Blobs, r.Hash[:], r.Location.Encode()); err != nil {
				return err
			}
		}
		return db.View(func(rd *lmdbstore.Reader) (err error) {
			id, err = b.write(rd, w)
			return err
		})
	}))
	return b.dir, id
}

func (b *builder) write(rd merkle.Reader, w *lmdbstore.Writer) (merkle.Hash, error) {
	var id merkle.Hash
	for h, n := range b.nodes {
		if err := w.PutNode(h, n); err != nil {
			return id, err
		}
	}
	tree := b.root.Tree
	if tree.IsZero() {
		var err error
		tree, b.root.Totals, err = merkle.Apply(rd, w, merkle.Hash{}, func(yield func(merkle.Change, error) bool) {
			for _, c := range b.changes {
				if !yield(c, nil) {
					return
				}
			}
		})
		if err != nil {
			return id, err
		}
	}
	b.root.Tree = tree
	enc, err := b.root.Encode()
	if err != nil {
		return id, err
	}
	id = merkle.NodeHash(enc)
	return id, w.PutNode(id, enc)
}

// store writes the contents.
func (b *builder) store() []blobstore.Record {
	b.t.Helper()
	blobs, err := blobstore.Open(filepath.Join(b.dir, ".bole/contents"), blobstore.Options{})
	check(b.t, err)
	defer func() { check(b.t, blobs.Close()) }()
	batch, err := blobs.Begin(
		func(merkle.Hash) (blobstore.Location, bool, error) { return blobstore.Location{}, false, nil },
		func(uint32) (uint64, bool, error) { return 0, false, nil })
	check(b.t, err)
	for h, d := range b.data {
		if b.lost[h] {
			continue
		}
		if len(d) <= blobstore.DefaultLimit {
			_, err := batch.PutBytes(d)
			check(b.t, err)
			continue
		}
		f, err := os.CreateTemp(b.dir, "content-*")
		check(b.t, err)
		writeSparse(b.t, f, d)
		_, _, err = batch.PutFile(f, f.Name())
		check(b.t, err)
		check(b.t, f.Close())
		check(b.t, os.Remove(f.Name()))
	}
	records, _, err := batch.Sync()
	check(b.t, err)
	check(b.t, batch.Close())
	return records
}

// writeSparse writes data and leaves its zero blocks as holes.
func writeSparse(t testing.TB, f *os.File, data []byte) {
	t.Helper()
	const block = 64 << 10
	zero := make([]byte, block)
	for off := 0; off < len(data); off += block {
		part := data[off:min(off+block, len(data))]
		if bytes.Equal(part, zero[:len(part)]) {
			continue
		}
		_, err := f.WriteAt(part, int64(off))
		check(t, err)
	}
	check(t, f.Truncate(int64(len(data))))
}

// noise is n bytes that no other seed gives.
func noise(seed, n int) []byte {
	b := make([]byte, n)
	x := uint64(seed)*0x9e3779b97f4a7c15 + 1
	for i := range b {
		if i%8 == 0 {
			x ^= x << 13
			x ^= x >> 7
			x ^= x << 17
		}
		b[i] = byte(x >> (8 * (i % 8)))
	}
	if n >= 8 {
		binary.LittleEndian.PutUint64(b, uint64(seed))
	}
	return b
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// open makes the file system without a mount, for handlers that are called as the kernel would.
func open(t testing.TB, dir string, id merkle.Hash, change ...func(*Options)) *filesystem {
	t.Helper()
	repo, err := snapshot.Open(dir, snapshot.OpenOptions{})
	check(t, err)
	t.Cleanup(func() { check(t, repo.Close()) })
	o := Options{Commit: id}
	for _, c := range change {
		c(&o)
	}
	f, err := newFilesystem(repo, o)
	check(t, err)
	f.io, f.noDirs = IOHandles, true
	return f
}
