package lmdbstore

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// Create makes folder dir (its parent must exist) and in it an empty database
// with all tables. It is durable when Create returns. A folder that holds a
// complete database gives fs.ErrExist; one left behind by a Create that was
// killed is completed.
func Create(dir string, o Options) error {
	if err := create(dir, o); err != nil {
		return fmt.Errorf("create database: %w", err)
	}
	return nil
}

func create(dir string, o Options) error {
	if _, err := checkDisk(filepath.Dir(filepath.Clean(dir))); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil && !os.IsExist(err) {
		return err
	}
	o.ReadOnly = false
	s, err := open(dir, o, lmdb.Create)
	if err != nil {
		return err
	}
	err = s.finishCreate(o)
	if closeErr := s.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	for _, d := range []string{dir, filepath.Dir(filepath.Clean(dir))} {
		if err := syncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// finishCreate gives the files the mode that was asked for; the umask has cut
// what LMDB made.
func (s *Store) finishCreate(o Options) error {
	if o.FileMode == 0 {
		return nil
	}
	for _, path := range []string{s.dataFile(), s.lockFile()} {
		if err := os.Chmod(path, o.FileMode.Perm()); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes the entries of a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if closeErr := d.Close(); err == nil {
		err = closeErr
	}
	return err
}
