package blobstore

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// tempOwner hands out names in tmp/ for one batch: <owner>-<n>, beside a file <owner>.lock whose
// flock it holds. The lock is made before the first of them and removed after the last, so a file
// whose owner's lock is free or gone is garbage. It works between machines and containers, where
// process numbers mean nothing.
type tempOwner struct {
	s *Store

	mu   sync.Mutex
	id   string
	lock *os.File
	next uint64
}

const lockSuffix = ".lock"

// path returns a new name in tmp/.
func (o *tempOwner) path() (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lock == nil {
		if err := o.acquire(); err != nil {
			return "", err
		}
	}
	o.next++
	return filepath.Join(o.s.dir, tmpDir, fmt.Sprintf("%s-%d", o.id, o.next)), nil
}

// acquire makes the lock file. A sweeper may catch it between its creation and its locking and
// remove it; then another name is taken.
func (o *tempOwner) acquire() error {
	for {
		var raw [16]byte
		rand.Read(raw[:])
		id := hex.EncodeToString(raw[:])
		path := filepath.Join(o.s.dir, tmpDir, id+lockSuffix)
		f, err := o.s.createFile(path)
		if err != nil {
			return err
		}
		ok, err := tryLock(f)
		if ok {
			ok, err = stillAt(f, path)
		}
		if ok {
			o.id, o.lock = id, f
			return nil
		}
		if err != nil {
			return errors.Join(err, os.Remove(path), f.Close())
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
}

// close removes the lock file and gives up the lock. Every temporary file must be gone by then.
func (o *tempOwner) close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lock == nil {
		return nil
	}
	err := errors.Join(removeMissing(o.lock.Name()), o.lock.Close())
	o.lock = nil
	return err
}

// sweepTemps removes the temporary files of owners that are gone.
func (s *Store) sweepTemps() error {
	dir := filepath.Join(s.dir, tmpDir)
	names, err := readNames(dir)
	if err != nil {
		return err
	}
	files := map[string][]string{}
	for _, name := range names {
		if id, ok := tempOwnerOf(name); ok {
			files[id] = append(files[id], name)
		}
	}
	for id, names := range files {
		if err := s.sweepOwner(dir, id, names); err != nil {
			return err
		}
	}
	return nil
}

// tempOwnerOf returns the owner in a name that path or acquire made. Other names are left alone.
func tempOwnerOf(name string) (string, bool) {
	id, ok := strings.CutSuffix(name, lockSuffix)
	if !ok {
		id, _, ok = strings.Cut(name, "-")
	}
	raw, err := hex.DecodeString(id)
	return id, ok && err == nil && len(raw) == 16
}

// sweepOwner removes the files of one owner if it is gone, the lock file last.
func (s *Store) sweepOwner(dir, id string, names []string) error {
	lockPath := filepath.Join(dir, id+lockSuffix)
	lock, _, err := openFile(lockPath, os.O_RDWR)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return removeAll(dir, names)
	case errors.Is(err, fs.ErrPermission):
		return nil // another user's; that user's next batch removes it
	case err != nil:
		return err
	}
	defer lock.Close()
	if ok, err := tryLock(lock); !ok || err != nil {
		return err
	}
	if ok, err := stillAt(lock, lockPath); !ok || err != nil {
		return err
	}
	if err := removeAll(dir, names); err != nil {
		return err
	}
	return removeMissing(lockPath)
}

// removeAll removes the named files but lock files.
func removeAll(dir string, names []string) error {
	for _, name := range names {
		if strings.HasSuffix(name, lockSuffix) {
			continue
		}
		if err := removeMissing(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// removeMissing removes a file; one that is not there is no error.
func removeMissing(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
