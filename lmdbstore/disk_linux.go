package lmdbstore

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// badDisk returns the name of a file system on which LMDB cannot work, or "".
// Its locks and its map need one kernel that sees all writes. The numbers are
// those of statfs(2).
func badDisk(magic int64) string {
	switch uint32(magic) {
	case 0x6969:
		return "NFS"
	case 0x517B, 0xFE534D42:
		return "SMB"
	case 0xFF534D42:
		return "CIFS"
	case 0x65735546:
		return "FUSE"
	}
	return ""
}

// checkDisk refuses a folder on a disk where no database can live, and tells
// whether the disk is mounted read-only.
func checkDisk(dir string) (readOnly bool, err error) {
	var st unix.Statfs_t
	for {
		err = unix.Statfs(dir, &st)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return false, &os.PathError{Op: "statfs", Path: dir, Err: err}
	}
	if name := badDisk(int64(st.Type)); name != "" {
		return false, fmt.Errorf("%s is on %s: %w", dir, name, ErrBadDisk)
	}
	return st.Flags&unix.ST_RDONLY != 0, nil
}

// readAhead asks the kernel for the whole file when it is small: keys are
// hashes, so every walk touches pages all over it.
func (s *Store) readAhead() {
	if s.end.Load() >= readWhole {
		return
	}
	// Advice only: the kernel refusing it changes nothing but speed.
	if unix.Fadvise(s.fd, 0, 0, unix.FADV_WILLNEED) == nil {
		s.whole = true
	}
}

// fileLength returns the length of data.mdb in bytes.
func (s *Store) fileLength() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(s.fd, &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: s.dataFile(), Err: err}
	}
	return uint64(st.Size), nil
}

// diskFull returns why data.mdb cannot grow (ENOSPC, EDQUOT, EFBIG), or nil
// when it can. LMDB reports a write that the system cut short, which is how a
// full disk begins, as EIO; the write after it tells. What is written here lies
// behind the last page, where the next commit overwrites it; a write
// transaction keeps that commit of another process away meanwhile. The thread
// must be locked.
func (s *Store) diskFull() error {
	txn, err := s.env.BeginTxn(nil, 0)
	if err != nil {
		return nil
	}
	defer txn.Abort()
	page := make([]byte, s.pageSize)
	for range 2 { // the first may be cut short as well
		end, err := s.fileLength()
		if err != nil {
			return nil
		}
		n, err := unix.Pwrite(s.fd, page, int64(end))
		if err == unix.ENOSPC || err == unix.EDQUOT || err == unix.EFBIG {
			return err
		}
		if err != nil || n == len(page) {
			return nil
		}
	}
	return nil
}
