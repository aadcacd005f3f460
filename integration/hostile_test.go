package integration

import (
	"encoding/binary"
	"testing"

	"bole/lmdbstore"
	"bole/merkle"
)

// rawEntry is one record of a directory node, written as it stands: nothing
// here checks anything, because a hostile sender would not.
type rawEntry struct {
	name    string
	kind    uint16 // 1 file, 2 directory, 3 link, others unknown
	perm    uint16
	hash    merkle.Hash
	size    uint64
	nameLen int    // 0: the true length
	tail    []byte // behind the name: totals of a directory, target of a link
}

// rawDir encodes a Dir node of level 0 (docs/FORMAT.md) with any entries, in
// the order given. The totals are right unless the entries lie.
func rawDir(entries ...rawEntry) []byte {
	const header, record = 40, 56
	le := binary.LittleEndian
	b := make([]byte, header+record*len(entries))
	b[0], b[1] = 'D', 1
	le.PutUint32(b[4:], uint32(len(entries)))
	le.PutUint64(b[8:], uint64(len(entries)))
	var files, dirs, bytes uint64
	var heap []byte
	for i, e := range entries {
		rec := b[header+record*i:]
		copy(rec, e.hash[:])
		le.PutUint64(rec[32:], e.size)
		heap = append(heap, e.name...)
		heap = append(heap, e.tail...)
		le.PutUint32(rec[48:], uint32(len(heap)))
		le.PutUint16(rec[52:], e.kind<<12|e.perm)
		rec[54] = byte(len(e.name))
		if e.nameLen != 0 {
			rec[54] = byte(e.nameLen)
		}
		switch e.kind {
		case 1:
			files++
			bytes += e.size
		case 2:
			dirs++
			bytes += e.size
			if len(e.tail) == 16 {
				files += le.Uint64(e.tail)
				dirs += le.Uint64(e.tail[8:])
			}
		case 3:
			files++
		}
	}
	le.PutUint64(b[16:], files)
	le.PutUint64(b[24:], dirs)
	le.PutUint64(b[32:], bytes)
	return append(b, heap...)
}

// file returns an honest-looking entry with a content that is there.
func file(name string, h merkle.Hash, size uint64) rawEntry {
	return rawEntry{name: name, kind: 1, perm: 0o644, hash: h, size: size}
}

// rawSubdir returns an entry that names a Dir node.
func rawSubdir(name string, h merkle.Hash, files, dirs, bytes uint64) rawEntry {
	tail := binary.LittleEndian.AppendUint64(nil, files)
	return rawEntry{name: name, kind: 2, perm: 0o755, hash: h, size: bytes, tail: binary.LittleEndian.AppendUint64(tail, dirs)}
}

// putNodes writes node bytes into the repository's database, past all that
// the program would check, and returns their names.
func (r *repo) putNodes(nodes ...[]byte) []merkle.Hash {
	r.t.Helper()
	s, err := lmdbstore.Open(r.path(".bole", "db"), lmdbstore.Options{})
	ok(r.t, err)
	var names []merkle.Hash
	err = s.Update(func(w *lmdbstore.Writer) error {
		for _, b := range nodes {
			h := merkle.NodeHash(b)
			names = append(names, h)
			if err := w.PutNode(h, b); err != nil {
				return err
			}
		}
		return nil
	})
	ok(r.t, err)
	ok(r.t, s.Close())
	return names
}

// putCommit writes a commit of a root directory and moves the branch main to
// it, as a hostile peer's push would.
func (r *repo) putCommit(tree merkle.Hash, totals merkle.Totals) merkle.Hash {
	r.t.Helper()
	who := merkle.Signature{Name: "Mallory", Email: "m@example.org"}
	c := merkle.Commit{Tree: tree, Totals: totals, RootPerm: 0o755, Author: who, Committer: who, Message: "hostile\n"}
	b, err := c.Encode()
	ok(r.t, err)
	id := r.putNodes(b)[0]
	s, err := lmdbstore.Open(r.path(".bole", "db"), lmdbstore.Options{})
	ok(r.t, err)
	ok(r.t, s.Update(func(w *lmdbstore.Writer) error {
		return w.Put(lmdbstore.Refs, []byte("refs/heads/main"), append([]byte{'h'}, id[:]...))
	}))
	ok(r.t, s.Close())
	return id
}

// contentHash returns the stored name of a file of HEAD.
func (r *repo) contentHash(path string) merkle.Hash {
	r.t.Helper()
	m := r.mount("HEAD")
	defer m.umount()
	h, err := merkle.ParseHash(getAttr(r.t, m.path(path), "user.bole.hash"))
	ok(r.t, err)
	return h
}

func TestRawDirIsAccepted(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("f"), "content")
	r.commit()
	h := r.contentHash("f")
	inner := rawDir(file("g", h, 7))
	sub := r.putNodes(inner)[0]
	tree := r.putNodes(rawDir(file("f", h, 7), rawSubdir("sub", sub, 1, 0, 7)))[0]
	r.putCommit(tree, merkle.Totals{Files: 2, Dirs: 1, Bytes: 14})
	r.fsck()
	m := r.mount("HEAD")
	if read(t, m.path("f")) != "content" || read(t, m.path("sub", "g")) != "content" {
		t.Error("the hand-made tree reads wrong")
	}
	m.umount()
}
