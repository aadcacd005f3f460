package merkle

import (
	"bytes"
	"errors"
	"fmt"
)

// DiffEntry is one path that differs between two trees. Old is nil when it was
// added, New when it was removed. Path and the entries are lent for the call.
type DiffEntry struct {
	Path     []byte
	Old, New *Entry
}

// SkipDir is returned by the function given to Diff to say that what lies below
// the directory that it was called with is of no interest.
var SkipDir = errors.New("skip this directory")

// Diff calls fn for every path that differs between the trees whose roots are
// the Dir nodes a and b (zero: the empty directory), in the order of
// ComparePaths. A directory that is in both trees gets a call only when its own
// Perm, Mtime or Attrs differ; one that was added or removed gets a call before
// everything in it. Directories and parts of directories with equal hashes are
// not read. An error of fn other than SkipDir ends Diff and is returned as it
// is. Directories nested deeper than MaxDepth give ErrTooDeep.
func Diff(r Reader, a, b Hash, fn func(DiffEntry) error) error {
	d := differ{r: r, fn: fn}
	return d.dirs(&a, &b, 0)
}

type differ struct {
	r    Reader
	fn   func(DiffEntry) error
	path []byte
}

// side is one of two search trees that are walked beside each other. It stands
// at a record of level at: at level 0 that is an entry, above a node that is
// not loaded yet.
type side struct {
	w   walk
	at  int
	end bool
	e   Entry
}

func (s *side) start(r Reader, h *Hash) error {
	if h.IsZero() {
		s.end = true
		return nil
	}
	root, err := openRoot(r, h)
	if err != nil {
		return err
	}
	s.w.start(r, root, *h, 0)
	s.at, s.end = root.level, root.count == 0
	return nil
}

// name returns the first name of what s stands at.
func (s *side) name() ([]byte, error) {
	f := &s.w.f[s.at]
	name, ok := f.n.name(f.i)
	if !ok {
		return nil, s.w.fail(s.at, "heap out of bounds")
	}
	return name, nil
}

// entry decodes the entry that s stands at.
func (s *side) entry() (*Entry, error) {
	f := &s.w.f[0]
	if fault := f.n.entry(f.i, &s.e); fault != "" {
		return nil, s.w.fail(0, fault)
	}
	return &s.e, nil
}

// open goes from a node to its first record.
func (s *side) open() error {
	err := s.w.load(s.at)
	s.at--
	return err
}

// step goes to the record after the current one and verifies that its name
// is after, which within a node it is.
func (s *side) step() error {
	from := s.at
	for ; s.at <= s.w.top; s.at++ {
		f := &s.w.f[s.at]
		if f.i+1 >= f.n.count {
			continue
		}
		f.i++
		if s.at == from {
			return nil
		}
		last, ok := s.w.f[from].n.lastName()
		name, err := s.name()
		if err == nil && (!ok || bytes.Compare(last, name) >= 0) {
			err = s.w.fail(from, "its last name is not before the next node's first")
		}
		return err
	}
	s.end = true
	return nil
}

func (d *differ) dirs(a, b *Hash, depth int) error {
	if *a == *b {
		return nil
	}
	if depth > MaxDepth {
		return fmt.Errorf("%.300q…: %w", d.path, ErrTooDeep)
	}
	var x, y side
	if err := x.start(d.r, a); err != nil {
		return err
	}
	if err := y.start(d.r, b); err != nil {
		return err
	}
	for !x.end || !y.end {
		if err := d.step(&x, &y, depth); err != nil {
			return err
		}
	}
	return nil
}

// step looks at what comes first on either side. A node is opened only when it
// may hold names of the other side, or holds what the other has not.
func (d *differ) step(x, y *side, depth int) error {
	order, err := compareSides(x, y)
	if err != nil {
		return err
	}
	if order < 0 {
		return d.only(x, true, depth)
	}
	if order > 0 {
		return d.only(y, false, depth)
	}
	if x.at == y.at {
		if x.at == 0 {
			return d.both(x, y, depth)
		}
		fx, fy := &x.w.f[x.at], &y.w.f[y.at]
		if *fx.n.hash(fx.i) == *fy.n.hash(fy.i) {
			if err := x.step(); err != nil {
				return err
			}
			return y.step()
		}
	}
	at := max(x.at, y.at)
	for _, s := range []*side{x, y} {
		if s.at == at {
			if err := s.open(); err != nil {
				return err
			}
		}
	}
	return nil
}

func compareSides(x, y *side) (int, error) {
	if x.end {
		return 1, nil
	}
	if y.end {
		return -1, nil
	}
	p, err := x.name()
	if err != nil {
		return 0, err
	}
	q, err := y.name()
	return bytes.Compare(p, q), err
}

// only deals with what stands on one side alone.
func (d *differ) only(s *side, old bool, depth int) error {
	if s.at > 0 {
		return s.open()
	}
	e, err := s.entry()
	if err != nil {
		return err
	}
	if old {
		err = d.report(e, nil, depth)
	} else {
		err = d.report(nil, e, depth)
	}
	if err != nil {
		return err
	}
	return s.step()
}

// both deals with a name that stands on both sides.
func (d *differ) both(x, y *side, depth int) error {
	p, err := x.entry()
	if err != nil {
		return err
	}
	q, err := y.entry()
	if err != nil {
		return err
	}
	if err := d.report(p, q, depth); err != nil {
		return err
	}
	if err := x.step(); err != nil {
		return err
	}
	return y.step()
}

// report calls fn for an entry that differs and goes into directories.
func (d *differ) report(p, q *Entry, depth int) error {
	if p != nil && q != nil && sameEntry(p, q) {
		return nil
	}
	at := len(d.path)
	defer func() { d.path = d.path[:at] }()
	if at > 0 {
		d.path = append(d.path, '/')
	}
	if p != nil {
		d.path = append(d.path, p.Name...)
	} else {
		d.path = append(d.path, q.Name...)
	}
	inside := p != nil && q != nil && p.Kind == KindDir && q.Kind == KindDir
	if !inside || p.Perm != q.Perm || p.Mtime != q.Mtime || p.Attrs != q.Attrs {
		err := d.fn(DiffEntry{Path: d.path, Old: p, New: q})
		if err == SkipDir {
			return nil
		}
		if err != nil {
			return err
		}
	}
	var a, b Hash
	if p != nil && p.Kind == KindDir {
		a = p.Hash
	}
	if q != nil && q.Kind == KindDir {
		b = q.Hash
	}
	return d.dirs(&a, &b, depth+1)
}

// sameEntry compares two entries of one name.
func sameEntry(p, q *Entry) bool {
	return p.Kind == q.Kind && p.Perm == q.Perm && p.Size == q.Size && p.Mtime == q.Mtime &&
		p.Hash == q.Hash && p.Attrs == q.Attrs && p.Files == q.Files && p.Dirs == q.Dirs &&
		bytes.Equal(p.Target, q.Target)
}
