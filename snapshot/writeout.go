package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

const checkoutScratch = "checkout-*"

// writeOut puts entries of a tree onto disk. Files are written beside the
// database and renamed into place, so that no half file and no followed link
// is ever seen; directories get their mode and mtime last.
type writeOut struct {
	ctx  context.Context
	repo *Repo
	look *looker
	o    CheckoutOptions
	tmp  string
	rec  *recorder
	jobs *errgroup.Group
	gctx context.Context
	busy sync.WaitGroup // jobs that are not done

	written, removed, bytes atomic.Uint64

	touched  map[string]bool   // directories whose time must be set at the end; true: made here
	loosened map[string]uint16 // modes of directories that were made writable meanwhile

	mu    sync.Mutex
	fresh []freshFile // written and not yet in the stat table
}

func newWriteOut(ctx context.Context, r *Repo, look *looker, o CheckoutOptions) (*writeOut, error) {
	tmp, err := os.MkdirTemp(r.file("tmp"), checkoutScratch)
	if err != nil {
		return nil, fmt.Errorf("checkout: %w", err)
	}
	rec, err := r.newRecorder(worktreeLedger())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	w := &writeOut{ctx: ctx, repo: r, look: look, o: o, tmp: tmp, rec: rec,
		touched: map[string]bool{}, loosened: map[string]uint16{}}
	w.jobs, w.gctx = errgroup.WithContext(ctx)
	w.jobs.SetLimit(2 * max(2, runtime.GOMAXPROCS(0)))
	return w, nil
}

// close ends a checkout that came to err. The first writer that failed is the
// reason why everything else was stopped.
func (w *writeOut) close(err error) error {
	if e := w.jobs.Wait(); e != nil && (err == nil || errors.Is(err, context.Canceled)) {
		err = e
	}
	for dir, perm := range w.loosened { // what settle did not come to
		err = errors.Join(err, w.chmod(dir, perm))
	}
	return errors.Join(err, w.rec.close(), os.RemoveAll(w.tmp))
}

// remove takes away what is on the old side alone, and directories that become something else.
func (w *writeOut) remove(path string, old, now *merkle.Entry) error {
	if err := w.gctx.Err(); err != nil {
		return err
	}
	switch {
	case old == nil:
		return merkle.SkipDir
	case old.Kind != merkle.KindDir && now == nil:
		return w.unlink(path)
	case old.Kind == merkle.KindDir && (now == nil || now.Kind != merkle.KindDir):
		if err := w.removeTree(path, old.Hash); err != nil {
			return err
		}
		return merkle.SkipDir
	}
	return nil
}

// create makes what is on the new side.
func (w *writeOut) create(path string, old, now *merkle.Entry) error {
	if err := w.gctx.Err(); err != nil {
		return err
	}
	switch {
	case now == nil:
		return merkle.SkipDir
	case now.Kind == merkle.KindDir:
		return w.mkdir(path, w.o.Force || old != nil && old.Kind != merkle.KindDir)
	}
	if err := w.put(path, now); err != nil {
		return err
	}
	return merkle.SkipDir
}

// restore brings a path to an entry whatever is there now, with all below it
// that is missing.
func (w *writeOut) restore(path string, now *merkle.Entry) error {
	switch {
	case now == nil:
		var st fileStat
		is, err := w.look.lstat(path, &st)
		if err != nil || is != present {
			return err
		}
		if st.kind == merkle.KindDir {
			return w.rmdir(path)
		}
		return w.unlink(path)
	case now.Kind != merkle.KindDir:
		return w.put(path, now)
	}
	if err := w.mkdir(path, true); err != nil {
		return err
	}
	return w.repo.eachEntry(w.ctx, now.Hash, func(e *merkle.Entry) error {
		p := joinPath(path, e.Name)
		var st fileStat
		if is, err := w.look.lstat(p, &st); err != nil || is == present {
			return err // if it differs, it is listed by itself
		}
		return w.restore(p, e)
	})
}

// parent opens the folder of a path, for changes in it.
func (w *writeOut) parent(path string) (int, string, error) {
	fd, name, err := w.look.parent(path)
	if err != nil || os.Geteuid() == 0 {
		return fd, name, err
	}
	var st fileStat
	if err := lstatAt(fd, "", &st); err != nil {
		return fd, name, err
	}
	if st.perm&0o300 != 0o300 && unix.Fchmod(fd, uint32(st.perm|0o700)) == nil {
		w.loosened[parentPath(path)] = st.perm
		w.touch(parentPath(path))
	}
	return fd, name, nil // whoever may not change the mode learns it from what comes next
}

// folder is parent for a path that gets something new: folders that are missing are made.
func (w *writeOut) folder(path string) (int, string, error) {
	fd, name, err := w.parent(path)
	if !errors.Is(err, unix.ENOENT) && !(w.o.Force && (errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP))) {
		return fd, name, err
	}
	if err := w.mkdir(parentPath(path), w.o.Force); err != nil {
		return -1, name, err
	}
	return w.parent(path)
}

// touch notes that a directory's names change; what was noted of it stays.
func (w *writeOut) touch(dir string) {
	if _, noted := w.touched[dir]; !noted {
		w.touched[dir] = false
	}
}

func (w *writeOut) unlink(path string) error {
	dirfd, name, err := w.parent(path)
	if err == nil {
		err = unix.Unlinkat(dirfd, name, 0)
	}
	if isAbsent(err) || errors.Is(err, unix.EISDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %q: %w", path, err)
	}
	w.gone(path)
	return nil
}

func (w *writeOut) gone(path string) {
	w.rec.removeStat(path)
	w.touch(parentPath(path))
	w.removed.Add(1)
}

