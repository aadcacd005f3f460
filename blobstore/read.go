package blobstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// ReadSmall reads the content h from its place in a pack. It returns the whole content, in dst's
// memory when its capacity is at least loc.Length + RecordHeader bytes (then nothing is allocated),
// else in new memory of at least that capacity.
//
// The record's header is compared at every read; the bytes are hashed the first time, and after
// that only when the record's slot in a bounded table was taken by another one. Damage of any kind
// gives a *DamageError (ErrDamaged) and no bytes.
func (s *Store) ReadSmall(h merkle.Hash, loc Location, dst []byte) ([]byte, error) {
	data, err := s.readRecord(&h, loc, dst, false)
	if err != nil && errors.Is(err, ErrDamaged) {
		// The pack may have been replaced beneath a descriptor that was opened before: look at the
		// file of today.
		s.packs.forget(loc.Pack)
		data, err = s.readRecord(&h, loc, dst, true)
	}
	return data, err
}

// readRecord makes one attempt. With fresh the bytes are hashed whatever was known of them.
func (s *Store) readRecord(h *merkle.Hash, loc Location, dst []byte, fresh bool) ([]byte, error) {
	if loc.Pack == 0 {
		return nil, fmt.Errorf("read content %s: %w: not in a pack", *h, ErrLocation)
	}
	if loc.check() != nil {
		return nil, s.damaged(h, loc, "its place in the index is impossible", nil)
	}
	f, err := s.packs.get(loc.Pack)
	if err != nil {
		return nil, s.packError(h, loc, err)
	}
	defer f.Release()
	if !f.covers(loc.end()) {
		return nil, s.damaged(h, loc, "pack ends before the record does", nil)
	}
	n := int(RecordHeader + loc.Length)
	if cap(dst) < n {
		dst = make([]byte, n)
	}
	dst = dst[:n]
	if got, err := f.f.ReadAt(dst, int64(loc.Offset)); got < n {
		if err == io.EOF {
			return nil, s.damaged(h, loc, "pack ends before the record does", nil)
		}
		return nil, s.damaged(h, loc, "cannot be read", err)
	}
	if reason := s.checkRecord(h, loc, dst, fresh); reason != "" {
		s.seen.remove(h, loc)
		return nil, s.damaged(h, loc, reason, nil)
	}
	// The content moves to the front, so that a caller who passes it in again keeps the full capacity.
	copy(dst, dst[RecordHeader:])
	return dst[:loc.Length], nil
}

// checkRecord compares a record with what the index says of it. It returns what is wrong, or "".
func (s *Store) checkRecord(h *merkle.Hash, loc Location, record []byte, fresh bool) string {
	if reason := checkHeader(h, loc, record); reason != "" {
		return reason
	}
	if !fresh && s.seen.has(h, loc) {
		return ""
	}
	if merkle.ContentHash(record[RecordHeader:]) != *h {
		return "bytes do not match the hash"
	}
	s.seen.add(h, loc)
	return ""
}

// checkHeader compares the header of a record alone.
func checkHeader(h *merkle.Hash, loc Location, header []byte) string {
	got, length, err := parseRecordHeader(header)
	switch {
	case err != nil:
		return err.Error()
	case got != *h:
		return "record is of another content"
	case length != loc.Length:
		return "record has another length"
	}
	return ""
}

// covers tells whether the file reaches to end. Packs grow, so a size that is too small is asked
// for again.
func (f *File) covers(end uint64) bool {
	if end <= uint64(f.size.Load()) {
		return true
	}
	st, err := fstat(f.f)
	if err != nil {
		return false
	}
	f.size.Store(st.size)
	return end <= uint64(st.size)
}

// packError turns a failure to open a pack into damage, unless it says something about this process
// only.
func (s *Store) packError(h *merkle.Hash, loc Location, err error) error {
	if passing(err) {
		return fmt.Errorf("read content %s: %w", *h, err)
	}
	if d, ok := errors.AsType[*DamageError](err); ok {
		return s.damaged(h, loc, d.Reason, d.Err)
	}
	return s.damaged(h, loc, "pack cannot be opened", err)
}

// passing tells whether an error may be gone at the next try and says nothing about the stored bytes.
func passing(err error) bool {
	return errors.Is(err, unix.EMFILE) || errors.Is(err, unix.ENFILE) || errors.Is(err, unix.ENOMEM) ||
		errors.Is(err, fs.ErrPermission)
}

func (s *Store) damaged(h *merkle.Hash, loc Location, reason string, err error) error {
	e := &DamageError{Hash: *h, Pack: loc.Pack, Offset: loc.Offset, Reason: reason, Err: err}
	if loc.Pack == 0 {
		e.Path = s.wholePath(h)
	} else {
		e.Path = s.packPath(loc.Pack)
	}
	return e
}

// openPack opens a pack for reading and checks its header.
func (s *Store) openPack(num uint32) (*File, error) {
	f, st, err := openFile(s.packPath(num), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	var head [packHeaderSize]byte
	n, err := f.ReadAt(head[:], 0)
	if err != nil && err != io.EOF {
		return nil, errors.Join(err, f.Close())
	}
	if reason := checkPackHeader(head[:n]); reason != "" {
		err := &DamageError{Pack: num, Path: f.Name(), Reason: reason}
		return nil, errors.Join(err, f.Close())
	}
	return newFile(f, st), nil
}

func newFile(f *os.File, st fileStat) *File {
	file := &File{f: f, id: st.fileID}
	file.size.Store(st.size)
	return file
}
