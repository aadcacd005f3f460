package lmdbstore

import (
	"encoding/binary"
	"unsafe"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// Where a meta page (0 or 1) keeps what is read here (mdb.c, MDB_meta behind
// the page header: magic, version, address, map size, two tables, last page,
// transaction).
const (
	metaFreeTable = pageHeader + 24
	metaTxnID     = metaFreeTable + 2*tableRecordSize + 8

	// maxDepth is more levels than any tree of pages has (mdb.c, CURSOR_STACK).
	maxDepth = 32
)

// missingAreFree tells whether each page from the end of the file to the last
// page of the newest snapshot is free, and the length in bytes it compared
// with. The free list is read without LMDB, which would fault on a list that
// was cut off with the rest.
func (s *Store) missingAreFree() (free bool, have uint64, err error) {
	txn, err := s.beginRead(lmdb.Readonly)
	if err != nil {
		return false, 0, err
	}
	defer txn.Abort() // until then no writer takes the list's pages
	// Read after the snapshot: what that needs is in the file by now.
	info, err := s.env.Info()
	if err != nil {
		return false, 0, s.wrap("read", err)
	}
	if have, err = s.fileLength(); err != nil {
		return false, 0, err
	}
	size := uint64(s.pageSize)
	w := freeWalk{size: size, first: have / size, end: uint64(info.LastPNO) + 1, budget: have / size}
	if w.first >= w.end {
		return true, have, nil
	}
	if w.first < 2 {
		return false, have, nil
	}
	w.b = unsafe.Slice((*byte)(s.base), w.first*size)
	for meta := range uint64(2) {
		page := w.b[meta*size:]
		if binary.LittleEndian.Uint64(page[metaTxnID:]) != uint64(txn.ID()) {
			continue
		}
		table, ok := decodeTable(page[metaFreeTable:])
		ok = ok && (table.root == noRoot || w.walk(table.root, maxDepth))
		return ok && w.found == w.end-w.first, have, nil
	}
	return false, have, nil
}

// freeWalk counts the free pages from first to end-1 that the free list names.
type freeWalk struct {
	b          []byte // the pages in the file
	size       uint64 // of a page
	first, end uint64
	found      uint64
	budget     uint64 // pages that may still be visited: a damaged tree may be a circle
}

func (w *freeWalk) walk(number uint64, levels int) (ok bool) {
	if number >= w.first || levels == 0 || w.budget == 0 {
		return false
	}
	w.budget--
	page := rawPage(w.b[number*w.size:][:w.size])
	n, ok := page.count()
	if !ok {
		return false
	}
	for i := range n {
		if page.flags()&pageBranch != 0 {
			child, _, ok := page.child(i)
			if !ok || !w.walk(child, levels-1) {
				return false
			}
			continue
		}
		rec, ok := page.leaf(i)
		if !ok || page.flags()&pageLeaf == 0 || !w.list(&rec) {
			return false
		}
	}
	return true
}

// list reads one record: a count and as many page numbers, 8 bytes each.
func (w *freeWalk) list(rec *leafRecord) (ok bool) {
	v := rec.value
	if rec.flags&recordOverflow != 0 {
		at := rec.overflow
		if at >= w.first || uint64(rec.size) > (w.first-at)*w.size-pageHeader {
			return false
		}
		v = w.b[at*w.size+pageHeader:][:rec.size]
	}
	for i := 8; i+8 <= len(v); i += 8 {
		if page := binary.LittleEndian.Uint64(v[i:]); page >= w.first && page < w.end {
			w.found++
		}
	}
	return true
}
