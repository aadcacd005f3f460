package snapshot

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"bole/lmdbstore"
	"bole/merkle"
)

// ErrConflict is matched by ConflictError.
var ErrConflict = errors.New("unsaved work is in the way")

// ConflictError lists paths whose unsaved state a checkout would have overwritten. Nothing was changed.
type ConflictError struct{ Paths []string }

// Error names up to ten of the paths.
func (e *ConflictError) Error() string {
	shown := e.Paths[:min(10, len(e.Paths))]
	more := ""
	if n := len(e.Paths) - len(shown); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%v: %q%s", ErrConflict, shown, more)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// CheckoutOptions say how a working directory is moved to another commit.
type CheckoutOptions struct {
	Force    bool // overwrite unsaved work, drop what is staged
	Progress func(Progress)
	// Problem is told what the disk could not hold, such as a large attribute.
	Problem func(Problem)
}

// CheckoutResult counts the files, links and directories written and removed.
type CheckoutResult struct{ Written, Removed uint64 }

// Checkout makes the working directory that of another commit and moves HEAD
// there: onto the branch when the revision is one. Work that is not committed
// is kept where both commits agree and refused with a ConflictError, before
// anything is written, where they do not. Untracked files stay.
func (r *Repo) Checkout(ctx context.Context, rev Revision, o CheckoutOptions) (CheckoutResult, error) {
	if rev.Path != "" {
		return CheckoutResult{}, fmt.Errorf("checkout takes a whole commit, not %s: %w", rev.Path, ErrNoPath)
	}
	return r.move(ctx, o, func(worktree) (Head, error) { return Head{Branch: rev.Branch, Commit: rev.Commit}, nil })
}

// Update moves the working directory to the commit that its branch stands on
// now. Unsaved work is kept like in Checkout.
func (r *Repo) Update(ctx context.Context, o CheckoutOptions) (CheckoutResult, error) {
	return r.move(ctx, o, func(wt worktree) (Head, error) {
		if wt.head.Commit.IsZero() {
			return wt.head, ErrUnborn
		}
		return wt.head, nil
	})
}

func (r *Repo) move(ctx context.Context, o CheckoutOptions, to func(worktree) (Head, error)) (res CheckoutResult, err error) {
	if r.Bare() {
		return res, ErrBare
	}
	lock, err := r.lockWorktree(ctx)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	wt, err := r.worktree()
	if err != nil {
		return res, err
	}
	head, err := to(wt)
	if err != nil {
		return res, err
	}
	c, err := r.ReadCommit(head.Commit)
	if err != nil {
		return res, err
	}
	target := rootEntry(c)
	m := &mover{ctx: ctx, repo: r, o: o, wt: wt, target: &target, led: worktreeLedger()}
	if err := m.run(); err != nil {
		return res, err
	}
	err = r.db.Update(func(w *lmdbstore.Writer) error { return m.finish(w, head) })
	return CheckoutResult{Written: m.out.written.Load(), Removed: m.out.removed.Load()}, err
}

// mover takes a working directory from one tree to another.
type mover struct {
	ctx    context.Context
	repo   *Repo
	o      CheckoutOptions
	wt     worktree
	target *merkle.Entry
	led    ledger

	look      *looker // compares what is on disk
	out       *writeOut
	conflicts []string
	extra     []string // paths to restore beside the difference, with Force
	settled   []string // stage records that the target makes void
}

func (m *mover) run() (err error) {
	if m.look, err = newLooker(m.ctx, m.repo); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.look.close()) }()
	if err := m.repo.checkFolding(m.ctx, m.target); err != nil {
		return err
	}
	if m.o.Force {
		err = m.gatherUnsaved()
	} else {
		err = m.findConflicts()
	}
	if err != nil {
		return err
	}
	if len(m.conflicts) > 0 {
		return &ConflictError{m.conflicts}
	}
	if m.out, err = newWriteOut(m.ctx, m.repo, m.look, m.o); err != nil {
		return err
	}
	return errors.Join(m.write(), m.out.close())
}

