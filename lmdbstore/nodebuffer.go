package lmdbstore

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"bole/merkle"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// nodeBuffer gathers nodes until they are put in the order of their keys, which
// fills pages densely and touches each page once.
type nodeBuffer struct {
	arena []byte
	nodes []bufferedNode
	use   tableUse // of these nodes alone, over the table as it is
}

// bufferedNode is one node of a buffer; its bytes are arena[off:off+size].
type bufferedNode struct {
	hash      merkle.Hash
	off, size int
}

func (n *bufferedNode) key() []byte { return n.hash[:nodeKeySize] }

// compareKeys orders nodes by their keys, as LMDB does.
func compareKeys(a, b bufferedNode) int {
	order := binary.BigEndian
	return cmp.Or(
		cmp.Compare(order.Uint64(a.hash[:]), order.Uint64(b.hash[:])),
		cmp.Compare(order.Uint64(a.hash[8:]), order.Uint64(b.hash[8:])))
}

func (nb *nodeBuffer) bytes(n *bufferedNode) []byte { return nb.arena[n.off : n.off+n.size] }

// full tells whether the buffer is to be put before another n bytes are added.
func (nb *nodeBuffer) full(n int, s *Store) bool {
	return len(nb.nodes) > 0 &&
		(len(nb.arena)+n > s.limits.buffer || nb.use.dirty(s.pageSize) >= s.limits.batch)
}

func (nb *nodeBuffer) add(h merkle.Hash, b []byte, pageSize int) {
	nb.nodes = append(nb.nodes, bufferedNode{h, len(nb.arena), len(b)})
	nb.arena = append(nb.arena, b...)
	nb.use.add(pageSize, nodeKeySize, len(b))
}

// sort sorts the nodes by key and drops those that are there twice.
func (nb *nodeBuffer) sort() error {
	slices.SortFunc(nb.nodes, compareKeys)
	var collision error
	nb.nodes = slices.CompactFunc(nb.nodes, func(a, b bufferedNode) bool {
		if !bytes.Equal(a.key(), b.key()) {
			return false
		}
		if !bytes.Equal(nb.bytes(&a), nb.bytes(&b)) {
			collision = fmt.Errorf("nodes %s and %s: %w", a.hash, b.hash, ErrCollision)
		}
		return true
	})
	return collision
}

// reset empties the buffer and keeps its memory.
func (nb *nodeBuffer) reset() {
	*nb = nodeBuffer{arena: nb.arena[:0], nodes: nb.nodes[:0]}
}

// flush puts the buffered nodes into the transaction; where nodes go in
// batches it also commits them and begins the next transaction.
func (w *Writer) flush(last bool) error {
	if len(w.nodes.nodes) == 0 || w.err != nil {
		return w.err
	}
	if w.scans > 0 {
		return ErrDuringScan
	}
	w.forget()
	if err := w.nodes.sort(); err != nil {
		return w.failWith(err)
	}
	if err := w.makeRoom(); err != nil {
		return err
	}
	if err := w.putNodes(); err != nil {
		return err
	}
	w.nodes.reset()
	if w.batches && !w.pinned && !last {
		return w.nextBatch()
	}
	return nil
}

// makeRoom begins a new transaction when this one would become too large with
// the buffered nodes, if only nodes have been put so far.
func (w *Writer) makeRoom() error {
	before := w.dirty()
	after := before + w.nodes.use.dirty(w.s.pageSize)
	switch {
	case after <= w.s.limits.dirty:
		return nil
	case !w.pinned:
		w.batches = true
		if before > 0 {
			return w.nextBatch()
		}
		return nil
	case after > w.s.limits.tooMany:
		return w.fail("write table nodes", errTxnFull)
	}
	return nil
}

// nextBatch commits the nodes put so far and begins the next transaction.
func (w *Writer) nextBatch() error {
	err := w.commitTxn()
	if err == nil {
		err = w.begin()
	}
	if err == nil {
		err = w.learn(Nodes)
	}
	if err != nil {
		return w.failWith(err)
	}
	return nil
}

// putNodes puts the sorted nodes into the LMDB transaction.
func (w *Writer) putNodes() error {
	nb := &w.nodes
	flags, err := w.putFlags(nb.nodes[0].key())
	if err != nil {
		return err
	}
	for i := range nb.nodes {
		n := &nb.nodes[i]
		b := nb.bytes(n)
		w.use[Nodes].add(w.s.pageSize, nodeKeySize, len(b))
		err := w.txn.Put(w.s.dbi[Nodes], n.key(), b, flags)
		if lmdb.IsErrno(err, lmdb.KeyExist) {
			err = w.sameNode(n, b)
			if err != nil {
				return w.failWith(err)
			}
			continue
		}
		if err != nil {
			return w.fail("write table nodes", err)
		}
	}
	return nil
}

// putFlags returns MDB_APPEND when all buffered nodes come after those of the
// table (the first commit), which leaves every page full.
func (w *Writer) putFlags(first []byte) (uint, error) {
	cur, err := w.txn.OpenCursor(w.s.dbi[Nodes])
	if err != nil {
		return 0, w.fail("read table nodes", err)
	}
	defer cur.Close()
	last, _, err := w.s.step(cur, Nodes, nil, lmdb.Last)
	if err != nil {
		return 0, w.failWith(err)
	}
	if last == nil || bytes.Compare(first, last) > 0 {
		return lmdb.Append, nil
	}
	return lmdb.NoOverwrite, nil
}

// sameNode compares a node with the one that stands under its key.
func (w *Writer) sameNode(n *bufferedNode, b []byte) error {
	there, err := w.s.get(w.txn, Nodes, n.key())
	if err != nil {
		return err
	}
	if !bytes.Equal(there, b) {
		return fmt.Errorf("node %s: %w", n.hash, ErrCollision)
	}
	return nil
}
