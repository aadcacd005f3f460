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
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

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

	written, removed, bytes atomic.Uint64

	touched map[string]bool // directories whose metadata must be set at the end

	mu    sync.Mutex
	fresh []freshFile // written and not yet in the stat table
}

// freshFile is a file as it was written, to be looked at again once the clock has moved on.
type freshFile struct {
	path        string
	ino         uint64
	mtime       int64
	hash, attrs merkle.Hash
}

// freshBatch bounds how many written files wait to be looked at.
const freshBatch = 8192

func newWriteOut(ctx context.Context, r *Repo, look *looker, o CheckoutOptions) (*writeOut, error) {
	tmp, err := os.MkdirTemp(r.file("tmp"), "checkout-*")
	if err != nil {
		return nil, fmt.Errorf("checkout: %w", err)
	}
	rec, err := r.newRecorder(worktreeLedger())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(tmp))
	}
	w := &writeOut{ctx: ctx, repo: r, look: look, o: o, tmp: tmp, rec: rec, touched: map[string]bool{}}
	w.jobs, w.gctx = errgroup.WithContext(ctx)
	w.jobs.SetLimit(2 * max(2, runtime.GOMAXPROCS(0)))
	return w, nil
}

func (w *writeOut) close() error {
	return errors.Join(w.jobs.Wait(), w.rec.close(), os.RemoveAll(w.tmp))
}

// replace takes one path from its old entry to its new one. The subtree of a
// directory that goes away or becomes something else goes with it.
func (w *writeOut) replace(path string, old, now *merkle.Entry) error {
	if err := w.gctx.Err(); err != nil {
		return err
	}
	dirNow := now != nil && now.Kind == merkle.KindDir
	if old != nil && old.Kind == merkle.KindDir && !dirNow {
		if err := w.removeTree(path, old.Hash); err != nil {
			return err
		}
	}
	switch {
	case now == nil && (old == nil || old.Kind != merkle.KindDir):
		return w.unlink(path)
	case now == nil:
		return merkle.SkipDir
	case dirNow:
		return w.mkdir(path)
	}
	if err := w.put(path, now); err != nil {
		return err
	}
	if old != nil && old.Kind == merkle.KindDir {
		return merkle.SkipDir
	}
	return nil
}

// restore brings a path to an entry whatever is there now, with all below it.
func (w *writeOut) restore(path string, now *merkle.Entry) error {
	switch {
	case now == nil:
		var st fileStat
		if _, _, ok, err := w.look.lstat(path, &st); err != nil || !ok || st.kind == merkle.KindDir {
			return err // a directory that was added: what is in it is listed by itself
		}
		return w.unlink(path)
	case now.Kind != merkle.KindDir:
		return w.put(path, now)
	}
	if err := w.mkdir(path); err != nil {
		return err
	}
	return w.repo.List(now.Hash, func(e *merkle.Entry) error {
		p := joinPath(path, e.Name)
		var st fileStat
		if _, _, ok, err := w.look.lstat(p, &st); err != nil || ok {
			return err // there: if it differs, it is listed by itself
		}
		return w.restore(p, e)
	})
}

// touch notes that a directory's names change.
func (w *writeOut) touch(dir string) { w.touched[dir] = true }

func (w *writeOut) unlink(path string) error {
	dirfd, name, err := w.look.parent(path)
	if err == nil {
		err = unix.Unlinkat(dirfd, name, 0)
	}
	if isAbsent(err) || errors.Is(err, unix.EISDIR) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %q: %w", path, err)
	}
	w.rec.removeStat(path)
	w.touch(parentPath(path))
	w.removed.Add(1)
	return nil
}

