package lmdbstore

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
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
// whether the disk is read-only, so that nobody can write the database. A disk
// that is read-only through this mount alone (a bind mount into a container) is
// refused: there may be writers elsewhere, and without a lock file they would
// use pages again under a reader.
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
	if st.Flags&unix.ST_RDONLY == 0 {
		return false, nil
	}
	writable, err := writableElsewhere(dir)
	if err != nil {
		return false, err
	}
	if writable {
		return false, fmt.Errorf("%w (the disk is read-only in this place only; readers need to write lock.mdb as long as others can write the database)",
			&os.PathError{Op: "open", Path: filepath.Join(dir, "lock.mdb"), Err: unix.EROFS})
	}
	return true, nil
}

// writableElsewhere tells whether the file system of a folder on a read-only
// mount is itself writable.
func writableElsewhere(dir string) (bool, error) {
	real, err := filepath.Abs(dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return false, err
	}
	mounts, err := mountinfo.GetMounts(mountinfo.ParentsFilter(real))
	if err != nil {
		return false, fmt.Errorf("find the disk of %s: %w", dir, err)
	}
	writable, deepest := false, -1
	for _, m := range mounts {
		// Of mounts on one place the last one is on top.
		if len(m.Mountpoint) >= deepest {
			deepest = len(m.Mountpoint)
			writable = slices.Contains(strings.Split(m.VFSOptions, ","), "rw")
		}
	}
	return writable, nil
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
