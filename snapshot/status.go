package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"sync"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// StatusOptions say what Status looks at.
type StatusOptions struct {
	Paths    []string // from WorkPath; none: everything
	Ignored  bool     // list what patterns leave out as well
	Progress func(Progress)
}

// Status is how a working directory differs from the stage and the stage from its commit.
type Status struct {
	Head      Head
	Base      merkle.Hash // the commit that the working directory stands on
	Moved     bool        // the branch of HEAD stands elsewhere now
	Staged    []PathChange
	Unstaged  []PathChange
	Untracked []string // a directory ends in '/'
	Ignored   []string
	Skipped   []Problem // special files, nested repositories, mounts
}

// Clean says whether there is nothing to add and nothing to commit.
func (s *Status) Clean() bool {
	return len(s.Staged)+len(s.Unstaged)+len(s.Untracked) == 0
}

// Status compares without changing anything. Files that the stat table proves
// unchanged are not read. What cannot be read is listed in an UnreadableError
// beside a complete rest. When another process commits meanwhile, it looks again.
func (r *Repo) Status(ctx context.Context, o StatusOptions) (*Status, error) {
	for range 10 {
		st, err := r.status(ctx, o)
		if err != nil && !errors.Is(err, ErrUnreadable) {
			return nil, err
		}
		wt, e := r.worktree()
		if e != nil {
			return nil, e
		}
		if wt.base == st.Base {
			return st, err
		}
	}
	return nil, fmt.Errorf("status: %w", errBusy)
}

var errBusy = errors.New("commits of another process come faster than the working directory can be looked at")

