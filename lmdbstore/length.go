package lmdbstore

import "fmt"

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
