package blobstore

import (
	"io"
	"os"

	"bole/merkle"
)

// Present looks whether the content h is at its place with the length that the index names, without
// reading its bytes: the header of its record, or the size of its whole file. Damage gives a
// *DamageError (ErrDamaged).
func (s *Store) Present(h merkle.Hash, loc Location) error {
	if loc.check() != nil {
		return s.damaged(&h, loc, "its place in the index is impossible", nil)
	}
	if loc.Pack == 0 {
		f, st, err := openFile(s.wholePath(&h), os.O_RDONLY)
		if err != nil {
			return s.wholeError(&h, err)
		}
		f.Close()
		if uint64(st.size) != loc.Length {
			return s.damaged(&h, loc, "file has another length", nil)
		}
		return nil
	}
	f, err := s.packs.get(loc.Pack)
	if err != nil {
		return s.packError(&h, loc, err)
	}
	defer f.Release()
	if !f.covers(loc.end()) {
		return s.damaged(&h, loc, "pack ends before the record does", nil)
	}
	var header [RecordHeader]byte
	n, err := f.f.ReadAt(header[:], int64(loc.Offset))
	if err != nil && err != io.EOF {
		return s.damaged(&h, loc, "cannot be read", err)
	}
	if reason := checkHeader(&h, loc, header[:n]); reason != "" {
		return s.damaged(&h, loc, reason, nil)
	}
	return nil
}
