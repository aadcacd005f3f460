package blobstore

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
)

func fdatasync(f *os.File) error {
	err := retry(func() error { return unix.Fdatasync(int(f.Fd())) })
	runtime.KeepAlive(f)
	return err
}

// syncFS flushes the whole file system below f and reports every write that was lost on it since f
// was opened.
func (s *Store) syncFS(f *os.File) error {
	s.stats.syncfs.Add(1)
	err := retry(func() error { return unix.Syncfs(int(f.Fd())) })
	runtime.KeepAlive(f)
	if err != nil {
		return &fs.PathError{Op: "syncfs", Path: f.Name(), Err: err}
	}
	return nil
}

// syncFSReports tells whether syncfs returns the errors of lost writes: since Linux 5.8 (syncfs(2),
// section NOTES).
func syncFSReports() bool { return versionAtLeast(kernelRelease(), 5, 8) }

// fineTimes tells whether each change that follows an fstat gives the file another ctime, however
// soon it comes: the multigrain time stamps of Linux 6.13 and later
// (Documentation/filesystems/multigrain-ts.rst).
func fineTimes(f *os.File) bool {
	if !versionAtLeast(kernelRelease(), 6, 13) {
		return false
	}
	var st unix.Statfs_t
	err := retry(func() error { return unix.Fstatfs(int(f.Fd()), &st) })
	runtime.KeepAlive(f)
	if err != nil {
		return false
	}
	switch uint32(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}

// kernelRelease is what uname -r prints, or "" when that fails.
var kernelRelease = sync.OnceValue(func() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
})

// versionAtLeast compares a kernel release such as "6.1.0-13-amd64" with major.minor.
func versionAtLeast(release string, major, minor int) bool {
	var v [2]int
	i := 0
	for part := range v {
		start := i
		for i < len(release) && release[i] >= '0' && release[i] <= '9' {
			i++
		}
		n, err := strconv.Atoi(release[start:i])
		if err != nil {
			return false
		}
		v[part] = n
		if part == 0 && (i >= len(release) || release[i] != '.') {
			return false
		}
		i++
	}
	return v[0] > major || (v[0] == major && v[1] >= minor)
}

func adviseSequential(f *os.File) {
	// Advice: a file system that has no use for it loses nothing.
	_ = unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_SEQUENTIAL)
	runtime.KeepAlive(f)
}

// clone makes dst share the blocks of src (FICLONE). It reports false where the file systems cannot.
func clone(dst, src *os.File) (bool, error) {
	err := retry(func() error { return unix.IoctlFileClone(int(dst.Fd()), int(src.Fd())) })
	runtime.KeepAlive(src)
	runtime.KeepAlive(dst)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EIO), errors.Is(err, unix.EROFS):
		return false, &fs.PathError{Op: "clone", Path: dst.Name(), Err: err}
	}
	return false, nil
}

// nextData returns the next run of data at or behind off: [start, end). Holes and everything from
// size on are left out; start == size says that only a hole is left.
func nextData(f *os.File, off, size int64) (start, end int64) {
	fd := int(f.Fd())
	defer runtime.KeepAlive(f)
	start, err := unix.Seek(fd, off, unix.SEEK_DATA)
	if errors.Is(err, unix.ENXIO) {
		return size, size
	}
	if err != nil {
		return off, size // no holes to be told: everything is data
	}
	end, err = unix.Seek(fd, start, unix.SEEK_HOLE)
	if err != nil || end <= start {
		end = size
	}
	return min(start, size), min(end, size)
}

// enableVerity asks the kernel to check every read of f, which nobody may have open for writing,
// against a hash tree (fs-verity). Where there is no fs-verity nothing happens, and the store does
// not ask again.
func (s *Store) enableVerity(f *os.File) error {
	if s.noVerity.Load() {
		return nil
	}
	arg := unix.FsverityEnableArg{Version: 1, Hash_algorithm: unix.FS_VERITY_HASH_ALG_SHA256, Block_size: 4096}
	err := retry(func() error {
		_, _, e := unix.Syscall(unix.SYS_IOCTL, f.Fd(), unix.FS_IOC_ENABLE_VERITY, uintptr(unsafe.Pointer(&arg)))
		if e != 0 {
			return e
		}
		return nil
	})
	runtime.KeepAlive(f)
	switch {
	case err == nil, errors.Is(err, unix.EEXIST), errors.Is(err, unix.ETXTBSY):
		return nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EIO):
		return &fs.PathError{Op: "enable fs-verity", Path: f.Name(), Err: err}
	}
	s.noVerity.Store(true)
	return nil
}

// linkOpen gives the open file src a second name. It reports false where that cannot be: another
// file system, no /proc, a file that the user may not link, too many links.
func linkOpen(src *os.File, path string) (bool, error) {
	from := "/proc/self/fd/" + strconv.Itoa(int(src.Fd()))
	err := retry(func() error {
		return unix.Linkat(unix.AT_FDCWD, from, unix.AT_FDCWD, path, unix.AT_SYMLINK_FOLLOW)
	})
	runtime.KeepAlive(src)
	switch {
	case err == nil:
		return true, nil
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT), errors.Is(err, unix.EIO), errors.Is(err, unix.EROFS):
		return false, &os.LinkError{Op: "link", Old: src.Name(), New: path, Err: err}
	}
	return false, nil
}

// takeLease takes a read lease on f, which is open for reading only: it says that nobody has the
// file open for writing, and makes whoever opens it for writing wait until it is given back
// (fcntl(2), F_SETLEASE).
func takeLease(f *os.File) lease {
	_, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_RDLCK)
	runtime.KeepAlive(f)
	switch {
	case err == nil:
		return leaseTaken
	case errors.Is(err, unix.EAGAIN):
		return leaseBusy
	}
	return leaseNone
}

// leaseHeld reports false once somebody waits for the lease on f or has broken it.
func leaseHeld(f *os.File) bool {
	kind, err := unix.FcntlInt(f.Fd(), unix.F_GETLEASE, 0)
	runtime.KeepAlive(f)
	return err == nil && kind == unix.F_RDLCK
}

func dropLease(f *os.File) {
	// Nothing can be done about a lease that is gone already; closing f ends it in any case.
	_, _ = unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK)
	runtime.KeepAlive(f)
}
