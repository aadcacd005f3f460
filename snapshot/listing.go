package snapshot

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// fileStat is what lstat shows of a name in the working directory.
type fileStat struct {
	kind         merkle.Kind // 0: neither file, directory nor symlink
	perm         uint16      // mode bits 0777
	size         uint64      // bytes; a symlink: of its target
	mtime, ctime int64       // ns since 1970
	ino          uint64
	mountRoot    bool // something is mounted here
	farTime      bool // mtime does not fit 64 bits of ns
}

const (
	statxMask = unix.STATX_BASIC_STATS
	maxNsSec  = 9223372035 // seconds either side of 1970 that fit signed 64-bit ns
)

// lstatAt reads one name of an open directory; a name of "" is the directory itself.
func lstatAt(dirfd int, name string, st *fileStat) error {
	var x unix.Statx_t
	flags := unix.AT_SYMLINK_NOFOLLOW | unix.AT_NO_AUTOMOUNT
	if name == "" {
		flags |= unix.AT_EMPTY_PATH
	}
	for {
		err := unix.Statx(dirfd, name, flags, statxMask, &x)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
	*st = fileStat{perm: x.Mode & 0o777, size: x.Size, ino: x.Ino,
		mountRoot: x.Attributes&unix.STATX_ATTR_MOUNT_ROOT != 0}
	switch x.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		st.kind = merkle.KindFile
	case unix.S_IFDIR:
		st.kind = merkle.KindDir
	case unix.S_IFLNK:
		st.kind = merkle.KindSymlink
	}
	st.farTime = x.Mtime.Sec > maxNsSec || x.Mtime.Sec < -maxNsSec
	st.mtime = x.Mtime.Sec*1e9 + int64(x.Mtime.Nsec)
	st.ctime = x.Ctime.Sec*1e9 + int64(x.Ctime.Nsec)
	return nil
}

// openPath opens a path below a directory without following any link or
// entering what is mounted there, in steps where the path is longer than the
// kernel takes at once. Flags get O_CLOEXEC. ELOOP or ENOTDIR: a link or
// another thing than a directory is on the way; EXDEV: a mount.
func openPath(rootfd int, path string, flags int) (int, error) {
	const step = 3800 // below PATH_MAX
	if path == "" {
		path = "."
	}
	fd, closeFd := rootfd, false
	for {
		part, rest := path, ""
		if len(path) > step {
			i := strings.LastIndexByte(path[:step], '/')
			part, rest = path[:i], path[i+1:]
		}
		how := unix.OpenHow{Flags: uint64(flags | unix.O_CLOEXEC | unix.O_NOFOLLOW),
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_XDEV}
		if rest != "" {
			how.Flags = unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC
		}
		next, err := unix.Openat2(fd, part, &how)
		if closeFd {
			unix.Close(fd)
		}
		if errors.Is(err, unix.EINTR) || errors.Is(err, unix.EAGAIN) {
			return openPath(rootfd, path, flags)
		}
		if err != nil || rest == "" {
			return next, err
		}
		fd, closeFd, path = next, true, rest
	}
}

func openDirAt(rootfd int, path string) (int, error) {
	return openPath(rootfd, path, unix.O_RDONLY|unix.O_DIRECTORY)
}

// listing is the sorted names of one directory in one block of memory.
type listing struct {
	arena []byte
	names []nameRef
}

type nameRef struct {
	off uint32
	len uint8
}

func (l *listing) name(i int) []byte { return l.at(l.names[i]) }

func (l *listing) at(r nameRef) []byte { return l.arena[r.off : r.off+uint32(r.len)] }

// find returns the position of a name.
func (l *listing) find(name string) (int, bool) {
	i := sort.Search(len(l.names), func(i int) bool { return string(l.name(i)) >= name })
	return i, i < len(l.names) && string(l.name(i)) == name
}

var direntBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// readListing lists an open directory, without "." and "..". It keeps only the
// names: 20 or 30 bytes each.
func readListing(fd int) (*listing, error) {
	l := &listing{}
	buf := direntBuffers.Get().(*[32 << 10]byte)
	defer direntBuffers.Put(buf)
	for {
		n, err := unix.Getdents(fd, buf[:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		if n == 0 {
			break
		}
		if err := l.parse(buf[:n]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(l.names, func(a, b nameRef) int { return bytes.Compare(l.at(a), l.at(b)) })
	return l, nil
}

// parse reads linux_dirent64 records: inode u64, offset i64, length u16, type
// u8, name, NUL, padding (getdents64(2)).
func (l *listing) parse(b []byte) error {
	const header = 19
	for len(b) > 0 {
		if len(b) < header {
			return errors.New("list: the kernel's answer is cut off")
		}
		n := int(binary.NativeEndian.Uint16(b[16:]))
		if n < header || n > len(b) {
			return errors.New("list: the kernel's answer is malformed")
		}
		name := b[header:n]
		if i := bytes.IndexByte(name, 0); i >= 0 {
			name = name[:i]
		}
		b = b[n:]
		if s := string(name); s == "." || s == ".." {
			continue
		}
		if len(name) == 0 || len(name) > 255 {
			return fmt.Errorf("list: name of %d bytes", len(name))
		}
		l.names = append(l.names, nameRef{uint32(len(l.arena)), uint8(len(name))})
		l.arena = append(l.arena, name...)
	}
	return nil
}

// readLinkAt reads a symlink's target, any length.
func readLinkAt(dirfd int, name string) ([]byte, error) {
	for size := 256; ; size *= 4 {
		b := make([]byte, size)
		n, err := unix.Readlinkat(dirfd, name, b)
		if err != nil {
			return nil, err
		}
		if n < size {
			return b[:n], nil
		}
	}
}

// openFileAt opens a regular file of an open directory for reading, never
// following a link and never waiting on a FIFO that took its place.
func openFileAt(dirfd int, name, path string) (*os.File, error) {
	fd, err := unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}
