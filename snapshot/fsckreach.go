package snapshot

import (
	"errors"
	"fmt"

	"bole/lmdbstore"
	"bole/merkle"
)

// records decodes the small tables.
func (f *fsck) records() error {
	return f.repo.db.View(func(rd *lmdbstore.Reader) error {
		check := func(t lmdbstore.Table, kind string, decode func(k, v []byte) error) error {
			return rd.Scan(t, nil, nil, func(k, v []byte) error {
				if err := decode(k, v); err != nil {
					name := fmt.Sprintf("%s/%x", t, k)
					if kind == "ref" {
						name = string(k)
					}
					f.damage(kind, name, err.Error(), "")
				}
				return f.ctx.Err()
			})
		}
		return errors.Join(
			check(lmdbstore.Stage, "record", checkStage),
			check(lmdbstore.Stat, "record", func(_, v []byte) error { _, err := decodeStat(v); return err }),
			check(lmdbstore.Reflog, "record", func(k, v []byte) error { _, err := decodeReflog(k, v); return err }),
			check(lmdbstore.Refs, "ref", func(k, v []byte) error { _, _, err := decodeRef(string(k), v); return err }))
	})
}

func checkStage(k, v []byte) error {
	_, err := decodeStage(v)
	if err == nil && len(k) > dirKeySize {
		err = merkle.CheckName(k[dirKeySize:])
	}
	return err
}

// reach walks from everything that keeps a node alive. What is malformed was
// reported by records.
func (f *fsck) reach() error {
	return f.repo.db.View(func(rd *lmdbstore.Reader) error {
		w := &reachWalk{fsck: f, rd: rd}
		err := rd.Scan(lmdbstore.Refs, nil, nil, func(k, v []byte) error {
			h, sym, err := decodeRef(string(k), v)
			if err != nil || sym != "" {
				return nil
			}
			return w.history(h, string(k))
		})
		if err != nil {
			return err
		}
		if base, err := readBase(rd); err != nil {
			f.damage("record", string(baseKey), err.Error(), "")
		} else if !base.IsZero() {
			if err := w.history(base, "the working directory"); err != nil {
				return err
			}
		}
		err = rd.Scan(lmdbstore.Reflog, nil, nil, func(k, v []byte) error {
			e, err := decodeReflog(k, v)
			if err != nil || e.New.IsZero() {
				return nil
			}
			return w.history(e.New, string(k[:len(k)-9])+" (reflog)")
		})
		if err != nil {
			return err
		}
		return w.stage("")
	})
}

// reachWalk follows commits and trees, each node once.
type reachWalk struct {
	*fsck
	rd *lmdbstore.Reader
}

// stage looks at what the stage refers to.
func (w *reachWalk) stage(path string) error {
	prefix := worktreeLedger().stageDir(path)
	return w.rd.Scan(lmdbstore.Stage, prefix[:], nil, func(k, v []byte) error {
		rec, err := decodeStage(v)
		if err != nil {
			return nil
		}
		p := joinPath(path, k[dirKeySize:])
		w.content(&rec.entry, "stage:"+p)
		w.attrs(rec.entry.Attrs, "stage:"+p)
		if rec.hasBelow() && len(k) > dirKeySize {
			return w.stage(p)
		}
		return w.ctx.Err()
	})
}

func (w *reachWalk) history(id merkle.Hash, from string) error {
	for todo := []merkle.Hash{id}; len(todo) > 0; {
		id := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if w.seen[id.Key()] {
			continue
		}
		w.seen[id.Key()] = true
		c, err := readCommit(w.rd, id)
		if err != nil {
			w.node(id, err, from)
			continue
		}
		w.res.Commits++
		todo = append(todo, c.Parents...)
		at := id.String() + ":"
		w.attrs(c.RootAttrs, at)
		tree := merkle.Child{Hash: c.Tree, Kind: merkle.ChildNode, Node: merkle.NodeDir, Totals: c.Totals}
		if err := w.tree(&tree, at, "", merkle.MaxDepth); err != nil {
			return err
		}
	}
	return nil
}

// node notes a node that cannot be had, and what is lost with it.
func (w *reachWalk) node(h merkle.Hash, err error, touches string) {
	var c *merkle.CorruptError
	var m *merkle.MissingError
	switch {
	case errors.As(err, &c):
		h = c.Node
	case errors.As(err, &m):
		h = m.Node
	}
	w.damage("node", nodeName(h.Key()), err.Error(), touches)
}

func (w *reachWalk) attrs(h merkle.Hash, touches string) {
	if h.IsZero() {
		return
	}
	b, err := w.rd.Node(&h)
	if err == nil {
		_, err = merkle.DecodeAttrs(&h, b)
	}
	if err != nil {
		w.node(h, err, touches)
	}
}

// tree walks a directory, or a part of one, node by node, so that a node which
// cannot be had takes nothing from the check but what lies below it. at is the
// commit's part of the names of what is touched.
func (w *reachWalk) tree(c *merkle.Child, at, path string, depth int) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	b, err := w.rd.Node(&c.Hash)
	if err == nil {
		err = c.Verify(b)
	}
	if err == nil && depth < 0 {
		err = merkle.ErrTooDeep
	}
	if err != nil {
		if c.Node == merkle.NodeVNode {
			path += fmt.Sprintf(" (%d names from %q on)", c.Entries, c.Name)
		}
		w.node(c.Hash, err, at+path)
		return nil
	}
	if w.seen[c.Hash.Key()] {
		return nil
	}
	w.seen[c.Hash.Key()] = true
	err = merkle.Children(&c.Hash, b, func(k merkle.Child) error {
		switch {
		case k.Kind == merkle.ChildContent:
			w.content(k.Entry, at+joinPath(path, k.Name))
		case k.Node == merkle.NodeAttrs:
			w.attrs(k.Hash, at+joinPath(path, k.Name))
		case k.Node == merkle.NodeVNode:
			return w.tree(&k, at, path, depth)
		default:
			return w.tree(&k, at, joinPath(path, k.Name), depth-1)
		}
		return nil
	})
	if err == nil && c.Node == merkle.NodeDir && b[levelByte] > 0 {
		// No node alone shows that names are in order from one to the next.
		err = list(w.rd, c.Hash, func(*merkle.Entry) error { return nil })
	}
	if errors.Is(err, merkle.ErrCorrupt) || errors.Is(err, merkle.ErrMissing) {
		w.node(c.Hash, err, at+path)
		return nil
	}
	return err
}

// levelByte is where a Dir node says how far it is from its entries.
const levelByte = 2

// content looks whether the content of a file or long link is known and sound.
func (w *reachWalk) content(e *merkle.Entry, touches string) {
	if e.Kind == merkle.KindDir || e.Hash.IsZero() {
		return
	}
	loc, ok, err := blobLocation(w.rd, &e.Hash)
	switch {
	case err != nil:
		w.damage("content", e.Hash.String(), err.Error(), touches)
	case !ok:
		w.damage("content", e.Hash.String(), ErrNoContent.Error(), touches)
	case loc.Length != e.Size:
		w.damage("content", e.Hash.String(), "its length is not that of the entry", touches)
	case w.found["content "+e.Hash.String()] != nil:
		w.damage("content", e.Hash.String(), "", touches)
	}
}
