package blobstore

import (
	"errors"
	"os"

	"bole/merkle"
)

// Whole opens the whole file of a content, from a bounded cache of descriptors. Call Release on the
// result. The bytes are not hashed (VerifyWhole does); but a file that this process has found wrong
// is refused with ErrDamaged until another file stands in its place. A missing file is a
// *DamageError that matches fs.ErrNotExist.
func (s *Store) Whole(h merkle.Hash) (*File, error) {
	if s.isBad(&h) {
		s.whole.forget(h)
		return nil, s.damaged(&h, Location{}, "bytes do not match the hash", nil)
	}
	f, err := s.whole.get(h)
	if err != nil {
		return nil, s.wholeError(&h, err)
	}
	return f, nil
}

func (s *Store) wholeError(h *merkle.Hash, err error) error {
	if passing(err) || errors.Is(err, ErrDamaged) {
		return err
	}
	return s.damaged(h, Location{}, "whole file cannot be opened", err)
}

// openWhole opens a whole file for reading.
func (s *Store) openWhole(h merkle.Hash) (*File, error) {
	f, st, err := openFile(s.wholePath(&h), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	return newFile(f, st), nil
}

// VerifyWhole hashes the whole file of a content. It returns a *DamageError (ErrDamaged) when it is
// missing, unreadable or wrong, and remembers which it was, so that Whole refuses known bad bytes.
func (s *Store) VerifyWhole(h merkle.Hash) error {
	_, err := s.verifyWhole(&h)
	return err
}

// verifyWhole returns the size as well.
func (s *Store) verifyWhole(h *merkle.Hash) (size int64, err error) {
	// A descriptor of its own: hashing moves the position and sets read-ahead.
	f, st, err := openFile(s.wholePath(h), os.O_RDONLY)
	if err != nil {
		return 0, s.wholeError(h, err)
	}
	defer f.Close()
	got, err := s.stream(f, st.size, nil, nil)
	switch {
	case err != nil:
		return 0, s.damaged(h, Location{}, "cannot be read", err)
	case got != *h:
		s.markBad(h, st.fileID)
		return 0, s.damaged(h, Location{}, "bytes do not match the hash", nil)
	}
	s.mu.Lock()
	delete(s.bad, *h)
	s.mu.Unlock()
	return st.size, nil
}

// Verify reads the content h at its place and hashes it, whatever was known of it. Damage gives a
// *DamageError (ErrDamaged).
func (s *Store) Verify(h merkle.Hash, loc Location) error {
	if loc.Pack != 0 {
		bp := recordBuffers.Get().(*[]byte)
		defer recordBuffers.Put(bp)
		data, err := s.readRecord(&h, loc, *bp, true)
		if cap(data) > cap(*bp) {
			*bp = data[:0]
		}
		return err
	}
	size, err := s.verifyWhole(&h)
	if err == nil && uint64(size) != loc.Length {
		err = s.damaged(&h, loc, "the index has another length", nil)
	}
	return err
}

// markBad remembers that the file which has this state is wrong. The memory is one entry for each
// damaged file.
func (s *Store) markBad(h *merkle.Hash, id fileID) {
	s.mu.Lock()
	s.bad[*h] = id
	s.mu.Unlock()
	s.whole.forget(*h)
}

// isBad tells whether the file that stands there now is known to be wrong. Another inode, or the
// same one with another ctime, is a file that nothing is known about.
func (s *Store) isBad(h *merkle.Hash) bool {
	s.mu.Lock()
	id, bad := s.bad[*h]
	s.mu.Unlock()
	if !bad {
		return false
	}
	f, st, err := openFile(s.wholePath(h), os.O_RDONLY)
	if err != nil {
		return false // the caller meets the same error
	}
	f.Close()
	if st.fileID == id {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.bad[*h] == id {
		delete(s.bad, *h)
	}
	return false
}

// forgetWhole drops what is known of a whole file that was just put in place.
func (s *Store) forgetWhole(h *merkle.Hash) {
	s.mu.Lock()
	delete(s.bad, *h)
	s.mu.Unlock()
	s.whole.forget(*h)
}
