package lmdbstore

import (
	"sync"
	"time"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// poolSize is the number of idle readers that a Store keeps. Each holds one of
// the database's reader slots; more may be running at a time.
const poolSize = 32

// pool is the free list of a Store's readers. It is bounded and never emptied
// by the garbage collector, which would leak reader slots.
type pool struct {
	mu     sync.Mutex
	free   []*Reader // last in, first out; at most poolSize
	out    int       // Views and Updates running
	closed bool
}

// enter counts a View or Update in and returns an idle reader, if wanted and there is one.
func (p *pool) enter(want bool) (*Reader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	p.out++
	if n := len(p.free); want && n > 0 {
		r := p.free[n-1]
		p.free = p.free[:n-1]
		return r, nil
	}
	return nil, nil
}

// leave counts a View or Update out. It keeps r and returns true, or returns
// false when the list is full.
func (p *pool) leave(r *Reader) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out--
	if r == nil || len(p.free) >= poolSize {
		return false
	}
	p.free = append(p.free, r)
	return true
}

// close ends all idle readers and lets nobody in any more.
func (p *pool) close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return ErrClosed
	case p.out > 0:
		return ErrBusy
	}
	p.closed = true
	for _, r := range p.free {
		r.txn.Abort()
	}
	p.free = nil
	return nil
}

// take returns a reader on the newest snapshot.
func (s *Store) take() (*Reader, error) {
	r, err := s.readers.enter(true)
	if err != nil {
		return nil, err
	}
	if r != nil {
		if err = r.txn.Renew(); err == nil {
			return r, nil
		}
		// A slot that was lost is made anew once.
		r.txn.Abort()
	}
	txn, err := s.beginRead(lmdb.Readonly)
	if err != nil {
		s.readers.leave(nil)
		return nil, err
	}
	txn.RawRead = true
	return &Reader{s: s, txn: txn}, nil
}

// giveBack ends a reader's snapshot; its pages may be used again from now on.
func (s *Store) giveBack(r *Reader) {
	r.txn.Reset()
	if !s.readers.leave(r) {
		r.txn.Abort()
	}
}

// beginRead begins a transaction that needs a new reader slot.
func (s *Store) beginRead(flags uint) (*lmdb.Txn, error) {
	txn, err := s.env.BeginTxn(nil, flags)
	if lmdb.IsErrno(err, lmdb.ReadersFull) {
		s.clearDeadReaders()
		txn, err = s.env.BeginTxn(nil, flags)
	}
	if err == nil {
		return txn, nil
	}
	if code, ok := errno(err); ok && isLockedByOther(code) {
		return nil, samePID(s.lockFile())
	}
	return nil, s.wrap("begin transaction", err)
}

// clearDeadReaders frees the slots of processes that ended without closing
// the database. Slots that cannot be checked now are checked in a minute.
func (s *Store) clearDeadReaders() {
	if _, err := s.env.ReaderCheck(); err != nil {
		return
	}
}

// watchReaders clears dead readers each minute until Close.
func (s *Store) watchReaders() {
	defer close(s.done)
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-tick.C:
			s.clearDeadReaders()
			s.checked.Store(0) // have the file's length checked again
		}
	}
}
