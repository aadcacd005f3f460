package blobstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// fileID tells one state of one inode from another.
type fileID struct {
	dev, ino     uint64
	size         int64
	mtime, ctime int64 // ns since 1970
}

// fileStat is what fstat says of a file.
type fileStat struct {
	fileID
	nlink   uint64
	regular bool
	perm    fs.FileMode
}

// fstat is os.File.Stat without its allocations.
func fstat(f *os.File) (fileStat, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(int(f.Fd()), &st) })
	runtime.KeepAlive(f)
	if err != nil {
		return fileStat{}, &fs.PathError{Op: "fstat", Path: f.Name(), Err: err}
	}
	return fileStat{
		fileID: fileID{
			dev: uint64(st.Dev), ino: uint64(st.Ino), size: st.Size,
			mtime: st.Mtim.Nano(), ctime: st.Ctim.Nano(),
		},
		nlink:   uint64(st.Nlink),
		regular: st.Mode&unix.S_IFMT == unix.S_IFREG,
		perm:    fs.FileMode(st.Mode & 0o777),
	}, nil
}

// sameInode tells whether both are the same file, whatever happened to it in between.
func (a fileID) sameInode(b fileID) bool { return a.dev == b.dev && a.ino == b.ino }

// sameBytes tells whether nothing says that the bytes changed: link and rename move ctime, so it is
// left out.
func (a fileID) sameBytes(b fileID) bool {
	return a.sameInode(b) && a.size == b.size && a.mtime == b.mtime
}

// openFile opens a regular file of the store. It follows no symlink in the last component and never
// waits on a FIFO that somebody put there.
func openFile(path string, flags int) (*os.File, fileStat, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fileStat{}, err
	}
	st, err := fstat(f)
	if err == nil && !st.regular {
		err = &fs.PathError{Op: "open", Path: path, Err: ErrNotRegular}
	}
	if err != nil {
		f.Close()
		return nil, fileStat{}, err
	}
	return f, st, nil
}

// tryLock takes the flock of f if nobody has it. It fails only where flock itself does not work.
func tryLock(f *os.File) (bool, error) {
	err := retry(func() error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
	runtime.KeepAlive(f)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.EWOULDBLOCK):
		return false, nil
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EOPNOTSUPP),
		errors.Is(err, unix.ENOLCK), errors.Is(err, unix.EINVAL):
		return false, fmt.Errorf("lock %s: %w (%w)", f.Name(), ErrNoLock, err)
	}
	return false, &fs.PathError{Op: "flock", Path: f.Name(), Err: err}
}

// stillAt tells whether path still names the file that f has open.
func stillAt(f *os.File, path string) (bool, error) {
	mine, err := f.Stat()
	if err != nil {
		return false, err
	}
	there, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && os.SameFile(mine, there), err
}

// retry repeats a system call that a signal interrupted.
func retry(call func() error) error {
	for {
		if err := call(); err != unix.EINTR {
			return err
		}
	}
}

// descriptorLimit is how many descriptors one cache may keep open: an eighth of the process's
// limit, at most 256.
func descriptorLimit() int {
	var lim unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &lim); err != nil {
		return 32
	}
	return int(min(max(lim.Cur/8, 8), 256))
}

// syncFile is fsync, counted. Its failure is final for the file: the kernel reports a lost write once.
func (s *Store) syncFile(f *os.File) error {
	s.stats.fsyncs.Add(1)
	return f.Sync()
}

// syncData is fdatasync, counted: what is needed to read the bytes back is durable, times need not be.
func (s *Store) syncData(f *os.File) error {
	s.stats.fsyncs.Add(1)
	if err := fdatasync(f); err != nil {
		return &fs.PathError{Op: "fdatasync", Path: f.Name(), Err: err}
	}
	return nil
}

// syncDir makes the entries of a folder durable.
func (s *Store) syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = s.syncFile(d)
	if errors.Is(err, unix.EINVAL) {
		err = nil // a file system that has no fsync for folders orders their changes by itself or not at all
	}
	return errors.Join(err, d.Close())
}

// lease is the answer to the question whether somebody has a file open for writing.
type lease uint8

const (
	leaseNone  lease = iota // nobody can tell: no leases for this user, file system or system
	leaseTaken              // nobody has, and whoever tries waits for us
	leaseBusy               // somebody has
)