// removeTree removes what a tree has below a path; what it does not have stays,
// and the directories around it.
func (w *writeOut) removeTree(path string, dir merkle.Hash) error {
	err := w.repo.List(dir, func(e *merkle.Entry) error {
		p := joinPath(path, e.Name)
		if e.Kind == merkle.KindDir {
			return w.removeTree(p, e.Hash)
		}
		return w.unlink(p)
	})
	if err != nil {
		return err
	}
	w.look.forget()
	dirfd, name, err := w.look.parent(path)
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
	w.rec.removeStat(path)
	w.touch(parentPath(path))
	w.removed.Add(1)
	return nil
}

// mkdir makes a directory, in place of a file if need be. Its metadata comes last.
func (w *writeOut) mkdir(path string) error {
	dirfd, name, err := w.look.parent(path)
	if err == nil {
		err = unix.Mkdirat(dirfd, name, 0o700)
	}
	if errors.Is(err, unix.EEXIST) {
		var st fileStat
		if err = lstatAt(dirfd, name, &st); err == nil && st.kind != merkle.KindDir {
			if err = unix.Unlinkat(dirfd, name, 0); err == nil {
				err = unix.Mkdirat(dirfd, name, 0o700)
			}
		} else if err == nil {
			w.touch(path)
			return nil
		}
	}
	if err != nil {
		return fmt.Errorf("make folder %q: %w", path, err)
	}
	w.touch(path)
	w.touch(parentPath(path))
	w.written.Add(1)
	return nil
}

// put writes a file or symlink, in the background.
func (w *writeOut) put(path string, e *merkle.Entry) error {
	dirfd, name, err := w.look.parent(path)
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	fd, err := unix.FcntlInt(uintptr(dirfd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("write %q: %w", path, err)
	}
	w.touch(parentPath(path))
	clone := e.Clone()
	w.jobs.Go(func() error {
		defer unix.Close(fd)
		if err := w.gctx.Err(); err != nil {
			return err
		}
		if err := w.write(fd, name, path, &clone); err != nil {
			return fmt.Errorf("write %q: %w", path, err)
		}
		return nil
	})
	return w.noteBatch(freshBatch)
}

// noteBatch takes written files into the stat table. The clock moves on first,
// so that their records prove something.
func (w *writeOut) noteBatch(least int) error {
	w.mu.Lock()
	fresh := w.fresh
	if len(fresh) < least || len(fresh) == 0 {
		w.mu.Unlock()
		return nil
	}
	w.fresh = nil
	w.mu.Unlock()
	slack := clockSlack(w.look.rootfd)
	if slack < 1e9 {
		time.Sleep(time.Duration(2 * slack))
	}
	for _, f := range fresh {
		var st fileStat
		now := coarseNow()
		if _, _, ok, err := w.look.lstat(f.path, &st); err != nil {
			return err
		} else if ok && st.ino == f.ino && st.mtime == f.mtime {
			w.rec.putStat(f.path, newStatRecord(&st, f.hash, f.attrs, now, slack))
		}
		if err := w.rec.stored(0); err != nil {
			return err
		}
	}
	return nil
}

// settle waits for the writers, sets the directories' metadata from the target
// (deepest first) and notes what everything looks like now.
func (w *writeOut) settle(target *merkle.Entry) error {
	if err := w.jobs.Wait(); err != nil {
		return err
	}
	if err := w.noteBatch(1); err != nil {
		return err
	}
	w.touch("") // the root's own mode and attributes belong to the commit
	for _, dir := range deepestFirst(w.touched) {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		var e *merkle.Entry
		err := w.repo.View(func(rd merkle.Reader) (err error) {
			e, err = entryAt(rd, target, dir)
			return err
		})
		if err != nil {
			return err
		}
		if e == nil || e.Kind != merkle.KindDir {
			continue
		}
		if err := w.setDir(dir, e); err != nil {
			return fmt.Errorf("set mode and time of folder %q: %w", dir, err)
		}
	}
	return w.rec.flush()
}

// tempName is a fresh path beside the database.
func (w *writeOut) tempName() string {
	return filepath.Join(w.tmp, fmt.Sprint(w.written.Add(1)))
}