func (r *Repo) status(ctx context.Context, o StatusOptions) (*Status, error) {
	wt, err := r.worktree()
	if err != nil {
		return nil, err
	}
	v := &statuser{ctx: ctx, repo: r, o: o, out: &Status{Head: wt.head, Base: wt.base, Moved: wt.head.Commit != wt.base}}
	if v.s, err = r.newScanner(ctx, r.root, worktreeLedger(), v); err != nil {
		return nil, err
	}
	v.s.collapse = true
	v.s.failed = v.failed
	v.s.skipped = func(p Problem) { v.note(func() { v.out.Skipped = append(v.out.Skipped, p) }) }
	want := newWanted(o.Paths)
	if err := errors.Join(v.s.run(want, wt.root, wt.index, wt.rootOp, wt.stat), v.s.close()); err != nil {
		return nil, err
	}
	err = r.DiffStaged(func(c PathChange) error {
		if wantsPath(o.Paths, c.Path) {
			v.out.Staged = append(v.out.Staged, c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v.sort()
	if len(v.problems) > 0 {
		return v.out, &UnreadableError{v.problems}
	}
	return v.out, nil
}

// wantsPath says whether a path is at or below one of those asked for.
func wantsPath(paths []string, path string) bool {
	for _, p := range paths {
		if p == "" || p == path || len(path) > len(p) && path[:len(p)] == p && path[len(p)] == '/' {
			return true
		}
	}
	return len(paths) == 0
}

// statuser is the visitor of Status.
type statuser struct {
	ctx  context.Context
	repo *Repo
	o    StatusOptions
	s    *scanner

	mu       sync.Mutex
	out      *Status
	problems []Problem
}

func (v *statuser) note(f func()) {
	v.mu.Lock()
	f()
	v.mu.Unlock()
}

func (v *statuser) failed(path string, err error) {
	v.note(func() { v.problems = append(v.problems, Problem{path, err.Error()}) })
}

func (v *statuser) unchanged(int) {}

func (v *statuser) begin(*dirTask) (bool, error) { return true, nil }

func (v *statuser) ignoredName(path string, isDir bool) {
	if !v.o.Ignored {
		return
	}
	if isDir {
		path += "/"
	}
	v.note(func() { v.out.Ignored = append(v.out.Ignored, path) })
}

func (v *statuser) items(t *dirTask, items []item) error {
	for i := range items {
		if err := v.ctx.Err(); err != nil {
			return err
		}
		v.item(t, &items[i])
	}
	return nil
}

func (v *statuser) item(t *dirTask, it *item) {
	path := joinPath(t.path, it.name)
	if it.present && it.index == nil {
		if it.st.kind == merkle.KindDir {
			path += "/"
		}
		v.note(func() { v.out.Untracked = append(v.out.Untracked, path) })
		return
	}
	now, changed, err := v.compare(t, it, path)
	if errors.Is(err, unix.ENOENT) {
		now, changed, err = nil, true, nil
	}
	switch {
	case err != nil:
		v.failed(path, err)
	case changed:
		c := PathChange{Path: path, Kind: changeKind(it.index, now), Old: it.index, New: now}
		v.note(func() { v.out.Unstaged = append(v.out.Unstaged, c) })
	}
}

// compare reads a file only when its size, mode and kind leave it open whether it changed.
func (v *statuser) compare(t *dirTask, it *item, path string) (now *merkle.Entry, changed bool, err error) {
	if !it.present {
		return nil, true, nil
	}
	now = &merkle.Entry{Kind: it.st.kind, Perm: it.st.perm, Size: it.st.size, Mtime: it.st.mtime}
	switch it.st.kind {
	case merkle.KindDir:
		return now, true, nil // the index has something else here
	case merkle.KindSymlink:
		now.Perm = 0o777
		if len(it.target) <= merkle.InlineTarget {
			now.Target = it.target
		} else {
			now.Hash = merkle.ContentHash(it.target)
		}
		return now, !sameData(it.index, now), nil
	}
	if it.rec != nil && it.rec.proves(&it.st) {
		now.Hash, now.Attrs = it.rec.hash, it.rec.attrs
		return now, !sameData(it.index, now), nil
	}
	if it.index.Kind != merkle.KindFile || it.index.Size != now.Size || it.index.Perm != now.Perm {
		return now, true, nil
	}
	if now.Hash, now.Attrs, err = hashFile(v.ctx, t.fd, it.name, path); err != nil {
		return nil, false, err
	}
	return now, !sameData(it.index, now), nil
}

// hashFile names a file's content and attributes without storing them.
func hashFile(ctx context.Context, dirfd int, name, path string) (content, attrs merkle.Hash, err error) {
	f, err := openFileAt(dirfd, name, path)
	if err != nil {
		return content, attrs, err
	}
	defer f.Close()
	if content, err = hashOpen(ctx, f); err != nil {
		return content, attrs, err
	}
	attrs, _, err = encodeFileAttrs(int(f.Fd()))
	return content, attrs, err
}

func hashOpen(ctx context.Context, f *os.File) (merkle.Hash, error) {
	buf := copyBuffers.Get().(*[]byte)
	defer copyBuffers.Put(buf)
	h := merkle.NewContentHasher()
	_, err := io.CopyBuffer(h, &stoppableReader{ctx, f}, *buf)
	return h.Sum(), err
}

// stoppableReader ends with ctx, so that Ctrl-C need not wait for a large file.
type stoppableReader struct {
	ctx context.Context
	r   io.Reader
}

// Read reads unless ctx has ended.
func (s *stoppableReader) Read(p []byte) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	return s.r.Read(p)
}

// done compares a directory's own mode and attributes.
func (v *statuser) done(t *dirTask) error {
	old, st := t.self.index, &t.self.st
	if old == nil || !t.want.all {
		return nil // an empty repository, whose names are untracked one by one; or not asked for
	}
	now := &merkle.Entry{Kind: merkle.KindDir, Perm: st.perm, Mtime: st.mtime}
	if t.self.rec != nil && t.self.rec.proves(st) {
		now.Attrs = t.self.rec.attrs
	} else {
		h, _, err := encodeFileAttrs(t.fd)
		if err != nil {
			v.failed(t.path, err)
			return nil
		}
		now.Attrs = h
	}
	if !sameMeta(old, now) {
		path := shownPath(t.path)
		v.note(func() {
			v.out.Unstaged = append(v.out.Unstaged, PathChange{Path: path, Kind: Modified, Old: old, New: now})
		})
	}
	return nil
}

func (v *statuser) sort() {
	byPath := func(c []PathChange) {
		sort.Slice(c, func(i, j int) bool { return merkle.ComparePaths([]byte(c[i].Path), []byte(c[j].Path)) < 0 })
	}
	byPath(v.out.Staged)
	byPath(v.out.Unstaged)
	sort.Strings(v.out.Untracked)
	sort.Strings(v.out.Ignored)
	sort.Slice(v.out.Skipped, func(i, j int) bool { return v.out.Skipped[i].Path < v.out.Skipped[j].Path })
	sort.Slice(v.problems, func(i, j int) bool { return v.problems[i].Path < v.problems[j].Path })
}
