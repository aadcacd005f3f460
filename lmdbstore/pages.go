package lmdbstore

import "github.com/bmatsuo/lmdb-go/lmdb"

// limits bound the pages of a transaction. They are those of defaultLimits
// except in tests.
type limits struct {
	dirty   uint64 // above this nodes are committed in batches
	batch   uint64 // pages of such a batch
	tooMany uint64 // where a transaction that cannot be cut is refused
	buffer  int    // bytes of nodes that are gathered before they are put
	mapped  uint64 // bytes of mapped files beyond which the map's pages are let go; see noteRead
}

// LMDB holds 131,071 dirty pages and beyond that writes them out early, a path
// with known faults; what is counted here is an estimate, hence half of it.
var defaultLimits = limits{dirty: 65536, batch: 8192, tooMany: 114688, buffer: 16 << 20, mapped: 192 << 20}

// errTxnFull is LMDB's own error for a transaction that is too large.
var errTxnFull = &lmdb.OpError{Op: "mdb_put", Errno: lmdb.TxnFull}

// tableUse counts what a transaction has done to one table, to estimate from
// above how many pages it has dirtied.
type tableUse struct {
	known    bool // leaves, branches and depth are those at the transaction's begin
	leaves   uint64
	branches uint64
	depth    uint64
	puts     uint64
	bytes    uint64 // of new leaf records
	overflow uint64 // pages of values that do not fit a leaf
}

// dirty returns the estimate. Pages that were there: at most each put's path,
// and at most all of them. New ones: at most one a put; each page that was
// there may have been full and split once, and what is split again after that
// stays half full.
func (u *tableUse) dirty(pageSize int) uint64 {
	old := min(u.puts, u.leaves) + min(u.puts*u.depth, u.branches)
	fresh := min(u.puts, old+2*u.bytes/uint64(pageSize-pageHeader)+1)
	return old + fresh + u.overflow + u.depth
}

// fresh returns the use of the same table by nothing so far.
func (u tableUse) fresh() tableUse {
	u.puts, u.bytes, u.overflow = 0, 0, 0
	return u
}

// add counts one put of a record.
func (u *tableUse) add(pageSize, keyLen, valLen int) {
	leaf, overflow := recordSize(pageSize, keyLen, valLen)
	u.puts++
	u.bytes += uint64(leaf)
	u.overflow += uint64(overflow)
}

// recordSize returns the bytes that a record takes in a leaf page and the
// overflow pages its value takes: none when record and header fit half a page
// (a value of up to 2,014 bytes under a node's key with pages of 4,096).
func recordSize(pageSize, keyLen, valLen int) (leaf, overflow int) {
	const recordHeader, slot, pageNumber = 8, 2, 8
	biggest := (pageSize-pageHeader)/2&^1 - slot
	if size := recordHeader + keyLen + valLen; size <= biggest {
		return (size+1)&^1 + slot, 0
	}
	return (recordHeader+keyLen+pageNumber+1)&^1 + slot, (pageHeader + valLen + pageSize - 1) / pageSize
}

// learn reads the size of a table at its first use in a transaction.
func (w *Writer) learn(t Table) error {
	u := &w.use[t]
	if u.known {
		return nil
	}
	stat, err := w.txn.Stat(w.s.dbi[t])
	if err != nil {
		return w.fail("read table "+t.String(), err)
	}
	u.known = true
	u.leaves, u.branches = stat.LeafPages, stat.BranchPages
	u.depth = uint64(stat.Depth)
	return nil
}

// dirty estimates the pages that the transaction has dirtied so far.
func (w *Writer) dirty() uint64 {
	sum := uint64(0)
	for t := range w.use {
		if w.use[t].known {
			sum += w.use[t].dirty(w.s.pageSize)
		}
	}
	return sum
}

// count counts a put or delete before it is done and refuses one too many.
func (w *Writer) count(t Table, keyLen, valLen int) error {
	if err := w.learn(t); err != nil {
		return err
	}
	w.use[t].add(w.s.pageSize, keyLen, valLen)
	if w.dirty() > w.s.limits.tooMany {
		return w.fail("write table "+t.String(), errTxnFull)
	}
	return nil
}
