package fs

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

// Warm puts all small contents below the paths, which are relative to the
// mount's root ("" or "." for all of it), into the kernel's page cache, so that
// reading them sends no request. progress, which may be nil, is told after each
// directory how many files and bytes are in. A damaged content is skipped and
// reported at the end: the rest is warm.
func (s *Server) Warm(ctx context.Context, paths []string, progress func(files, bytes uint64)) error {
	// The kernel takes contents for inodes that it holds. So this walks the
	// mount like any program, in calls that other threads of this very process
	// answer: none of them may be waiting for this one, which holds no lock.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w := &warmer{ctx: ctx, f: s.fs, progress: progress}
	for _, p := range paths {
		if err := w.path(s.mountpoint, p); err != nil {
			return fmt.Errorf("warm %s: %w", p, err)
		}
	}
	return w.damage
}

type warmer struct {
	ctx          context.Context
	f            *filesystem
	progress     func(files, bytes uint64)
	files, bytes uint64
	damage       error // the first
	window       window
	dirents      []byte
	opened       bool
}

const openDirFlags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC

// path warms what lies at a path, which no symlink is followed to.
func (w *warmer) path(mountpoint, p string) error {
	p = strings.TrimPrefix(path.Clean("/"+p), "/")
	fd, err := unix.Open(mountpoint, openDirFlags, 0)
	if err != nil {
		return err
	}
	r := w.f.rows.root
	for p != "" {
		name, rest, _ := strings.Cut(p, "/")
		slot, e, err := w.find(r, name)
		if err != nil {
			unix.Close(fd)
			return err
		}
		if e.Kind != merkle.KindDir {
			defer unix.Close(fd)
			if rest != "" {
				return unix.ENOTDIR
			}
			return w.one(fd, r, slot, &e)
		}
		next, child, err := w.descend(fd, r, slot, name)
		unix.Close(fd)
		if err != nil {
			return err
		}
		fd, r, p = next, child, rest
	}
	defer unix.Close(fd)
	return w.dir(fd, r)
}

// find looks a name up in a row's directory.
func (w *warmer) find(r *row, name string) (slot uint32, e merkle.Entry, err error) {
	err = w.f.repo.View(func(rd merkle.Reader) error {
		d, err := merkle.OpenDir(rd, &r.hash)
		if err != nil {
			return err
		}
		var lent merkle.Entry
		ordinal, err := d.Lookup([]byte(name), &lent)
		if err != nil {
			return err
		}
		slot, e = uint32(ordinal)+1, lent.Clone()
		return nil
	})
	return slot, e, err
}

// descend opens a subdirectory through the kernel, which gives it a row.
func (w *warmer) descend(fd int, r *row, slot uint32, name string) (int, *row, error) {
	next, err := unix.Openat(fd, name, openDirFlags, 0)
	if err != nil {
		return -1, nil, err
	}
	child, ok := w.f.rows.child(r, slot)
	if !ok {
		unix.Close(next)
		return -1, nil, errStale // it is open: it has a row
	}
	return next, child, nil
}

func (w *warmer) one(fd int, r *row, slot uint32, e *merkle.Entry) error {
	if e.Kind != merkle.KindFile || e.Size == 0 || e.Size > smallContent {
		return nil
	}
	w.openOne(fd, string(e.Name))
	w.store(fd, r, &smallFile{slot: slot, size: uint32(e.Size), hash: e.Hash})
	w.tell()
	return nil
}

func (w *warmer) tell() {
	if w.progress != nil {
		w.progress(w.files, w.bytes)
	}
}

// warmBatch is how many files are gathered in one look at the database.
const warmBatch = 256

// dir warms an open directory and everything below it.
func (w *warmer) dir(fd int, r *row) error {
	if err := w.instantiate(fd); err != nil {
		return err
	}
	for from := uint32(1); ; {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		var end uint32
		var whole bool
		err := w.f.repo.View(func(rd merkle.Reader) (err error) {
			end, whole, err = w.window.gather(rd, r, from, warmBatch, 1<<62)
			return err
		})
		if err != nil {
			return err
		}
		for i := range w.window.files {
			w.store(fd, r, &w.window.files[i])
		}
		w.tell()
		if whole {
			break
		}
		from = end
	}
	return w.below(fd, r)
}

// below goes on with the subdirectories, a block of names at a time.
func (w *warmer) below(fd int, r *row) error {
	type sub struct {
		slot uint32
		name string
	}
	for ordinal := uint64(0); ; {
		var subs []sub
		more := false
		err := w.f.repo.View(func(rd merkle.Reader) error {
			d, err := merkle.OpenDir(rd, &r.hash)
			if err != nil || ordinal >= d.Len() {
				return err
			}
			c := d.Seek(ordinal)
			var e merkle.Entry
			for len(subs) < warmBatch {
				at := c.Ordinal()
				ok, err := c.Next(&e)
				if err != nil || !ok {
					return err
				}
				ordinal = at + 1
				if slot, fits := slotOf(at); fits && e.Kind == merkle.KindDir {
					subs = append(subs, sub{slot, string(e.Name)})
				}
			}
			more = true
			return nil
		})
		if err != nil {
			return err
		}
		for _, s := range subs {
			next, child, err := w.descend(fd, r, s.slot, s.name)
			if err != nil {
				return fmt.Errorf("%s: %w", w.f.path(r, s.slot), err)
			}
			err = w.dir(next, child)
			unix.Close(next)
			if err != nil {
				return err
			}
		}
		if !more {
			return nil
		}
	}
}

// instantiate lists a directory so that the kernel makes inodes of its entries.
// It asks for attributes with the names only while somebody uses them: so one
// entry of each block is looked at.
func (w *warmer) instantiate(fd int) error {
	if w.dirents == nil {
		w.dirents = make([]byte, 256<<10)
	}
	for {
		n, err := unix.Getdents(fd, w.dirents)
		if err != nil || n == 0 {
			return err
		}
		var names []string
		_, _, names = unix.ParseDirent(w.dirents[:n], 1<<20, nil)
		if len(names) == 0 {
			continue
		}
		var st unix.Stat_t
		if err := unix.Fstatat(fd, names[len(names)-1], &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
			return err
		}
		if st.Mode&unix.S_IFMT == unix.S_IFREG {
			w.openOne(fd, names[len(names)-1])
		}
	}
}

// openOne opens and closes one file, which is where the kernel learns, once,
// that it need not ask about opening and closing.
func (w *warmer) openOne(fd int, name string) {
	if w.opened {
		return
	}
	if f, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0); err == nil {
		w.opened = true
		unix.Close(f)
	}
}

// store pushes one file; where the kernel does not hold it, it is looked up first.
func (w *warmer) store(fd int, r *row, s *smallFile) {
	content, err := w.window.read(w.f, s)
	if err == nil {
		st := w.f.store(r, s.slot, content)
		if st == fuse.ENOENT {
			var stat unix.Stat_t
			if unix.Fstatat(fd, path.Base(w.f.path(r, s.slot)), &stat, unix.AT_SYMLINK_NOFOLLOW) == nil {
				st = w.f.store(r, s.slot, content)
			}
		}
		if !st.Ok() {
			err = fmt.Errorf("the kernel takes no content: %w", fuseErrno(st))
		}
	}
	if err == nil {
		w.files++
		w.bytes += uint64(s.size)
	} else if w.damage == nil {
		w.damage = fmt.Errorf("warm %s: content %s: %w", w.f.path(r, s.slot), s.hash, err)
	}
}
