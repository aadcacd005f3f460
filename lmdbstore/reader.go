package lmdbstore

import (
	"bytes"
	"fmt"
	"runtime"
	"syscall"
	"unsafe"

	"bole/merkle"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// Reader reads one snapshot of the database. It lives as long as the function
// given to View and belongs to that function's goroutine. All bytes that it
// lends are read-only and die with it.
type Reader struct {
	s    *Store
	txn  *lmdb.Txn
	lent [][]byte // with invariants: what was lent, to be scribbled over
}

// View calls fn with a Reader on the newest snapshot. Views never wait for
// writers. It allocates nothing. Errors: those of fn, ErrClosed,
// ErrReadersFull, ErrPageUnreadable (also for a page that fn could not read
// through lent bytes).
func (s *Store) View(fn func(r *Reader) error) (err error) {
	r, err := s.take()
	if err != nil {
		return err
	}
	old := guard()
	defer func() {
		panicked := recover()
		if invariants {
			r = r.retire()
		}
		s.giveBack(r)
		if fault := s.release(old, panicked); fault != nil {
			err = fault
		}
	}()
	if err := s.checkLengthOf(r.TxnID()); err != nil {
		return err
	}
	return fn(r)
}

// TxnID returns the number of the transaction that made this snapshot. It
// grows by one with each Update that changes something, in any process.
func (r *Reader) TxnID() uint64 { return uint64(r.txn.ID()) }

// Node returns the bytes of the node named h, lent until the View ends. The
// first time in this process they are hashed and checked to be canonical. It
// implements merkle.Reader. Errors: merkle.ErrMissing, merkle.ErrCorrupt,
// ErrPageUnreadable.
func (r *Reader) Node(h *merkle.Hash) ([]byte, error) {
	b, err := r.s.get(r.txn, Nodes, h[:nodeKeySize])
	if err == ErrNotFound {
		return nil, &merkle.MissingError{Node: *h}
	} else if err != nil {
		return nil, err
	}
	if err := r.s.verify(h, b); err != nil {
		return nil, err
	}
	if invariants {
		b = r.lend(b)
	}
	return b, nil
}

// Get returns the value of key in table t, lent until the View ends. Errors:
// ErrNotFound (unwrapped), ErrPageUnreadable.
func (r *Reader) Get(t Table, key []byte) ([]byte, error) {
	b, err := r.s.get(r.txn, t, key)
	if invariants && err == nil {
		b = r.lend(b)
	}
	return b, err
}

// Scan calls fn for the records of table t whose key begins with prefix, from
// the key prefix+start on, in byte order. Keys and values are lent until the
// View ends. ErrStop from fn ends the scan without an error, any other error
// is returned as it is. Records that are out of order (a damaged tree) end it
// with ErrPageUnreadable, so a scan always ends.
func (r *Reader) Scan(t Table, prefix, start []byte, fn func(k, v []byte) error) error {
	if invariants {
		inner := fn
		fn = func(k, v []byte) error { return inner(r.lend(k), r.lend(v)) }
	}
	return r.s.scan(r.txn, t, prefix, start, fn)
}

// Entries returns the number of records in table t.
func (r *Reader) Entries(t Table) (uint64, error) {
	return r.s.entries(r.txn, t)
}

// Nodes calls fn for each record of table Nodes in the order of its keys, with
// no check of what it holds. The bytes are lent during the call of fn. ErrStop
// from fn ends it without an error. A table whose records are out of order,
// have keys of another length or are not as many as the table says ends it with
// ErrPageUnreadable.
func (s *Store) Nodes(fn func(key merkle.Key, b []byte) error) error {
	return s.View(func(r *Reader) error {
		want, err := r.Entries(Nodes)
		if err != nil {
			return err
		}
		seen, stopped := uint64(0), false
		err = r.Scan(Nodes, nil, nil, func(k, v []byte) error {
			if len(k) != nodeKeySize {
				return s.unreadable(fmt.Sprintf("table nodes holds a key of %d bytes", len(k)))
			}
			seen++
			err := fn(merkle.Key(k), v)
			stopped = err == ErrStop
			return err
		})
		if err == nil && !stopped && seen != want {
			return s.unreadable(fmt.Sprintf("table nodes gave %d of %d records", seen, want))
		}
		return err
	})
}

// get returns the value of key, lent by the transaction.
func (s *Store) get(txn *lmdb.Txn, t Table, key []byte) (b []byte, err error) {
	// lmdb-go panics on the nil pointer that LMDB leaves behind when a page
	// of this table is marked as one of a kind that we never write.
	defer s.nilValue(t, &err)
	s.noteRead()
	b, err = txn.Get(s.dbi[t], key)
	if err != nil {
		return nil, s.readError(t, err)
	}
	if !s.readable(b) {
		return nil, s.unreadable("value in table " + t.String() + " ends outside the file")
	}
	return b, nil
}

func (s *Store) nilValue(t Table, err *error) {
	if p := recover(); p != nil {
		if _, ok := p.(runtime.Error); !ok {
			panic(p)
		}
		*err = s.unreadable("table " + t.String())
	}
}

// readError translates an error of a read from table t.
func (s *Store) readError(t Table, err error) error {
	if lmdb.IsNotFound(err) {
		return ErrNotFound
	}
	return s.wrap("read table "+t.String(), err)
}

// readable tells whether all of b may be read: LMDB trusts the lengths that
// it finds in a page, so a damaged one lends bytes beyond the end of the file.
// Bytes outside the map are pages that the running transaction has written.
func (s *Store) readable(b []byte) bool {
	offset := uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(s.base)
	return offset >= s.mapSize || uint64(offset)+uint64(len(b)) <= s.end.Load()
}

// step moves cur and returns the record it stands on, or a nil key at the end.
func (s *Store) step(cur *lmdb.Cursor, t Table, from []byte, op uint) (k, v []byte, err error) {
	defer s.nilValue(t, &err)
	s.noteRead()
	k, v, err = cur.Get(from, nil, op)
	if lmdb.IsNotFound(err) {
		return nil, nil, nil
	} else if err != nil {
		return nil, nil, s.readError(t, err)
	}
	if len(k) == 0 || !s.readable(k) || !s.readable(v) {
		return nil, nil, s.unreadable("record in table " + t.String() + " ends outside the file")
	}
	return k, v, nil
}

func (s *Store) scan(txn *lmdb.Txn, t Table, prefix, start []byte, fn func(k, v []byte) error) error {
	cur, err := txn.OpenCursor(s.dbi[t])
	if err != nil {
		return s.wrap("read table "+t.String(), err)
	}
	defer cur.Close()
	var room [64]byte
	from := append(append(room[:0], prefix...), start...)
	op := uint(lmdb.SetRange)
	if len(from) == 0 {
		op = lmdb.First
	}
	var last []byte
	for k, v, err := s.step(cur, t, from, op); ; k, v, err = s.step(cur, t, nil, lmdb.Next) {
		if err != nil || k == nil {
			return err
		}
		if bytes.Compare(k, from) < 0 || last != nil && bytes.Compare(last, k) >= 0 {
			return s.unreadable("table " + t.String() + " is out of order")
		}
		if !bytes.HasPrefix(k, prefix) {
			return nil
		}
		if err := fn(k, v); err == ErrStop {
			return nil
		} else if err != nil {
			return err
		}
		last = k
	}
}

func (s *Store) entries(txn *lmdb.Txn, t Table) (uint64, error) {
	// The numbers of a table are read with its first use in a transaction;
	// this also notices a damaged root.
	stat, err := txn.Stat(s.dbi[t])
	if err != nil {
		return 0, s.wrap("read table "+t.String(), err)
	}
	return stat.Entries, nil
}

// isLockedByOther tells the error of a refused fcntl lock.
func isLockedByOther(code syscall.Errno) bool {
	return code == syscall.EAGAIN || code == syscall.EACCES
}

func samePID(lockFile string) error {
	return fmt.Errorf("%s: %w", lockFile, ErrSamePID)
}