// removeTree removes what a tree has below a path; what it does not have stays,
// and the directories around it.
func (w *writeOut) removeTree(path string, dir merkle.Hash) error {
	err := w.repo.eachEntry(w.ctx, dir, func(e *merkle.Entry) error {
		p := joinPath(path, e.Name)
		if e.Kind == merkle.KindDir {
			return w.removeTree(p, e.Hash)
		}
		return w.unlink(p)
	})
	if err != nil {
		return err
	}
	return w.rmdir(path)
}

// rmdir removes a directory if it is empty.
func (w *writeOut) rmdir(path string) error {
	w.look.forget()
	dirfd, name, err := w.parent(path)
	if err == nil {
		err = unix.Unlinkat(dirfd, name, unix.AT_REMOVEDIR)
	}
	if isAbsent(err) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EBUSY) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove folder %q: %w", path, err)
	}
	delete(w.touched, path)
	delete(w.loosened, path)
	w.gone(path)
	return nil
}

// mkdir makes a directory, with over in place of what is none. Its metadata comes last.
func (w *writeOut) mkdir(path string, over bool) error {
	w.look.forget()
	dirfd, name, err := w.folder(path)
	if err == nil {
		err = unix.Mkdirat(dirfd, name, 0o700)
	}
	if errors.Is(err, unix.EEXIST) {
		var st fileStat
		if err = lstatAt(dirfd, name, &st); err == nil && st.kind == merkle.KindDir {
			w.touch(path)
			return nil
		}
		if err == nil && !over {
			err = unix.EEXIST
		}
		if err == nil {
			if err = unix.Unlinkat(dirfd, name, 0); err == nil {
				err = unix.Mkdirat(dirfd, name, 0o700)
			}
		}
	}
	if err != nil {
		return fmt.Errorf("make folder %q: %w", path, err)
	}
	w.touched[path] = true
	w.touch(parentPath(path))
	w.written.Add(1)
	return nil
}

// put writes a file or symlink, in the background, unless it is there already.
func (w *writeOut) put(path string, e *merkle.Entry) error {
	to, right, err := w.clear(path, e)
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	if right {
		return unix.Close(to.dirfd)
	}
	w.busy.Add(1)
	w.jobs.Go(func() error {
		defer w.busy.Done()
		defer unix.Close(to.dirfd)
		if err := w.gctx.Err(); err != nil {
			return err
		}
		if err := w.write(to, e); err != nil {
			return fmt.Errorf("write %q: %w", path, err)
		}
		return nil
	})
	return w.noteBatch(limits.fresh)
}

// clear makes a path ready for an entry, unless it is right already. The
// descriptor of the place belongs to the caller.
func (w *writeOut) clear(path string, e *merkle.Entry) (to place, right bool, err error) {
	dirfd, name, err := w.folder(path)
	if err != nil {
		return to, false, err
	}
	w.touch(parentPath(path))
	if dirfd, err = unix.FcntlInt(uintptr(dirfd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
		return to, false, err
	}
	to = place{dirfd: dirfd, name: name, path: path}
	var st fileStat
	switch err = lstatAt(dirfd, name, &st); {
	case errors.Is(err, unix.ENOENT):
		to.isNew, err = true, nil
	case err != nil:
	case st.kind == merkle.KindDir && w.o.Force:
		err = w.removeAll(dirfd, name, path)
	default:
		right, err = w.isRight(dirfd, name, path, &st, e)
	}
	if err != nil {
		unix.Close(dirfd)
	}
	return to, right, err
}

// isRight says whether what is on disk is an entry to the last detail, as far as
// the stat table proves it: a checkout that was killed need not write it again.
func (w *writeOut) isRight(dirfd int, name, path string, st *fileStat, e *merkle.Entry) (bool, error) {
	if st.kind != e.Kind || st.mtime != e.Mtime || st.farTime {
		return false, nil
	}
	if e.Kind == merkle.KindSymlink {
		target, err := readLinkAt(dirfd, name)
		return err == nil && len(e.Target) > 0 && string(target) == string(e.Target), nil
	}
	if st.perm != e.Perm {
		return false, nil
	}
	rec, err := w.repo.statOf(worktreeLedger(), path)
	return err == nil && rec != nil && rec.proves(st) && rec.hash == e.Hash && rec.attrs == e.Attrs, err
}

// removeAll removes a directory that force puts something else in place of.
func (w *writeOut) removeAll(dirfd int, name, path string) error {
	fd, err := openDirAt(dirfd, name)
	if err != nil {
		return fmt.Errorf("open folder %q: %w", path, err)
	}
	defer unix.Close(fd)
	if os.Geteuid() != 0 {
		unix.Fchmod(fd, 0o700) // if that fails, so does what follows
	}
	l, err := readListing(fd)
	if err != nil {
		return fmt.Errorf("folder %q: %w", path, err)
	}
	for i := range l.names {
		below := string(l.name(i))
		err := unix.Unlinkat(fd, below, 0)
		if errors.Is(err, unix.EISDIR) {
			err = w.removeAll(fd, below, joinPath(path, below))
		}
		if err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("remove %q: %w", joinPath(path, below), err)
		}
	}
	w.look.forget()
	if err := unix.Unlinkat(dirfd, name, unix.AT_REMOVEDIR); err != nil {
		return fmt.Errorf("remove folder %q: %w", path, err)
	}
	w.removed.Add(1)
	return nil
}

// tempName is a fresh path beside the database.
func (w *writeOut) tempName() string {
	return filepath.Join(w.tmp, fmt.Sprint(w.written.Add(1)))
}
