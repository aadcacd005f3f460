package blobstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bole/merkle"
)

// errCopy says that a file cannot be linked and has to be copied.
var errCopy = errors.New("file must be copied")

// LinkFile stores the regular file f, which is open for reading only, by giving its inode a second
// name in the store instead of copying it; linked tells whether the store shares its inode. It
// copies, as PutFile does, where linking is impossible or unsafe: a file up to Limit; one on
// another file system; one that somebody has open for writing, or for which nobody can tell,
// because there are no leases for this user or file system; one with several names. A content that
// is stored already is neither linked nor copied.
//
// The source's mode stays: call Seal when the commit is durable, before the source is removed. The
// bytes are hashed in place, while a lease keeps new writers waiting. A linked file that changes
// afterwards until Sync makes Sync fail with ErrChanged. A file that an earlier run linked, and did
// not come to commit, is taken as linked again. Errors as for PutFile.
func (b *Batch) LinkFile(f *os.File, path string) (h merkle.Hash, size int64, linked bool, err error) {
	w := &pendingWhole{source: path, linked: true}
	h, linked, err = b.link(f, w)
	if !linked {
		if e := w.discard(); e != nil {
			err = e
		}
	}
	switch {
	case errors.Is(err, errCopy):
		h, size, err = b.PutFile(f, path)
		return h, size, false, err
	case err != nil:
		return merkle.Hash{}, 0, false, fmt.Errorf("store %s: %w", path, err)
	}
	return h, w.size, linked, nil
}

// link does what LinkFile says and returns errCopy for a file that has to be copied.
func (b *Batch) link(f *os.File, w *pendingWhole) (h merkle.Hash, linked bool, err error) {
	st, err := fstat(f)
	if err != nil {
		return h, false, err
	}
	if !st.regular {
		return h, false, ErrNotRegular
	}
	if st.size <= b.s.limit || st.nlink == 0 || st.nlink > 2 || takeLease(f) != leaseTaken {
		return h, false, errCopy
	}
	defer dropLease(f)
	if st.nlink == 2 {
		return b.linkAgain(f, w)
	}
	return b.linkNew(f, w)
}

// linkNew links a file that has one name, and hashes it.
func (b *Batch) linkNew(f *os.File, w *pendingWhole) (h merkle.Hash, linked bool, err error) {
	temp, err := b.temps.path()
	if err != nil {
		return h, false, err
	}
	if ok, err := linkOpen(f, temp); err != nil {
		return h, false, err
	} else if !ok {
		return h, false, errCopy
	}
	w.temp = temp
	if h, err = b.hashLinked(f, w); err != nil {
		return h, false, err
	}
	if w.f, err = os.Open(temp); err != nil {
		return h, false, err
	}
	linked, err = b.keep(&h, w)
	return h, linked, err
}

// linkAgain takes a file whose second name is the store's own: an earlier run linked it and ended
// before its commit. It is hashed in place to learn which content it would be. When the second name
// is somebody else's, the file has to be copied.
func (b *Batch) linkAgain(f *os.File, w *pendingWhole) (h merkle.Hash, linked bool, err error) {
	if h, err = b.hashLinked(f, w); err != nil {
		return h, false, err
	}
	final, st, err := openFile(b.s.wholePath(&h), os.O_RDONLY)
	if err != nil {
		return h, false, errCopy
	}
	w.f = final
	if !st.sameInode(w.id) {
		return h, false, errCopy
	}
	_, err = b.keep(&h, w)
	return h, err == nil, err
}

// hashLinked hashes a file with two names in place and notes its state. It returns errCopy when the
// file changes meanwhile or somebody wants to write to it.
func (b *Batch) hashLinked(f *os.File, w *pendingWhole) (merkle.Hash, error) {
	before, err := fstat(f)
	if err != nil {
		return merkle.Hash{}, err
	}
	w.id, w.size = before.fileID, before.size
	held := func() error {
		if !leaseHeld(f) {
			return errCopy
		}
		return b.stopped()
	}
	h, err := b.s.stream(f, before.size, nil, held)
	if err == nil {
		err = held()
	}
	if errors.Is(err, errShort) {
		err = errCopy
	}
	if err != nil {
		return h, err
	}
	after, err := fstat(f)
	if err == nil && (after.fileID != before.fileID || after.nlink != 2) {
		err = errCopy
	}
	return h, err
}

// Seal makes a linked whole file the store's own, after the commit that names it is durable and
// before its source is removed: it takes the write permission (from the source too: they are one
// inode) and turns on fs-verity where there is any. size (bytes) and mtime (ns since 1970) are
// those of the entry; when the file differs in either it is hashed again. A file that somebody has
// open for writing is replaced by a copy. ErrChanged: the bytes are no longer those of h, the
// source must be kept and stored anew. A file that is sealed already is left as it is.
func (s *Store) Seal(h merkle.Hash, size, mtime int64) error {
	path := s.wholePath(&h)
	f, st, err := openFile(path, os.O_RDONLY)
	if err != nil {
		return fmt.Errorf("seal content %s: %w", h, err)
	}
	err = s.sealOpen(&h, f, st, size, mtime)
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("seal content %s: %w", h, err)
	}
	return nil
}

func (s *Store) sealOpen(h *merkle.Hash, f *os.File, st fileStat, size, mtime int64) error {
	if st.perm&0o222 == 0 {
		return nil
	}
	switch takeLease(f) {
	case leaseTaken:
		defer dropLease(f)
	case leaseBusy:
		return s.replaceByCopy(h, f, st)
	}
	if st.size != size || st.mtime != mtime {
		got, err := s.stream(f, st.size, nil, nil)
		if err != nil {
			return err
		}
		if got != *h {
			s.markBad(h, st.fileID)
			return ErrChanged
		}
	}
	if err := f.Chmod(s.wholeMode()); err != nil {
		return err
	}
	return s.enableVerity(f)
}

// replaceByCopy puts a copy in the place of a linked file that somebody has open for writing,
// durably. The source keeps the inode and its mode.
func (s *Store) replaceByCopy(h *merkle.Hash, f *os.File, st fileStat) (err error) {
	temps := tempOwner{s: s}
	defer func() { err = errors.Join(err, temps.close()) }()
	w, err := temps.create(f.Name())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.discard()) }()
	got, err := s.stream(f, st.size, w.f, nil)
	if errors.Is(err, errShort) || err == nil && got != *h {
		s.markBad(h, st.fileID)
		return ErrChanged
	}
	if err != nil {
		return err
	}
	if err := s.seal(w); err != nil {
		return err
	}
	if err := s.syncFile(w.f); err != nil {
		return err
	}
	if err := os.Rename(w.temp, f.Name()); err != nil {
		return err
	}
	w.temp = ""
	s.forgetWhole(h)
	return s.syncDir(filepath.Dir(f.Name()))
}
