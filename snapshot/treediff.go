package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"bole/merkle"
)

// treeDiff walks what differs between two trees as merkle.Diff does, for work
// that takes its time: a reader is held only while entries are gathered.
type treeDiff struct {
	ctx  context.Context
	repo *Repo
	fn   func(path string, old, now *merkle.Entry) error
}

// eachDifference calls fn for every path that differs between the directories
// a and b (zero: empty), in path order, with clones; paths start with at. A
// directory on both sides gets a call only when its own mode, time or
// attributes differ. merkle.SkipDir from fn leaves out what lies below.
func (r *Repo) eachDifference(ctx context.Context, at string, a, b merkle.Hash, fn func(path string, old, now *merkle.Entry) error) error {
	d := treeDiff{ctx, r, fn}
	return d.dir(at, a, b, merkle.MaxDepth)
}

// eachEntry calls fn for every entry of a directory node, in name order, with
// clones; no reader is held meanwhile.
func (r *Repo) eachEntry(ctx context.Context, dir merkle.Hash, fn func(e *merkle.Entry) error) error {
	return r.eachDifference(ctx, "", merkle.Hash{}, dir, func(_ string, _, now *merkle.Entry) error {
		if err := fn(now); err != nil {
			return err
		}
		return merkle.SkipDir
	})
}

// pair is one name with what either side has.
type pair struct{ old, now *merkle.Entry }

func (p pair) name() []byte {
	if p.old != nil {
		return p.old.Name
	}
	return p.now.Name
}

func dirHash(e *merkle.Entry) merkle.Hash {
	if e == nil || e.Kind != merkle.KindDir {
		return merkle.Hash{}
	}
	return e.Hash
}

func (d *treeDiff) dir(path string, a, b merkle.Hash, depth int) error {
	if a == b {
		return nil
	}
	if depth < 0 {
		return fmt.Errorf("%.300q…: %w", path, merkle.ErrTooDeep)
	}
	for from := []byte(nil); ; {
		batch, err := d.batch(a, b, from)
		if err != nil {
			return fmt.Errorf("compare %q: %w", path, err)
		}
		for _, p := range batch {
			if err := d.pair(joinPath(path, p.name()), p, depth); err != nil {
				return err
			}
		}
		if len(batch) < limits.entries {
			return nil
		}
		from = append(bytes.Clone(batch[len(batch)-1].name()), 0)
	}
}

func (d *treeDiff) pair(path string, p pair, depth int) error {
	if err := d.ctx.Err(); err != nil {
		return err
	}
	a, b := dirHash(p.old), dirHash(p.now)
	if a.IsZero() || b.IsZero() || !sameEntry(p.old, p.now) {
		if err := d.fn(path, p.old, p.now); errors.Is(err, merkle.SkipDir) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return d.dir(path, a, b, depth-1)
}

// batch gathers up to limits.entries names, from one on, that differ.
func (d *treeDiff) batch(a, b merkle.Hash, from []byte) (out []pair, err error) {
	err = d.repo.View(func(rd merkle.Reader) error {
		var x, y entryCursor
		if err := errors.Join(x.open(rd, a, from), y.open(rd, b, from)); err != nil {
			return err
		}
		for len(out) < limits.entries && (x.ok || y.ok) {
			var p pair
			order := compareCursors(&x, &y)
			if order <= 0 {
				p.old = &x.e
			}
			if order >= 0 {
				p.now = &y.e
			}
			if order != 0 || !sameEntry(p.old, p.now) || p.old.Hash != p.now.Hash {
				out = append(out, pair{cloned(p.old), cloned(p.now)})
			}
			if order <= 0 {
				x.next()
			}
			if order >= 0 {
				y.next()
			}
			if err := errors.Join(x.err, y.err); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// entryCursor stands at an entry of a directory, when ok.
type entryCursor struct {
	cur merkle.Cursor
	dir merkle.Dir
	e   merkle.Entry
	ok  bool
	err error
}

func (c *entryCursor) open(rd merkle.Reader, dir merkle.Hash, from []byte) error {
	if dir.IsZero() {
		return nil
	}
	if c.dir, c.err = merkle.OpenDir(rd, &dir); c.err == nil {
		c.cur = c.dir.SeekName(from)
		c.next()
	}
	return c.err
}

func (c *entryCursor) next() { c.ok, c.err = c.cur.Next(&c.e) }

// compareCursors orders what two cursors stand at; a cursor at its end comes last.
func compareCursors(x, y *entryCursor) int {
	switch {
	case !x.ok:
		return 1
	case !y.ok:
		return -1
	}
	return bytes.Compare(x.e.Name, y.e.Name)
}
