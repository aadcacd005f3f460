package lmdbstore

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"bole/merkle"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// Writer is a write transaction. It lives as long as the function given to
// Update, belongs to that function's goroutine, and sees its own changes to the
// tables. Bytes that it lends die with its next write.
type Writer struct {
	s       *Store
	txn     *lmdb.Txn
	nodes   nodeBuffer
	use     [numTables]tableUse
	pinned  bool // the tables were read or written: what was seen must stay true until the commit
	batches bool // nodes are committed as they fill a batch
	scans   int  // running Scans
	lent    [][]byte
	err     error // the first failed write; nothing can be committed after it
}

// Update calls fn with a Writer and then commits: one LMDB transaction, one
// flush of the disk (batches of nodes apart, see Writer.ExpectPages). It waits
// for other writers, of this process and others. When fn or the commit fails
// nothing of it remains but batches of nodes, which nothing refers to. An
// Update that changes nothing writes nothing. An Update inside an Update of
// the same goroutine never returns. Errors: those of fn, ErrMapFull,
// ErrCollision, ErrTooLarge, ErrReadOnly, ErrClosed, ErrWriteFailed,
// ErrPageUnreadable, *fs.PathError naming the database file.
func (s *Store) Update(fn func(w *Writer) error) (err error) {
	if s.readOnly {
		return fmt.Errorf("%s: %w", s.dir, ErrReadOnly)
	}
	if _, err := s.readers.enter(false); err != nil {
		return err
	}
	defer s.readers.leave(nil)
	s.writing.Lock()
	defer s.writing.Unlock()
	if s.failed.Load() {
		return fmt.Errorf("%s: %w", s.dataFile(), ErrWriteFailed)
	}
	// LMDB's write lock belongs to the thread that took it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w := &Writer{s: s}
	old := guard()
	defer func() {
		panicked := recover()
		w.abort()
		if fault := s.release(old, panicked); fault != nil {
			err = fault
		}
	}()
	if err := w.begin(); err != nil {
		return err
	}
	if err := fn(w); err != nil {
		return err
	}
	return w.commit()
}

func (w *Writer) begin() error {
	txn, err := w.s.env.BeginTxn(nil, 0)
	if err != nil {
		return w.s.wrap("begin transaction", err)
	}
	txn.RawRead = true
	w.txn = txn
	w.use = [numTables]tableUse{}
	if err := w.s.checkLength(); err != nil {
		w.abort()
		return err
	}
	return nil
}

func (w *Writer) abort() {
	w.forget()
	if w.txn != nil {
		w.txn.Abort()
		w.txn = nil
	}
}

func (w *Writer) commit() error {
	if err := w.flush(true); err != nil {
		return err
	}
	return w.commitTxn()
}

// commitTxn commits the LMDB transaction. Its pages and then its root are
// written here; before the root is on the disk nothing has changed.
func (w *Writer) commitTxn() error {
	w.forget()
	if w.err != nil {
		return w.err
	}
	txn := w.txn
	w.txn = nil
	err := txn.Commit()
	if code, ok := errno(err); ok && code == syscall.EIO {
		if full := w.s.diskFull(); full != nil {
			return &os.PathError{Op: "commit", Path: w.s.dataFile(), Err: full}
		}
		w.s.failed.Store(true)
	}
	return w.s.wrap("commit", err)
}

// fail notes the first error of a write.
func (w *Writer) fail(doing string, err error) error {
	return w.failWith(w.s.wrap(doing, err))
}

func (w *Writer) failWith(err error) error {
	if w.err == nil {
		w.err = err
	}
	return err
}

// TxnID returns the number that this transaction's snapshot will have.
// With batches it grows.
func (w *Writer) TxnID() uint64 {
	if w.txn == nil {
		return 0
	}
	return uint64(w.txn.ID())
}

// ExpectPages tells that the transaction will dirty n pages. When that is more
// than 65,536, nodes are committed in batches of 8,192 pages as they come
// (nothing refers to them until the last transaction), until the tables are
// first read or written; from then on there is one transaction. Without this
// call the same happens once so many pages have been counted.
func (w *Writer) ExpectPages(n uint64) {
	if n > w.s.limits.dirty {
		w.batches = true
	}
}

