package lmdbstore

import (
	"fmt"
	"os"
	"path/filepath"
)

// CopyTo writes a copy of the newest snapshot into folder dir, which it makes
// when it is not there and which must hold no database. Writers may go on
// meanwhile; pages that they free are not used again before the copy ends. The
// copy is durable when CopyTo returns; a copy that failed leaves no data.mdb.
func (s *Store) CopyTo(dir string) error {
	if err := s.copyTo(dir); err != nil {
		return fmt.Errorf("copy database %s: %w", s.dir, err)
	}
	return nil
}

func (s *Store) copyTo(dir string) error {
	if _, err := s.readers.enter(false); err != nil {
		return err
	}
	defer s.readers.leave(nil)
	if err := os.Mkdir(dir, 0o777); err != nil && !os.IsExist(err) {
		return err
	}
	target := filepath.Join(dir, "data.mdb")
	if _, err := os.Lstat(target); !os.IsNotExist(err) {
		return &os.PathError{Op: "create", Path: target, Err: os.ErrExist}
	}
	temp, err := os.CreateTemp(dir, "copy-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	err = s.env.CopyFD(temp.Fd())
	if code, ok := errno(err); ok {
		err = &os.PathError{Op: "write", Path: temp.Name(), Err: code}
	}
	if err == nil {
		err = temp.Chmod(0o644)
	}
	if err == nil {
		err = temp.Sync()
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), target); err != nil {
		return err
	}
	return syncDir(dir)
}
