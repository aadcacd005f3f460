package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// place is where a file goes.
type place struct {
	dirfd      int
	name, path string
	isNew      bool // nothing had the name when the checkout looked
}

// write makes one file or symlink complete under a temporary name and renames
// it over what is there.
func (w *writeOut) write(to place, e *merkle.Entry) error {
	tmp := w.tempName()
	var ino uint64
	var err error
	if e.Kind == merkle.KindSymlink {
		err = w.makeLink(tmp, e)
	} else {
		ino, err = w.makeFile(tmp, to.path, e)
	}
	if err == nil {
		err = to.rename(tmp)
	}
	if err != nil {
		return errors.Join(err, removeIfThere(tmp))
	}
	if e.Kind == merkle.KindFile {
		var st fileStat
		if err := lstatAt(to.dirfd, to.name, &st); err == nil && st.ino == ino {
			w.note(to.path, &st, e.Hash, e.Attrs)
		}
	}
	if w.o.Progress != nil {
		n := w.bytes.Add(e.Size)
		w.mu.Lock()
		w.o.Progress(Progress{Phase: "checkout", Files: w.written.Load(), Bytes: n})
		w.mu.Unlock()
	}
	return nil
}

// rename gives a finished file its name. A new name must not be taken by then:
// what has it came meanwhile, or is a file of this checkout whose name the file
// system cannot tell from this one.
func (p place) rename(tmp string) error {
	var err error = unix.EINVAL
	if p.isNew {
		err = unix.Renameat2(unix.AT_FDCWD, tmp, p.dirfd, p.name, unix.RENAME_NOREPLACE)
	}
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // no such flag on this file system
		err = unix.Renameat(unix.AT_FDCWD, tmp, p.dirfd, p.name)
	}
	if err != nil {
		return fmt.Errorf("rename into place: %w", err)
	}
	return nil
}

func removeIfThere(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (w *writeOut) makeLink(tmp string, e *merkle.Entry) error {
	target, err := w.repo.LinkTarget(e)
	if err != nil {
		return fmt.Errorf("read symlink target: %w", err)
	}
	if err := unix.Symlinkat(string(target), unix.AT_FDCWD, tmp); err != nil {
		return fmt.Errorf("make symlink: %w", err)
	}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, tmp, mtimeSpec(e.Mtime), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fmt.Errorf("set time: %w", err)
	}
	return nil
}

// mtimeSpec leaves atime alone and sets mtime, also before 1970.
func mtimeSpec(ns int64) []unix.Timespec {
	sec, rest := ns/1e9, ns%1e9
	if rest < 0 {
		sec, rest = sec-1, rest+1e9
	}
	return []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: sec, Nsec: rest}}
}

func (w *writeOut) makeFile(tmp, path string, e *merkle.Entry) (ino uint64, err error) {
	f, err := os.OpenFile(tmp, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if err := w.fill(f, e); err != nil {
		return 0, err
	}
	fd := int(f.Fd())
	if err := w.setAttrs(fd, path, e.Attrs); err != nil {
		return 0, err
	}
	if err := unix.Fchmod(fd, uint32(e.Perm)); err != nil {
		return 0, fmt.Errorf("set mode: %w", err)
	}
	if err := setMtime(fd, e.Mtime); err != nil {
		return 0, err
	}
	var st fileStat
	if err := lstatAt(fd, "", &st); err != nil {
		return 0, err
	}
	return st.ino, nil
}

// setMtime sets the time of an open file or directory.
func setMtime(fd int, ns int64) error {
	if err := unix.UtimesNanoAt(fd, "", mtimeSpec(ns), unix.AT_EMPTY_PATH); err != nil {
		return fmt.Errorf("set time: %w", err)
	}
	return nil
}

// setAttrs writes attributes and reports those that the disk does not hold.
func (w *writeOut) setAttrs(fd int, path string, h merkle.Hash) error {
	attrs, err := w.repo.Attributes(h)
	if err != nil {
		return err
	}
	refused, err := writeAttrs(fd, attrs)
	if err != nil {
		return err
	}
	for _, name := range refused {
		if w.o.Problem != nil {
			w.mu.Lock()
			w.o.Problem(Problem{path, "the disk does not hold its attribute " + name})
			w.mu.Unlock()
		}
	}
	return nil
}

var copyBuffers = sync.Pool{New: func() any { b := make([]byte, 1<<20); return &b }}

// fill copies a content, verifying it, with holes where it has whole blocks of zeros.
func (w *writeOut) fill(f *os.File, e *merkle.Entry) error {
	c, err := w.repo.OpenContent(e.Hash)
	if err != nil {
		return err
	}
	defer c.Release()
	if c.Size() != e.Size {
		return fmt.Errorf("content %s has %d bytes, its entry says %d: %w", e.Hash, c.Size(), e.Size, merkle.ErrCorrupt)
	}
	if c.small != nil {
		if err := writeSparse(f, c.small, 0); err != nil {
			return err
		}
		return f.Truncate(int64(e.Size))
	}
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	h := merkle.NewContentHasher()
	for off := int64(0); off < int64(e.Size); {
		if err := w.gctx.Err(); err != nil {
			return err
		}
		n, err := c.ReadAt((*buf)[:min(int64(len(*buf)), int64(e.Size)-off)], off)
		if n == 0 && err != nil {
			if errors.Is(err, io.EOF) {
				err = fmt.Errorf("%w: it is cut off", ErrDamaged)
			}
			return fmt.Errorf("read content %s: %w", e.Hash, err)
		}
		h.Write((*buf)[:n])
		if err := writeSparse(f, (*buf)[:n], off); err != nil {
			return err
		}
		off += int64(n)
	}
	if h.Sum() != e.Hash {
		return fmt.Errorf("content %s: %w", e.Hash, ErrDamaged)
	}
	return f.Truncate(int64(e.Size))
}

var zeroBlock [4096]byte

// writeSparse writes b at off, leaving out aligned blocks of zeros.
func writeSparse(f *os.File, b []byte, off int64) error {
	for len(b) > 0 {
		n := blockRun(b, false)
		if n > 0 {
			if _, err := f.WriteAt(b[:n], off); err != nil {
				return err
			}
		}
		n += blockRun(b[n:], true)
		b, off = b[n:], off+int64(n)
	}
	return nil
}

// blockRun is the length of the run of blocks at the front that are, or are not, whole blocks of zeros.
func blockRun(b []byte, zero bool) int {
	n := 0
	for n < len(b) {
		block := b[n:min(n+len(zeroBlock), len(b))]
		if isZero := len(block) == len(zeroBlock) && bytes.Equal(block, zeroBlock[:]); isZero != zero {
			break
		}
		n += len(block)
	}
	return n
}
