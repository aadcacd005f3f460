package snapshot

import (
	"errors"
	"fmt"

	"bole/lmdbstore"
	"bole/merkle"
)

// ChangeKind is what happened to a path, with git's letters.
type ChangeKind byte

// The kinds of change.
const (
	Added       ChangeKind = 'A'
	Modified    ChangeKind = 'M'
	Deleted     ChangeKind = 'D'
	TypeChanged ChangeKind = 'T'
)

// String is the letter.
func (k ChangeKind) String() string { return string(rune(k)) }

// PathChange is one path that differs between two trees. A directory that is
// there on one side only stands for everything in it where Status reports it,
// and is followed by it where Diff does. Old and New are clones, nil for "not there".
type PathChange struct {
	Path     string
	Kind     ChangeKind
	Old, New *merkle.Entry
}

// shownPath is how the root folder itself is named in lists of changes.
func shownPath(path string) string {
	if path == "" {
		return "."
	}
	return path
}

func changeKind(old, now *merkle.Entry) ChangeKind {
	switch {
	case old == nil:
		return Added
	case now == nil:
		return Deleted
	case old.Kind != now.Kind:
		return TypeChanged
	}
	return Modified
}

func cloned(e *merkle.Entry) *merkle.Entry {
	if e == nil {
		return nil
	}
	c := e.Clone()
	return &c
}

// Diff calls fn for each path that differs between two commits, in path order;
// a zero hash is the empty tree. Only what lies at or below path is compared.
func (r *Repo) Diff(a, b merkle.Hash, path string, fn func(PathChange) error) error {
	return r.View(func(rd merkle.Reader) error {
		old, err := commitEntry(rd, a, path)
		if err != nil {
			return err
		}
		now, err := commitEntry(rd, b, path)
		if err != nil {
			return err
		}
		if old == nil && now == nil && path != "" {
			return fmt.Errorf("%s: %w", path, ErrNoPath)
		}
		return diffEntries(rd, path, old, now, fn)
	})
}

// commitEntry is the entry of a path in a commit, nil when it is not there.
func commitEntry(rd merkle.Reader, id merkle.Hash, path string) (*merkle.Entry, error) {
	if id.IsZero() {
		return nil, nil
	}
	c, err := readCommit(rd, id)
	if err != nil {
		return nil, err
	}
	e, err := lookup(rd, rootEntry(c), path)
	if errors.Is(err, ErrNoPath) {
		return nil, nil
	}
	return &e, err
}

func diffEntries(rd merkle.Reader, path string, old, now *merkle.Entry, fn func(PathChange) error) error {
	var oldDir, newDir merkle.Hash
	if old != nil && old.Kind == merkle.KindDir {
		oldDir = old.Hash
	}
	if now != nil && now.Kind == merkle.KindDir {
		newDir = now.Hash
	}
	// The root of a commit is a change of its own for its mode and attributes only.
	if path != "" && !sameEntry(old, now) || path == "" && old != nil && now != nil && !sameMeta(old, now) {
		if err := fn(PathChange{Path: shownPath(path), Kind: changeKind(old, now), Old: old, New: now}); err != nil {
			return err
		}
	}
	if oldDir == newDir {
		return nil
	}
	return merkle.Diff(rd, oldDir, newDir, func(d merkle.DiffEntry) error {
		return fn(PathChange{Path: joinPath(path, d.Path), Kind: changeKind(d.Old, d.New), Old: cloned(d.Old), New: cloned(d.New)})
	})
}

// sameEntry compares all of two entries but, for directories, what is in them.
func sameEntry(a, b *merkle.Entry) bool {
	switch {
	case a == nil || b == nil:
		return a == b
	case a.Mtime != b.Mtime:
		return false
	}
	return sameMeta(a, b)
}

// sameMeta is what counts as unchanged in a working directory.
func sameMeta(a, b *merkle.Entry) bool {
	if a.Kind == merkle.KindDir && b.Kind == merkle.KindDir {
		return a.Perm == b.Perm && a.Attrs == b.Attrs
	}
	return sameData(a, b)
}

