package blobstore

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bole/merkle"
)

// LinkFile stores the regular file f, open for reading only, by giving its inode a second name in the store instead of
// copying it; linked tells whether that was done. It copies, as PutFile does, where linking is impossible or unsafe: a file up to
// Limit, one on another file system, one that somebody has open for writing (or for which nobody can tell, because there
// is no lease for this user or file system), one with several names, or a content that is stored already. The source's mode stays; call Seal when the
// commit is durable, before the source is removed. The bytes are hashed in place, while a lease keeps new writers waiting. A linked file that changes
// until Sync makes Sync fail with ErrChanged. Errors as for PutFile.
func (b *Batch) LinkFile(f *os.File, path string) (h merkle.Hash, size int64, linked bool, err error) {
	h, size, linked, err = b.link(f, path)
	if err != nil {
		return merkle.Hash{}, 0, false, fmt.Errorf("store %s: %w", path, err)
	}
	if linked {
		return h, size, true, nil
	}
	h, size, err = b.PutFile(f, path)
	return h, size, false, err
}

// link returns linked false without an error when the file has to be copied.
func (b *Batch) link(f *os.File, path string) (h merkle.Hash, size int64, linked bool, err error) {
	st, err := fstat(f)
	if err != nil {
		return h, 0, false, err
	}
	if !st.regular {
		return h, 0, false, ErrNotRegular
	}
	if st.size <= b.s.limit || st.nlink > 2 || takeLease(f) != leaseTaken {
		return h, 0, false, nil
	}
	defer dropLease(f)
	w := &pendingWhole{source: path, linked: true, size: st.size}
	switch st.nlink {
	case 1:
		h, err = b.linkNew(f, w)
	case 2:
		h, err = b.linkAgain(f, w)
	default:
		err = errMoved // already unlinked
	}
	if errors.Is(err, errMoved) {
		return h, 0, false, w.discard()
	}
	if err != nil {
		return h, 0, false, errors.Join(err, w.discard())
	}
	return h, w.size, true, nil
}

// linkNew links a file that has one name, and hashes it. errMoved means that it must be copied.
func (b *Batch) linkNew(f *os.File, w *pendingWhole) (merkle.Hash, error) {
	temp, err := b.temps.path()
	if err != nil {
		return merkle.Hash{}, err
	}
	ok, err := linkOpen(f, temp)
	if err != nil {
		return merkle.Hash{}, err
	}
	if !ok {
		return merkle.Hash{}, errMoved
	}
	w.temp = temp
	h, err := b.hashLinked(f, w, 2)
	if err != nil {
		return h, err
	}
	if w.f, err = os.Open(temp); err != nil {
		return h, err
	}
	return h, b.keepLinked(&h, w)
}

// keepLinked enlists a linked file; a content that is stored already needs no link.
func (b *Batch) keepLinked(h *merkle.Hash, w *pendingWhole) error {
	known, err := b.known(h)
	if err != nil {
		return err
	}
	if known {
		return w.discard()
	}
	return b.keep(h, w)
}

// linkAgain takes a file whose second name is the store's own: an earlier run linked it and ended before its commit. It is
// hashed in place to learn which content it would be. errMoved means that the second name is somebody else's.
func (b *Batch) linkAgain(f *os.File, w *pendingWhole) (merkle.Hash, error) {
	h, err := b.hashLinked(f, w, 2)
	if err != nil {
		return h, err
	}
	final, st, err := openFile(b.s.wholePath(&h), os.O_RDONLY)
	if err != nil {
		return h, errMoved
	}
	w.f = final
	if !st.sameInode(w.id) {
		return h, errMoved
	}
	return h, b.keepLinked(&h, w)
}

// hashLinked hashes the file in place and notes its state. errMoved: it changed, or somebody wants to write to it.
func (b *Batch) hashLinked(f *os.File, w *pendingWhole, nlink uint64) (merkle.Hash, error) {
	before, err := fstat(f)
	if err != nil {
		return merkle.Hash{}, err
	}
	w.id, w.size = before.fileID, before.size
	held := func() error {
		if !leaseHeld(f) {
			return errMoved
		}
		return nil
	}
	h, err := b.s.stream(f, before.size, nil, held)
	if errors.Is(err, errShort) {
		err = errMoved
	}
	if err == nil {
		err = held()
	}
	if err != nil {
		return h, err
	}
	after, err := fstat(f)
	if err == nil && (after.fileID != before.fileID || after.nlink != nlink) {
		err = errMoved
	}
	return h, err
}

// Seal makes a linked whole file the store's own, after the commit that names it is durable and before its source is
// removed: it takes the write permission (from the source too: they are one inode) and turns on fs-verity where there is
// any. size (bytes) and mtime (ns since 1970) are those of the entry; when the file differs in either it is hashed again. A
// file that somebody has open for writing is replaced by a copy. ErrChanged: the bytes are no longer those of h, the source
// must be kept and stored anew. A file that is sealed already is left as it is.
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

// replaceByCopy puts a copy in the place of a linked file that somebody has open for writing, durably. The source keeps the
// inode and its mode.
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
