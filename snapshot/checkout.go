package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	folds     foldCheck
	becomes   string // the last path where a directory takes the place of a file
	conflicts []string
	extra     []string // paths to restore beside the difference, with Force
	settled   []string // stage records that the target makes void
	restaged  []stagedPath
}

func (m *mover) run() (err error) {
	if m.look, err = newLooker(m.ctx, m.repo); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.look.close()) }()
	if err := m.repo.removeScratch(); err != nil {
		return err
	}
	if m.folds, err = m.repo.newFoldCheck(m.ctx, m.target); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, m.folds.close()) }()
	if err := m.findConflicts(); err != nil {
		return err
	}
	if len(m.conflicts) > 0 {
		slices.Sort(m.conflicts)
		return &ConflictError{slices.Compact(m.conflicts)}
	}
	if m.out, err = newWriteOut(m.ctx, m.repo, m.look, m.o); err != nil {
		return err
	}
	return m.out.close(m.write())
}

// removeScratch removes what killed checkouts left. The caller holds worktree.lock.
func (r *Repo) removeScratch() error {
	for _, pattern := range []string{checkoutScratch, foldScratch} {
		left, err := filepath.Glob(filepath.Join(r.file("tmp"), pattern))
		if err != nil {
			return fmt.Errorf("look for scratch folders: %w", err)
		}
		for _, dir := range left {
			if err := os.RemoveAll(dir); err != nil {
				return fmt.Errorf("remove scratch folder: %w", err)
			}
		}
	}
	return nil
}

// diff calls fn for what differs between the working directory's base and the
// target, in path order, with clones.
func (m *mover) diff(fn func(path string, old, now *merkle.Entry) error) error {
	return m.repo.eachDifference(m.ctx, "", dirHash(m.wt.root), m.target.Hash, fn)
}

// write brings the disk to the target: first what goes, so that names are free
// for what comes.
func (m *mover) write() error {
	if err := m.diff(m.out.remove); err != nil {
		return err
	}
	if err := m.diff(m.out.create); err != nil {
		return err
	}
	for _, path := range m.extra {
		m.out.busy.Wait() // a path may be named twice, by itself and by what it lies in
		var now *merkle.Entry
		err := m.repo.View(func(rd merkle.Reader) (err error) {
			now, err = entryAt(rd, m.target, path)
			return err
		})
		if err == nil {
			err = m.out.restore(path, now)
		}
		if err != nil {
			return err
		}
	}
	return m.out.settle(m.wt.root, m.target)
}

// finish moves HEAD and the base in one transaction, when all files are in
// place. A branch that has moved on meanwhile leaves the working directory
// behind it, one that is gone leaves HEAD on no branch.
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
	for _, s := range m.restaged {
		if err := w.Put(m.led.stage, m.led.stageKey(s.path), s.rec.encode()); err != nil {
			return err
		}
	}
	if head.Branch != "" {
		now, _, err := readRef(w, headsPrefix+head.Branch)
		if err != nil {
			return err
		}
		if now.IsZero() {
			head.Branch = ""
		}
	}
	if err := setHead(w, head); err != nil {
		return err
	}
	return setBase(w, head.Commit)
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

// parentPath is the folder of a path; "" for names in the root.
func parentPath(path string) string { return path[:max(0, strings.LastIndexByte(path, '/'))] }
