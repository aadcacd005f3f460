package merkle

import (
	"bytes"
	"fmt"
)

// dirEdits turns the changes that lie in one directory into edits of its
// entries. What lies deeper is applied to the subdirectory first.
type dirEdits struct {
	a      *applier
	prefix int // length of the directory's path in a.path
	old    Dir
	e      edit
}

func (a *applier) newDirEdits(base Hash, root node) *dirEdits {
	var d *dirEdits
	if n := len(a.freeDirs); n > 0 {
		d, a.freeDirs = a.freeDirs[n-1], a.freeDirs[:n-1]
	} else {
		d = &dirEdits{a: a}
	}
	d.prefix = len(a.path)
	d.old = Dir{r: a.r, root: root, hash: base}
	return d
}

// next returns the edit of the next entry that changes, or nil when no change
// is left in the directory.
func (d *dirEdits) next() (*edit, error) {
	a := d.a
	for {
		c, err := a.src.peek()
		if err != nil || c == nil || !bytes.HasPrefix(c.Path, a.path[:d.prefix]) {
			return nil, err
		}
		name, _, deeper := bytes.Cut(c.Path[d.prefix:], []byte{'/'})
		a.path = append(append(a.path[:d.prefix], name...), '/')
		d.e.hi = append(append(d.e.hi[:0], name...), 0)
		d.e.lo = d.e.hi[:len(name)]
		d.e.has = false
		changed := false
		if deeper {
			changed, err = d.below()
		} else {
			changed, err = true, d.change(c)
		}
		a.path = a.path[:d.prefix]
		if err != nil {
			return nil, err
		}
		if changed {
			return &d.e, nil
		}
	}
}

// change makes the edit of a change to an entry itself, with the changes below
// it that follow.
func (d *dirEdits) change(c *Change) error {
	var old Entry
	switch {
	case c.Op == OpRemove:
		d.a.src.consume()
		return d.onlyRemovals()
	case c.Op == OpMeta:
		if err := d.lookup(&old); err != nil {
			return err
		}
	case c.Op != OpSet:
		return fmt.Errorf("%q: unknown operation %d: %w", c.Path, c.Op, ErrBadEntry)
	case c.Entry.Kind == KindDir:
		if err := d.graft(c.Entry.Hash, &old); err != nil {
			return err
		}
	default:
		e := c.Entry
		if e.Kind == KindSymlink && e.Size == 0 {
			e.Size = uint64(len(e.Target))
		}
		if err := d.set(&e); err != nil {
			return err
		}
		d.a.src.consume()
		return d.onlyRemovals()
	}
	if old.Kind != KindDir {
		old = Entry{Kind: KindDir}
	}
	old.Perm, old.Mtime, old.Attrs, old.Target = c.Entry.Perm, c.Entry.Mtime, c.Entry.Attrs, nil
	d.a.src.consume()
	if err := d.descend(&old); err != nil {
		return err
	}
	return d.set(&old)
}

// below makes the edit of a directory of which only entries change, if that
// changes it.
func (d *dirEdits) below() (bool, error) {
	var e Entry
	if err := d.lookup(&e); err != nil {
		return false, err
	}
	if e.Kind != KindDir {
		return false, d.onlyRemovals()
	}
	was := e.Hash
	if err := d.descend(&e); err != nil {
		return false, err
	}
	if e.Hash == was {
		return false, nil
	}
	return true, d.set(&e)
}

// lookup decodes the old entry into e; Kind is 0 when there is none.
func (d *dirEdits) lookup(e *Entry) error {
	e.Kind = 0
	if d.old.root.b == nil {
		return nil
	}
	_, err := d.old.Lookup(d.e.lo, e)
	if err == ErrNotFound {
		return nil
	}
	return err
}

// graft makes e the directory *h with the totals that its node has.
func (d *dirEdits) graft(h Hash, e *Entry) error {
	*e = Entry{Kind: KindDir}
	if h.IsZero() || h == d.a.empty {
		return nil
	}
	n, err := openRoot(d.a.r, &h)
	if err != nil {
		return err
	}
	t := n.totals()
	e.Hash, e.Files, e.Dirs, e.Size = h, t.Files, t.Dirs, t.Bytes
	return nil
}

// descend applies the changes that lie below a.path to the directory e and
// sets its hash and totals. A zero hash is an empty directory.
func (d *dirEdits) descend(e *Entry) error {
	c, err := d.a.src.peek()
	if err != nil {
		return err
	}
	if c != nil && bytes.HasPrefix(c.Path, d.a.path) {
		h, t, err := d.a.dir(e.Hash)
		e.Hash, e.Files, e.Dirs, e.Size = h, t.Files, t.Dirs, t.Bytes
		return err
	}
	if e.Hash.IsZero() {
		h, b := EmptyDir()
		e.Hash = h
		return d.a.put(h, b)
	}
	return nil
}

// onlyRemovals passes over the changes below what is no directory: removals
// find nothing to remove, anything else is an error.
func (d *dirEdits) onlyRemovals() error {
	for {
		c, err := d.a.src.peek()
		if err != nil || c == nil || !bytes.HasPrefix(c.Path, d.a.path) {
			return err
		}
		if c.Op != OpRemove {
			return fmt.Errorf("%q: %w: %q", c.Path, ErrNoParent, d.a.dirPath())
		}
		d.a.src.consume()
	}
}

// set encodes e as the record of the edit.
func (d *dirEdits) set(e *Entry) error {
	if fault := e.fault(); fault != "" {
		return fmt.Errorf("%q: %w: %s", d.a.dirPath(), ErrBadEntry, fault)
	}
	d.e.has = true
	d.e.fixed, d.e.item = appendEntry(d.e.fixed[:0], d.e.item[:0], d.e.lo, e)
	d.e.name = d.e.item[:len(d.e.lo)]
	return nil
}