// DiffStaged calls fn for each path that the next commit would change; the root
// folder's own mode or attributes are the path ".". A directory comes before
// what is in it.
func (r *Repo) DiffStaged(fn func(PathChange) error) error {
	if r.Bare() {
		return ErrBare
	}
	led := worktreeLedger()
	return r.db.View(func(rd *lmdbstore.Reader) error {
		wt, err := readWorktree(rd, led)
		if err != nil {
			return err
		}
		if wt.root != nil && !sameMeta(wt.root, wt.index) {
			if err := fn(PathChange{Path: ".", Kind: Modified, Old: cloned(wt.root), New: cloned(wt.index)}); err != nil {
				return err
			}
		}
		d := stagedDiff{rd: rd, led: led, fn: fn}
		return d.dir("", wt.root, false)
	})
}

// changesSomething says whether the stage changes anything but times.
func (r *Repo) changesSomething() (bool, error) {
	err := r.DiffStaged(func(PathChange) error { return errStopped })
	if errors.Is(err, errStopped) {
		return true, nil
	}
	return false, err
}

// stagedDiff compares the stage with the base below it.
type stagedDiff struct {
	rd  *lmdbstore.Reader
	led ledger
	fn  func(PathChange) error
}

// dir compares one directory with records. fresh: what the base has here goes away unless it is staged again.
func (d *stagedDiff) dir(path string, base *merkle.Entry, fresh bool) error {
	var baseDir merkle.Hash
	if base != nil && base.Kind == merkle.KindDir {
		baseDir = base.Hash
	}
	if fresh && !baseDir.IsZero() {
		return d.freshDir(path, baseDir)
	}
	prefix := d.led.stageDir(path)
	return d.rd.Scan(d.led.stage, prefix[:], nil, func(k, v []byte) error {
		name := k[dirKeySize:]
		if len(name) == 0 {
			return nil
		}
		rec, err := decodeStage(v)
		if err != nil {
			return err
		}
		old, err := entryIn(d.rd, baseDir, name)
		if err != nil {
			return err
		}
		return d.record(joinPath(path, name), old, &rec)
	})
}

// record reports one record and what lies below it.
func (d *stagedDiff) record(path string, old *merkle.Entry, rec *stageRecord) error {
	var now *merkle.Entry
	if e, ok := rec.over(old); ok {
		now = cloned(&e)
	}
	if old == nil && now == nil {
		return nil
	}
	if old == nil || now == nil || !sameMeta(old, now) {
		if err := d.fn(PathChange{Path: path, Kind: changeKind(old, now), Old: old, New: now}); err != nil {
			return err
		}
	}
	if !rec.hasBelow() {
		return nil
	}
	return d.dir(path, old, rec.op == stageFresh)
}

// freshDir compares a directory that starts empty with the one that it replaces.
func (d *stagedDiff) freshDir(path string, baseDir merkle.Hash) error {
	staged := map[string]bool{}
	prefix := d.led.stageDir(path)
	err := d.rd.Scan(d.led.stage, prefix[:], nil, func(k, _ []byte) error {
		staged[string(k[dirKeySize:])] = true
		return nil
	})
	if err != nil {
		return err
	}
	err = list(d.rd, baseDir, func(e *merkle.Entry) error {
		p := joinPath(path, e.Name)
		if staged[string(e.Name)] {
			return nil
		}
		return d.fn(PathChange{Path: p, Kind: Deleted, Old: cloned(e)})
	})
	if err != nil {
		return err
	}
	return d.rd.Scan(d.led.stage, prefix[:], nil, func(k, v []byte) error {
		rec, err := decodeStage(v)
		if err != nil {
			return err
		}
		old, err := entryIn(d.rd, baseDir, k[dirKeySize:])
		if err != nil {
			return err
		}
		if rec.op == stageMeta { // nothing of the base shows through here
			rec.op = stageFresh
		}
		return d.record(joinPath(path, k[dirKeySize:]), old, &rec)
	})
}

// entryIn looks a name up in a directory node; nil when it is not there.
func entryIn(rd merkle.Reader, dir merkle.Hash, name []byte) (*merkle.Entry, error) {
	if dir.IsZero() {
		return nil, nil
	}
	d, err := merkle.OpenDir(rd, &dir)
	if err != nil {
		return nil, err
	}
	var e merkle.Entry
	if _, err := d.Lookup(name, &e); errors.Is(err, merkle.ErrNotFound) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	return cloned(&e), nil
}