// PutNode stores the node b under its hash h. The bytes are copied; they
// reach the database sorted by key, at the latest when fn returns. A node that
// is there already is left as it is; other bytes under the same key give
// ErrCollision, now or from Update. It implements merkle.Writer.
func (w *Writer) PutNode(h merkle.Hash, b []byte) error {
	if w.err != nil {
		return w.err
	}
	if len(b) == 0 {
		return fmt.Errorf("put node %s: no bytes", h)
	}
	if invariants && merkle.NodeHash(b) != h {
		panic("lmdbstore: PutNode with a hash that is not the node's")
	}
	if w.nodes.full(len(b), w.s) {
		if err := w.flush(false); err != nil {
			return err
		}
	}
	if len(w.nodes.nodes) == 0 {
		if err := w.learn(Nodes); err != nil {
			return err
		}
		w.nodes.use = w.use[Nodes].fresh()
	}
	w.nodes.add(h, b, w.s.pageSize)
	return nil
}

// Put stores val under key in table t, over what was there. Table Nodes is
// written through PutNode alone.
func (w *Writer) Put(t Table, key, val []byte) error {
	if err := w.ready(t); err != nil {
		return err
	}
	if len(key) == 0 || len(key) > MaxKey {
		return fmt.Errorf("table %s: a key of %d bytes (1 to %d are possible)", t, len(key), MaxKey)
	}
	if err := w.count(t, len(key), len(val)); err != nil {
		return err
	}
	if err := w.txn.Put(w.s.dbi[t], key, val, 0); err != nil {
		return w.fail("write table "+t.String(), err)
	}
	return nil
}

// Delete removes key from table t. A key that is not there is no error.
func (w *Writer) Delete(t Table, key []byte) error {
	if err := w.ready(t); err != nil {
		return err
	}
	if err := w.count(t, 0, 0); err != nil {
		return err
	}
	err := w.txn.Del(w.s.dbi[t], key, nil)
	if err != nil && !lmdb.IsNotFound(err) {
		return w.fail("delete from table "+t.String(), err)
	}
	return nil
}

// Drop removes all records of table t.
func (w *Writer) Drop(t Table) error {
	if err := w.ready(t); err != nil {
		return err
	}
	if err := w.txn.Drop(w.s.dbi[t], false); err != nil {
		return w.fail("empty table "+t.String(), err)
	}
	w.use[t] = tableUse{}
	return nil
}

// ready is asked before each write to a table.
func (w *Writer) ready(t Table) error {
	if t == Nodes || t >= numTables {
		return fmt.Errorf("table %s is not written this way", t)
	}
	if w.scans > 0 {
		return ErrDuringScan
	}
	if err := w.pin(); err != nil {
		return err
	}
	w.forget()
	return nil
}

// pin is called before each use of a table: from then on this is the one
// transaction, because the caller relies on what it has seen.
func (w *Writer) pin() error {
	w.pinned = true
	return w.err
}

// Get returns the value of key in table t, lent until the next write. Errors:
// ErrNotFound (unwrapped), ErrPageUnreadable.
func (w *Writer) Get(t Table, key []byte) ([]byte, error) {
	if err := w.pin(); err != nil {
		return nil, err
	}
	b, err := w.s.get(w.txn, t, key)
	if invariants && err == nil {
		b = w.lend(b)
	}
	return b, err
}

// Scan is Reader.Scan over the tables as this transaction sees them; nodes
// that were put may still be missing. Keys and values are lent until the next
// write; writing from inside fn gives ErrDuringScan.
func (w *Writer) Scan(t Table, prefix, start []byte, fn func(k, v []byte) error) error {
	if err := w.pin(); err != nil {
		return err
	}
	w.scans++
	defer func() { w.scans-- }()
	if invariants {
		inner := fn
		fn = func(k, v []byte) error { return inner(w.lend(k), w.lend(v)) }
	}
	return w.s.scan(w.txn, t, prefix, start, fn)
}

// Entries returns the number of records in table t as this transaction sees it.
func (w *Writer) Entries(t Table) (uint64, error) {
	if err := w.pin(); err != nil {
		return 0, err
	}
	return w.s.entries(w.txn, t)
}

// lend returns a copy of b that dies with the next write.
func (w *Writer) lend(b []byte) []byte {
	c := append(make([]byte, 0, len(b)), b...)
	w.lent = append(w.lent, c)
	return c
}

// forget ends the life of everything lent so far.
func (w *Writer) forget() {
	if invariants {
		scribbleOver(w.lent)
		w.lent = nil
	}
}
