package lmdbstore

import (
	"encoding/binary"
	"fmt"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// CheckLength compares the length of data.mdb with the last page that the
// database says it has; a file that was cut off gives ErrPageUnreadable. Pages
// at the end that were freed in the transaction that took them are never
// written, so a file may be shorter by pages that the free list names. View
// and Update do this by themselves.
func (s *Store) CheckLength() error {
	if _, err := s.readers.enter(false); err != nil {
		return err
	}
	defer s.readers.leave(nil)
	return s.checkLength()
}

func (s *Store) checkLength() error {
	// The number of the last page is read first: the file only grows.
	info, err := s.env.Info()
	if err != nil {
		return s.wrap("read", err)
	}
	have, err := s.fileLength()
	if err != nil {
		return err
	}
	need := (uint64(info.LastPNO) + 1) * uint64(s.pageSize)
	whole := info.LastPNO >= 1 && need <= uint64(s.mapSize)
	if whole && need > have {
		if whole, have, err = s.missingAreFree(); err != nil {
			return err
		}
	}
	if !whole {
		return s.unreadable(fmt.Sprintf("has %d bytes of %d", have, need))
	}
	s.end.Store(have)
	return nil
}

// freeList is LMDB's own table of free pages: transaction -> a count and as
// many page numbers, each a word of the host.
const freeList lmdb.DBI = 0

// missingAreFree tells whether each page from the end of the file to the last
// page of the newest snapshot is free, and the length it compared with.
func (s *Store) missingAreFree() (free bool, have uint64, err error) {
	txn, err := s.beginRead(lmdb.Readonly)
	if err != nil {
		return false, 0, err
	}
	defer txn.Abort()
	txn.RawRead = true
	// Read again after the snapshot: what it holds is in the file by now.
	info, err := s.env.Info()
	if err != nil {
		return false, 0, s.wrap("read", err)
	}
	if have, err = s.fileLength(); err != nil {
		return false, 0, err
	}
	first, end := have/uint64(s.pageSize), uint64(info.LastPNO)+1
	if first >= end {
		return true, have, nil
	}
	// The meta pages and the first pages of the tables must be there to be read.
	if first < 2 {
		return false, have, nil
	}
	n, err := s.freeBetween(txn, first, end)
	return n == end-first, have, err
}

// freeBetween returns how many of the pages from first to end-1 the free list names.
func (s *Store) freeBetween(txn *lmdb.Txn, first, end uint64) (n uint64, err error) {
	cur, err := txn.OpenCursor(freeList)
	if err != nil {
		return 0, s.wrap("read free list", err)
	}
	defer cur.Close()
	for {
		_, v, err := cur.Get(nil, nil, lmdb.Next)
		if lmdb.IsNotFound(err) {
			return n, nil
		} else if err != nil {
			return 0, s.wrap("read free list", err)
		}
		for i := 8; i+8 <= len(v); i += 8 {
			if page := binary.NativeEndian.Uint64(v[i:]); page >= first && page < end {
				n++
			}
		}
	}
}

// checkLengthOf checks the length once for each new snapshot, so that a
// database that nobody changes costs one comparison per View. watchReaders
// has it checked again each minute.
func (s *Store) checkLengthOf(txnID uint64) error {
	if s.checked.Load() == txnID+1 {
		return nil
	}
	if err := s.checkLength(); err != nil {
		return err
	}
	s.checked.Store(txnID + 1)
	return nil
}
