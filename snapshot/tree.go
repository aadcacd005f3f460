package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"bole/merkle"
)

// ErrNotDir is returned where a path goes on below something that is no directory.
var ErrNotDir = errors.New("not a directory")

// rootEntry is the entry that a commit's root folder would have, named "".
func rootEntry(c *merkle.Commit) merkle.Entry {
	return merkle.Entry{Kind: merkle.KindDir, Perm: c.RootPerm, Mtime: c.RootMtime, Attrs: c.RootAttrs,
		Hash: c.Tree, Size: c.Totals.Bytes, Files: c.Totals.Files, Dirs: c.Totals.Dirs}
}

// Lookup finds a path of a commit; "" is the root folder. The entry is a clone.
// ErrNoPath when it is not there.
func (r *Repo) Lookup(commit merkle.Hash, path string) (e merkle.Entry, err error) {
	err = r.View(func(rd merkle.Reader) error {
		c, err := readCommit(rd, commit)
		if err != nil {
			return err
		}
		e, err = lookup(rd, rootEntry(c), path)
		return err
	})
	return e, err
}

// lookup walks from an entry down a path.
func lookup(rd merkle.Reader, e merkle.Entry, path string) (merkle.Entry, error) {
	for rest := path; rest != ""; {
		var name string
		name, rest, _ = strings.Cut(rest, "/")
		if e.Kind != merkle.KindDir {
			return e, fmt.Errorf("%s: %w: %w", path, ErrNoPath, ErrNotDir)
		}
		d, err := merkle.OpenDir(rd, &e.Hash)
		if err != nil {
			return e, fmt.Errorf("open %s: %w", path, err)
		}
		var next merkle.Entry
		if _, err := d.Lookup([]byte(name), &next); errors.Is(err, merkle.ErrNotFound) {
			return e, fmt.Errorf("%s: %w", path, ErrNoPath)
		} else if err != nil {
			return e, fmt.Errorf("look up %s: %w", path, err)
		}
		e = next
	}
	return e.Clone(), nil
}

// List calls fn for every entry of the directory node h, in name order. The
// entry is lent: it dies when fn returns.
func (r *Repo) List(h merkle.Hash, fn func(e *merkle.Entry) error) error {
	return r.View(func(rd merkle.Reader) error { return list(rd, h, fn) })
}

func list(rd merkle.Reader, h merkle.Hash, fn func(e *merkle.Entry) error) error {
	d, err := merkle.OpenDir(rd, &h)
	if err != nil {
		return fmt.Errorf("open directory: %w", err)
	}
	cur := d.Seek(0)
	var e merkle.Entry
	for {
		ok, err := cur.Next(&e)
		if err != nil {
			return fmt.Errorf("list directory: %w", err)
		}
		if !ok {
			return nil
		}
		if err := fn(&e); err != nil {
			return err
		}
	}
}

// Walk calls fn for everything below an entry in path order (a directory
// before what it holds); paths start with the given one. merkle.SkipDir from
// fn leaves a directory out. Entries are lent. ErrTooDeep below merkle.MaxDepth.
func (r *Repo) Walk(path string, e merkle.Entry, fn func(path string, e *merkle.Entry) error) error {
	return r.View(func(rd merkle.Reader) error { return walk(rd, path, e.Hash, merkle.MaxDepth, fn) })
}

func walk(rd merkle.Reader, path string, dir merkle.Hash, depth int, fn func(path string, e *merkle.Entry) error) error {
	if depth < 0 {
		return fmt.Errorf("%.300q…: %w", path, merkle.ErrTooDeep)
	}
	return list(rd, dir, func(e *merkle.Entry) error {
		p := joinPath(path, e.Name)
		err := fn(p, e)
		if errors.Is(err, merkle.SkipDir) && e.Kind == merkle.KindDir {
			return nil
		}
		if err != nil || e.Kind != merkle.KindDir {
			return err
		}
		return walk(rd, p, e.Hash, depth-1, fn)
	})
}

func joinPath[T string | []byte](dir string, name T) string {
	if dir == "" {
		return string(name)
	}
	return dir + "/" + string(name)
}

// LinkTarget returns where a symlink entry points, from the entry or, when
// over 128 bytes long, from its content. Without a NUL byte, otherwise ErrCorrupt.
func (r *Repo) LinkTarget(e *merkle.Entry) ([]byte, error) {
	target := e.Target
	if len(target) == 0 {
		loc, err := r.locate(&e.Hash)
		if err == nil && loc.Length != e.Size {
			err = fmt.Errorf("%w: content %s has %d bytes, its entry says %d", merkle.ErrCorrupt, e.Hash, loc.Length, e.Size)
		}
		if err == nil {
			target, err = r.ReadContent(e.Hash, nil)
		}
		if err != nil {
			return nil, err
		}
	}
	if len(target) == 0 || bytes.IndexByte(target, 0) >= 0 {
		return nil, fmt.Errorf("%w: a symlink target that is empty or has a NUL byte", merkle.ErrCorrupt)
	}
	return target, nil
}

// Attributes reads the user.* attributes of an entry.
func (r *Repo) Attributes(h merkle.Hash) (attrs []merkle.Attr, err error) {
	if h.IsZero() {
		return nil, nil
	}
	err = r.View(func(rd merkle.Reader) error {
		b, err := rd.Node(&h)
		if err != nil {
			return fmt.Errorf("read attributes: %w", err)
		}
		attrs, err = merkle.DecodeAttrs(&h, b)
		return err
	})
	return attrs, err
}
