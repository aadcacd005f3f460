package blobstore

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// Usage counts what lies in the store, needed or not.
type Usage struct {
	Packs          uint64 // pack files
	PackBytes      uint64 // their sizes, bytes
	PackAllocated  uint64 // what they take on the disk, bytes
	Whole          uint64 // whole files
	WholeBytes     uint64 // their sizes, bytes
	WholeAllocated uint64 // what they take on the disk, bytes; shared blocks (reflinks) count each time
}

// Usage walks packs and whole files by lstat.
func (s *Store) Usage() (Usage, error) {
	var u Usage
	nums, err := s.packNumbers()
	if err != nil {
		return Usage{}, err
	}
	for _, n := range nums {
		if err := addUsage(s.packPath(n), &u.Packs, &u.PackBytes, &u.PackAllocated); err != nil {
			return Usage{}, err
		}
	}
	err = s.eachWhole(func(h merkle.Hash, _ int64) error {
		return addUsage(s.wholePath(&h), &u.Whole, &u.WholeBytes, &u.WholeAllocated)
	})
	if err != nil {
		return Usage{}, err
	}
	return u, nil
}

// addUsage counts one file; one that is gone counts nothing.
func addUsage(path string, files, bytes, allocated *uint64) error {
	var st unix.Stat_t
	err := retry(func() error { return unix.Lstat(path, &st) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return &os.PathError{Op: "lstat", Path: path, Err: err}
	}
	*files++
	*bytes += uint64(st.Size)
	*allocated += uint64(st.Blocks) * 512
	return nil
}
