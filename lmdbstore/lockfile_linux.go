package lmdbstore

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// lockSize is the length of lock.mdb in bytes; it has room for about 2,000
// reader slots.
const lockSize = 128 << 10

// allocateLock makes lock.mdb with all its blocks where there is none. LMDB
// would make it sparse and then write through a mapping: on a full disk a new
// block is a SIGBUS there. The file gets its name when it is complete, so LMDB
// never sees less.
func (s *Store) allocateLock() error {
	if _, err := os.Lstat(s.lockFile()); !os.IsNotExist(err) {
		return err
	}
	temp := filepath.Join(s.dir, fmt.Sprintf("lock-%016x", rand.Uint64()))
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return fmt.Errorf("make %s: %w", s.lockFile(), err)
	}
	defer os.Remove(temp)
	err = unix.Fallocate(int(f.Fd()), 0, 0, lockSize)
	if err == unix.EOPNOTSUPP {
		_, err = f.Write(make([]byte, lockSize))
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", s.lockFile(), err)
	}
	err = os.Link(temp, s.lockFile())
	if errors.Is(err, os.ErrExist) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EOPNOTSUPP) {
		return nil // another process was faster, or there are no links here and LMDB makes the file
	}
	return err
}

// populateLock makes sure that every slot of lock.mdb can be written, for a
// file that was copied with holes in it.
func (s *Store) populateLock() error {
	lock := mappedAt(s.env, 1)
	st, err := os.Stat(s.lockFile())
	if err != nil {
		return err
	}
	if lock == nil || *(*uint32)(lock) != lmdbMagic {
		return errUnknownLMDB
	}
	err = unix.Madvise(unsafe.Slice((*byte)(lock), st.Size()), unix.MADV_POPULATE_WRITE)
	if err == unix.EFAULT { // what would have been a SIGBUS
		return &os.PathError{Op: "open", Path: s.lockFile(), Err: unix.ENOSPC}
	}
	return nil // kernels before 5.14 do not know this advice
}