// diff calls fn for what differs between the working directory's base and the
// target, with clones; no read transaction is held while fn runs a file through.
func (m *mover) diff(fn func(path string, old, now *merkle.Entry) error) error {
	return m.repo.View(func(rd merkle.Reader) error {
		var base merkle.Hash
		if m.wt.root != nil {
			base = m.wt.root.Hash
		}
		return merkle.Diff(rd, base, m.target.Hash, func(d merkle.DiffEntry) error {
			if err := m.ctx.Err(); err != nil {
				return err
			}
			return fn(string(d.Path), d.Old, d.New)
		})
	})
}

// findConflicts compares disk and stage with both trees before anything is written.
func (m *mover) findConflicts() error {
	err := m.diff(func(path string, old, now *merkle.Entry) error {
		ok, err := m.look.mayReplace(path, old, now)
		if err == nil && !ok {
			m.conflicts = append(m.conflicts, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	return m.repo.db.View(func(rd *lmdbstore.Reader) error {
		return m.led.eachStaged(rd, "", "", func(path string, rec stageRecord) error {
			return m.staged(rd, path, rec)
		})
	})
}

// staged decides about one record: kept where both trees agree, void where the
// target already has it, a conflict otherwise.
func (m *mover) staged(rd *lmdbstore.Reader, path string, rec stageRecord) error {
	old, err := entryAt(rd, m.wt.root, path)
	if err != nil {
		return err
	}
	now, err := entryAt(rd, m.target, path)
	if err != nil {
		return err
	}
	dir, _ := splitPath(path)
	parent, err := entryAt(rd, m.target, dir)
	if err != nil {
		return err
	}
	e, ok := rec.over(old)
	switch {
	case rec.op == stageInside:
		if now == nil || now.Kind != merkle.KindDir {
			m.conflicts = append(m.conflicts, path)
		}
	case ok && now != nil && sameMeta(&e, now), !ok && now == nil:
		m.settled = append(m.settled, path)
	case (old == nil) != (now == nil) || old != nil && !sameMeta(old, now):
		m.conflicts = append(m.conflicts, path)
	case (parent == nil || parent.Kind != merkle.KindDir) && old != nil:
		m.conflicts = append(m.conflicts, path)
	}
	return nil
}

// entryAt is the entry of a path below a root entry, nil when it is not there.
func entryAt(rd merkle.Reader, root *merkle.Entry, path string) (*merkle.Entry, error) {
	if root == nil {
		return nil, nil
	}
	e, err := lookup(rd, *root, path)
	if errors.Is(err, ErrNoPath) {
		return nil, nil
	}
	return &e, err
}

// gatherUnsaved lists what --force throws away, so that it is restored even
// where the two commits agree.
func (m *mover) gatherUnsaved() error {
	st, err := m.repo.Status(m.ctx, StatusOptions{})
	if err != nil && !errors.Is(err, ErrUnreadable) {
		return err
	}
	for _, c := range append(st.Unstaged, st.Staged...) {
		if c.Path != "." {
			m.extra = append(m.extra, c.Path)
		}
	}
	return nil
}

// write brings the disk to the target.
func (m *mover) write() error {
	err := m.diff(func(path string, old, now *merkle.Entry) error {
		return m.out.replace(path, old, now)
	})
	if err != nil {
		return err
	}
	err = m.repo.View(func(rd merkle.Reader) error {
		for _, path := range m.extra {
			now, err := entryAt(rd, m.target, path)
			if err == nil {
				err = m.out.restore(path, now)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return m.out.settle(m.target)
}

// finish moves HEAD and the base in one transaction, when all files are in place.
func (m *mover) finish(w *lmdbstore.Writer, head Head) error {
	if m.o.Force {
		if err := w.Drop(m.led.stage); err != nil {
			return fmt.Errorf("empty the stage: %w", err)
		}
	}
	for _, path := range m.settled {
		if err := w.Delete(m.led.stage, m.led.stageKey(path)); err != nil {
			return err
		}
	}
	if head.Branch != "" {
		now, _, err := readRef(w, headsPrefix+head.Branch)
		if err != nil {
			return err
		}
		if now != head.Commit {
			return fmt.Errorf("branch %s: %w; run the command again", head.Branch, ErrRefMoved)
		}
	}
	if err := setHead(w, head); err != nil {
		return err
	}
	return setBase(w, head.Commit)
}

// parentPath is the folder of a path; "" for names in the root.
func parentPath(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }
