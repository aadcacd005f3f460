package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

var (
	// ErrUnreadable is matched by UnreadableError.
	ErrUnreadable = errors.New("could not be read")
	// ErrIgnored is returned when a path that patterns leave out was asked for by name.
	ErrIgnored = errors.New("left out by an ignore pattern (--force takes it all the same)")
)

// UnreadableError lists what a command could not read; the rest was done.
type UnreadableError struct{ Problems []Problem }

// Error names up to ten of the paths.
func (e *UnreadableError) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == 10 {
			fmt.Fprintf(&b, "; and %d more", len(e.Problems)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		fmt.Fprintf(&b, "%q: %s", p.Path, p.Reason)
	}
	return b.String()
}

// Is makes errors.Is(err, ErrUnreadable) true.
func (e *UnreadableError) Is(target error) bool { return target == ErrUnreadable }

// Progress is how far long work is. Totals are 0 while unknown.
type Progress struct {
	Phase             string
	Files, TotalFiles uint64
	Bytes, TotalBytes uint64
}

// Plan says before anything is stored how many files will be read, how many
// bytes must be written for them (none for holes and for what import --move
// links; Progress counts what is read), and how many the file system of the
// contents has free.
type Plan struct{ Files, Bytes, Free uint64 }

// AddOptions say what Add records. The callbacks may be nil; they are called one at a time.
type AddOptions struct {
	Paths    []string // from WorkPath; none: everything
	DryRun   bool     // only say what would be recorded
	Force    bool     // names that patterns leave out too
	Plan     func(Plan)
	Progress func(Progress)
	Changed  func(PathChange)
	Skipped  func(Problem)
}

// AddResult counts paths, and the bytes of files that were read.
type AddResult struct{ Added, Modified, Deleted, Unchanged, Bytes uint64 }

// Add brings the stage up to the working directory: contents are stored, and
// each path whose content, mode or attributes differ from the index is
// recorded, deletions too. Files that the stat table proves unchanged are not
// read. What cannot be read is left as it was and listed in an UnreadableError;
// everything else is recorded. ErrNoPath, ErrIgnored for paths asked for by name.
func (r *Repo) Add(ctx context.Context, o AddOptions) (res AddResult, err error) {
	if r.Bare() {
		return res, ErrBare
	}
	lock, err := r.lockWorktree(ctx)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	gc, err := r.shareGC(ctx)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, gc.close()) }()
	wt, err := r.worktree()
	if err != nil {
		return res, err
	}
	a := &adder{repo: r, o: o, led: worktreeLedger(), top: r.root, wt: wt}
	return a.run(ctx)
}

// adder is one run of Add or of Import.
type adder struct {
	repo *Repo
	o    AddOptions
	led  ledger
	top  string // folder that is read
	wt   worktree
	link bool // import --move: large files are linked, not copied
	keep bool // import: what is not on disk is no deletion
	s    *scanner
	rec  *recorder

	added, modified, deleted, same, bytes, files, linkedBytes atomic.Uint64
	plan                                                      Plan
	toRead                                                    uint64 // bytes

	mu       sync.Mutex // callbacks, and what one scan finds fault with:
	problems []Problem
	skipped  []Problem
	ignored  []string
}

func (a *adder) run(ctx context.Context) (res AddResult, err error) {
	work, err := a.makePlan(ctx)
	if err != nil || !work {
		res.Unchanged = a.same.Load()
		a.tellSkipped()
		return res, err
	}
	if a.o.Plan != nil {
		a.o.Plan(a.plan)
	}
	a.same.Store(0)
	if a.o.DryRun {
		a.rec = &recorder{led: a.led}
	} else if a.rec, err = a.repo.newRecorder(a.led); err != nil {
		return res, err
	} else {
		a.rec.batch.Until(ctx)
	}
	defer func() { err = errors.Join(err, a.rec.close()) }()
	want := newWanted(a.o.Paths)
	if err := a.scan(ctx, a, want); err != nil {
		return res, err
	}
	if err := a.rec.flush(); err != nil {
		return res, err
	}
	res = AddResult{Added: a.added.Load(), Modified: a.modified.Load(), Deleted: a.deleted.Load(),
		Unchanged: a.same.Load(), Bytes: a.bytes.Load()}
	a.tellSkipped()
	return res, a.complaint(want)
}

// scan runs one pass with a visitor.
func (a *adder) scan(ctx context.Context, v visitor, want *wanted) error {
	s, err := a.repo.newScanner(ctx, a.top, a.led, v)
	if err != nil {
		return err
	}
	s.force, s.failed, s.skipped, s.outside = a.o.Force, a.failed, a.skip, a.top != a.repo.root
	a.s = s
	a.problems, a.skipped, a.ignored = nil, nil, nil
	return errors.Join(s.run(want, a.wt.root, a.wt.index, a.wt.rootOp, a.wt.stat), s.close())
}

// complaint is what is wrong at the end although everything readable is recorded.
func (a *adder) complaint(want *wanted) error {
	if len(a.ignored) > 0 {
		return fmt.Errorf("%q: %w", a.ignored[0], ErrIgnored)
	}
	if missing := a.missing(want); missing != "" {
		return fmt.Errorf("%q: %w", missing, ErrNoPath)
	}
	if len(a.problems) > 0 {
		sort.Slice(a.problems, func(i, j int) bool { return a.problems[i].Path < a.problems[j].Path })
		return &UnreadableError{a.problems}
	}
	return nil
}

// missing is a path that was asked for and is nowhere, "" when there is none.
// One that leads through something with a problem may be there.
func (a *adder) missing(want *wanted) string {
	for _, path := range want.unseen("") {
		under := func(p Problem) bool { return wantsPath([]string{p.Path}, path) }
		if !slices.ContainsFunc(a.problems, under) {
			return path
		}
	}
	return ""
}

func (a *adder) failed(path string, err error) {
	if path == "" {
		path = "."
	}
	a.mu.Lock()
	a.problems = append(a.problems, Problem{path, err.Error()})
	a.mu.Unlock()
}

// skip notes what takes no part. Who asks for it by name, or for something in
// it, gets an error instead.
func (a *adder) skip(p Problem) {
	if a.asked(p.Path) {
		a.failed(p.Path, errors.New(p.Reason))
		return
	}
	a.mu.Lock()
	a.skipped = append(a.skipped, p)
	a.mu.Unlock()
}

func (a *adder) tellSkipped() {
	sort.Slice(a.skipped, func(i, j int) bool { return a.skipped[i].Path < a.skipped[j].Path })
	for _, p := range a.skipped {
		if a.o.Skipped != nil {
			a.o.Skipped(p)
		}
	}
}

// asked says whether a path was asked for by name, or something below it.
func (a *adder) asked(path string) bool {
	for _, p := range a.o.Paths {
		if rest, ok := strings.CutPrefix(p, path); ok && (rest == "" || rest[0] == '/') {
			return true
		}
	}
	return false
}

func (a *adder) unchanged(n int) { a.same.Add(uint64(n)) }

// ignoredName complains about a name that was asked for, and in an import,
// where nobody looks at the source again, notes all.
func (a *adder) ignoredName(path string, _ bool) {
	switch {
	case a.asked(path):
		a.mu.Lock()
		a.ignored = append(a.ignored, path)
		a.mu.Unlock()
	case a.s.outside:
		a.skip(Problem{path, "left out by an ignore pattern"})
	}
}

// begin records a directory that the index does not have before anything in it.
func (a *adder) begin(t *dirTask) (bool, error) {
	if t.self.indexKind() == merkle.KindDir {
		return true, nil
	}
	a.rec.clearBelow(t.path) // what a killed run may have left of another directory here
	e, err := a.dirEntry(t)
	if err != nil {
		a.failed(t.path, err)
		return false, nil
	}
	a.putDir(t, e)
	if t.path != "" {
		a.changed(t.path, t.self.index, &e)
	}
	return true, a.rec.stored(0)
}

// dirEntry is a directory's own metadata as it is now.
func (a *adder) dirEntry(t *dirTask) (merkle.Entry, error) {
	st := &t.self.st
	e := merkle.Entry{Kind: merkle.KindDir, Perm: st.perm, Mtime: st.mtime}
	if st.farTime {
		return e, errFarTime
	}
	if t.self.rec != nil && t.self.rec.proves(st) {
		e.Attrs = t.self.rec.attrs
		return e, nil
	}
	now := coarseNow()
	h, b, err := encodeFileAttrs(t.fd)
	if err != nil {
		return e, err
	}
	if !h.IsZero() {
		a.rec.putNode(h, b)
	}
	e.Attrs = h
	a.rec.putStat(t.path, newStatRecord(st, merkle.Hash{}, h, now, a.s.slack))
	return e, nil
}

// putDir records a directory. One that replaces something starts empty.
func (a *adder) putDir(t *dirTask, e merkle.Entry) {
	rec := stageRecord{op: stageMeta, entry: e}
	if t.self.op == stageFresh || t.self.indexKind() != merkle.KindDir && t.self.base != nil {
		rec.op = stageFresh
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.parent != nil {
		a.mark(t.parent)
	}
	a.rec.putStage(t.path, rec)
	t.marked = true
}

// mark makes the stage lead to a directory's records. It returns when the
// record is with the recorder: a checkpoint that takes what is put afterwards
// takes this one too, or has taken it.
func (a *adder) mark(t *dirTask) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.marked {
		return
	}
	if t.parent != nil {
		a.mark(t.parent)
	}
	a.rec.putStage(t.path, stageRecord{op: stageInside})
	t.marked = true
}

// done looks at the directory itself once its names are known. A new mtime
// counts only when a name in it was recorded, and a new mode only when the
// whole directory was asked for.
func (a *adder) done(t *dirTask) error {
	if t.self.indexKind() != merkle.KindDir {
		return nil // begin recorded it
	}
	e, err := a.dirEntry(t)
	if err != nil {
		a.failed(t.path, err)
		return nil
	}
	old := t.self.index
	if !t.want.all {
		e.Perm, e.Attrs = old.Perm, old.Attrs
	}
	moved := e.Perm != old.Perm || e.Attrs != old.Attrs
	if moved || t.touched && e.Mtime != old.Mtime {
		a.putDir(t, e)
	}
	if moved {
		a.changed(shownPath(t.path), old, &e)
	}
	return a.rec.stored(0)
}

// changed counts a recorded path and tells the caller.
func (a *adder) changed(path string, old, now *merkle.Entry) {
	c := PathChange{Path: path, Old: old, New: now, Kind: changeKind(old, now)}
	switch c.Kind {
	case Added:
		a.added.Add(1)
	case Deleted:
		a.deleted.Add(1)
	default:
		a.modified.Add(1)
	}
	if a.o.Changed != nil {
		a.mu.Lock()
		a.o.Changed(c)
		a.mu.Unlock()
	}
}

// free is what a file system has left for this user, in bytes.
func free(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return st.Bavail * uint64(st.Bsize), nil
}
