package snapshot

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"bole/lmdbstore"
	"bole/merkle"
)

// baseKey, in table meta, holds the 32 bytes of the commit that the working
// directory stands on; it is absent before the first commit.
var baseKey = []byte("worktree/base")

// worktree is where a working directory stands.
type worktree struct {
	head   Head
	base   merkle.Hash   // zero before the first commit
	root   *merkle.Entry // of the base commit, nil without one
	index  *merkle.Entry // the root under the stage
	rootOp stageOp
	stat   *statRecord // of the root
}

func readBase(t tableReader) (h merkle.Hash, err error) {
	b, err := t.Get(lmdbstore.Meta, baseKey)
	if errors.Is(err, lmdbstore.ErrNotFound) {
		return h, nil
	}
	if err == nil && len(b) != merkle.HashSize {
		err = fmt.Errorf("base of the working directory: %w", merkle.ErrCorrupt)
	}
	copy(h[:], b)
	return h, err
}

func setBase(w *lmdbstore.Writer, h merkle.Hash) error {
	if err := w.Put(lmdbstore.Meta, baseKey, h[:]); err != nil {
		return fmt.Errorf("write the working directory's base: %w", err)
	}
	return nil
}

// readWorktree reads where the working directory stands.
func readWorktree(rd *lmdbstore.Reader, led ledger) (wt worktree, err error) {
	if wt.head, err = readHead(rd); err != nil {
		return wt, err
	}
	if wt.base, err = readBase(rd); err != nil {
		return wt, err
	}
	if !wt.base.IsZero() {
		c, err := readCommit(rd, wt.base)
		if err != nil {
			return wt, err
		}
		e := rootEntry(c)
		wt.root, wt.index = &e, &e
	}
	if b, err := rd.Get(led.stage, led.stageKey("")); err == nil {
		rec, err := decodeStage(b)
		if err != nil {
			return wt, err
		}
		e, _ := rec.over(wt.root)
		e = e.Clone()
		wt.index, wt.rootOp = &e, rec.op
	} else if !errors.Is(err, lmdbstore.ErrNotFound) {
		return wt, err
	}
	if b, err := rd.Get(led.stat, led.statKey("")); err == nil {
		rec, err := decodeStat(b)
		if err != nil {
			return wt, err
		}
		wt.stat = &rec
	} else if !errors.Is(err, lmdbstore.ErrNotFound) {
		return wt, err
	}
	return wt, nil
}

func (r *Repo) worktree() (wt worktree, err error) {
	if r.Bare() {
		return wt, ErrBare
	}
	err = r.db.View(func(rd *lmdbstore.Reader) error {
		wt, err = readWorktree(rd, worktreeLedger())
		return err
	})
	return wt, err
}

// isDatabase says whether a file is a hard link to one of the database's own.
// Such a file must never be opened: closing it would drop the locks of this
// process.
func (r *Repo) isDatabase(dirfd int, name string, st *fileStat) bool {
	if st.kind != merkle.KindFile {
		return false
	}
	for _, own := range r.dbFiles {
		if own.Ino != st.ino {
			continue
		}
		var is unix.Stat_t
		if unix.Fstatat(dirfd, name, &is, unix.AT_SYMLINK_NOFOLLOW) == nil && is.Ino == own.Ino && is.Dev == own.Dev {
			return true
		}
	}
	return false
}

// CommitStaged commits what the stage holds onto the branch of HEAD. It is
// refused with ErrRefMoved when that branch does not stand where the working
// directory does, with ErrNothing when the stage changes nothing.
func (r *Repo) CommitStaged(ctx context.Context, m Meta) (id merkle.Hash, c *merkle.Commit, err error) {
	if r.Bare() {
		return id, nil, ErrBare
	}
	lock, err := r.lockWorktree(ctx)
	if err != nil {
		return id, nil, err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	wt, err := r.worktree()
	if err != nil {
		return id, nil, err
	}
	led := worktreeLedger()
	q := Request{Branch: wt.head.Branch, Parent: wt.base, Meta: m, Changes: stagedChanges(led),
		Finish: func(w *lmdbstore.Writer, id merkle.Hash) error {
			if err := w.Drop(led.stage); err != nil {
				return fmt.Errorf("empty the stage: %w", err)
			}
			return setBase(w, id)
		}}
	if wt.index == nil && !m.AllowEmpty {
		return id, nil, fmt.Errorf("%w: nothing was added", ErrNothing)
	}
	if !wt.base.IsZero() && !m.AllowEmpty && wt.base == wt.head.Commit {
		// A folder whose time alone moved, because what was added to it is gone again, is nothing.
		if some, err := r.changesSomething(); err != nil {
			return id, nil, err
		} else if !some {
			return id, nil, ErrNothing
		}
	}
	if wt.index != nil {
		q.Root = &RootMeta{Perm: wt.index.Perm, Mtime: wt.index.Mtime, Attrs: wt.index.Attrs}
	}
	return r.Commit(ctx, q)
}
