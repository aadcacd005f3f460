package snapshot

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"bole/blobstore"
	"bole/lmdbstore"
	"bole/merkle"
)

// Damage is one thing that is wrong, with what it touches.
type Damage struct {
	Kind    string   // "node", "content", "ref", "record"
	Hash    string   // hex, or the name of a ref
	Reason  string   //
	Touches []string // "COMMIT:PATH" of what cannot be read because of it, at most 100
}

// FsckOptions say how deep Fsck looks.
type FsckOptions struct {
	Contents bool // hash every byte
	Progress func(Progress)
	Damage   func(Damage)
}

// FsckResult counts what was looked at, Bytes those of contents; Damaged is the number of calls of Damage.
type FsckResult struct{ Commits, Nodes, NodeBytes, Contents, Bytes, Damaged uint64 }

// maxTouches bounds what is listed for one damage.
const maxTouches = 100

// Fsck re-hashes every node, looks for every content (with Contents: hashes
// it), and walks all that refs, reflog and stage reach. It changes nothing.
// Damage is reported through the callback and counted; an error means that the
// check itself could not go on.
func (r *Repo) Fsck(ctx context.Context, o FsckOptions) (FsckResult, error) {
	f := &fsck{ctx: ctx, repo: r, o: o, found: map[string]*Damage{}, seen: map[merkle.Key]bool{}}
	steps := []func() error{f.nodes, f.contents, f.records, f.reach}
	for _, step := range steps {
		if err := step(); err != nil {
			return f.res, err
		}
	}
	f.report()
	return f.res, nil
}

// fsck is one run.
type fsck struct {
	ctx   context.Context
	repo  *Repo
	o     FsckOptions
	res   FsckResult
	found map[string]*Damage  // by kind and hash
	seen  map[merkle.Key]bool // directories and commits that were walked
}

func (f *fsck) damage(kind, hash, reason, touches string) {
	key := kind + " " + hash
	d := f.found[key]
	if d == nil {
		d = &Damage{Kind: kind, Hash: hash, Reason: reason}
		f.found[key] = d
	}
	if touches != "" && len(d.Touches) < maxTouches {
		d.Touches = append(d.Touches, touches)
	}
}

func (f *fsck) progress(phase string, files, bytes uint64) {
	if f.o.Progress != nil {
		f.o.Progress(Progress{Phase: phase, Files: files, Bytes: bytes})
	}
}

func (f *fsck) report() {
	keys := make([]string, 0, len(f.found))
	for k := range f.found {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	f.res.Damaged = uint64(len(keys))
	for _, k := range keys {
		if f.o.Damage != nil {
			f.o.Damage(*f.found[k])
		}
	}
}

// nodes hashes every node that is stored, reached or not.
func (f *fsck) nodes() error {
	return f.repo.db.Nodes(func(key merkle.Key, b []byte) error {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		if f.res.Nodes++; f.res.Nodes%4096 == 0 {
			f.progress("nodes", f.res.Nodes, 0)
		}
		f.res.NodeBytes += uint64(len(b))
		h := merkle.NodeHash(b)
		if h.Key() != key {
			f.damage("node", fmt.Sprintf("%x", key), "its bytes do not have its name", "")
			return nil
		}
		if _, err := merkle.Check(&h, b); err != nil {
			f.damage("node", fmt.Sprintf("%x", key), err.Error(), "")
		}
		return nil
	})
}

// blobBatch bounds how many contents are sorted by place before they are read.
const blobBatch = 32 << 10

// contents looks at every content of the index, pack by pack.
func (f *fsck) contents() error {
	var start []byte
	for {
		var batch []blobstore.Record
		err := f.repo.db.View(func(rd *lmdbstore.Reader) error {
			return rd.Scan(lmdbstore.Blobs, nil, start, func(k, v []byte) error {
				if len(batch) == blobBatch {
					return lmdbstore.ErrStop
				}
				start = append(append(start[:0], k...), 0)
				var rec blobstore.Record
				loc, err := blobstore.DecodeLocation(v)
				if copy(rec.Hash[:], k) != merkle.HashSize || len(k) != merkle.HashSize || err != nil {
					f.damage("record", fmt.Sprintf("%x", k), "entry of the index of contents is malformed", "")
					return nil
				}
				rec.Location = loc
				batch = append(batch, rec)
				return nil
			})
		})
		if err != nil || len(batch) == 0 {
			return err
		}
		if err := f.verify(batch); err != nil {
			return err
		}
	}
}

func (f *fsck) verify(batch []blobstore.Record) error {
	sort.Slice(batch, func(i, j int) bool {
		a, b := batch[i].Location, batch[j].Location
		if a.Pack != b.Pack {
			return a.Pack < b.Pack
		}
		return a.Offset < b.Offset
	})
	look := f.repo.blobs.Present
	if f.o.Contents {
		look = f.repo.blobs.Verify
	}
	for _, rec := range batch {
		if err := f.ctx.Err(); err != nil {
			return err
		}
		err := look(rec.Hash, rec.Location)
		if errors.Is(err, ErrDamaged) {
			f.damage("content", rec.Hash.String(), err.Error(), "")
		} else if err != nil {
			return err
		}
		f.res.Contents++
		f.res.Bytes += rec.Location.Length
		if f.res.Contents%1024 == 0 || f.o.Contents && rec.Location.Length > 1<<20 {
			f.progress("contents", f.res.Contents, f.res.Bytes)
		}
	}
	return nil
}

// records decodes the small tables.
func (f *fsck) records() error {
	return f.repo.db.View(func(rd *lmdbstore.Reader) error {
		check := func(t lmdbstore.Table, decode func(k, v []byte) error) error {
			return rd.Scan(t, nil, nil, func(k, v []byte) error {
				if err := decode(k, v); err != nil {
					f.damage("record", fmt.Sprintf("%s/%x", t, k), err.Error(), "")
				}
				return f.ctx.Err()
			})
		}
		return errors.Join(
			check(lmdbstore.Stage, func(_, v []byte) error { _, err := decodeStage(v); return err }),
			check(lmdbstore.Stat, func(_, v []byte) error { _, err := decodeStat(v); return err }),
			check(lmdbstore.Reflog, func(k, v []byte) error { _, err := decodeReflog(k, v); return err }),
			check(lmdbstore.Refs, func(k, v []byte) error { _, _, err := decodeRef(string(k), v); return err }))
	})
}

// reach walks from everything that keeps a node alive.
func (f *fsck) reach() error {
	return f.repo.db.View(func(rd *lmdbstore.Reader) error {
		w := &reachWalk{fsck: f, rd: rd}
		err := rd.Scan(lmdbstore.Refs, nil, nil, func(k, v []byte) error {
			h, _, err := decodeRef(string(k), v)
			if err != nil || h.IsZero() {
				return nil // reported by records; a symbolic ref
			}
			return w.history(h, string(k))
		})
		if err != nil {
			return err
		}
		err = eachReflog(rd, func(ref string, e ReflogEntry) error {
			if e.New.IsZero() {
				return nil
			}
			return w.history(e.New, ref+" (reflog)")
		})
		if err != nil {
			return err
		}
		return worktreeLedger().eachStaged(rd, "", "", func(path string, rec stageRecord) error {
			w.content(&rec.entry, "stage:"+path)
			w.attrs(rec.entry.Attrs, "stage:"+path)
			return nil
		})
	})
}

// reachWalk follows commits and trees, each once.
type reachWalk struct {
	*fsck
	rd *lmdbstore.Reader
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
		e := rootEntry(c)
		if err := w.dir(&e, at, ""); err != nil {
			return err
		}
	}
	return nil
}

// node notes a node that cannot be had.
func (w *reachWalk) node(h merkle.Hash, err error, touches string) {
	key := h.Key()
	var c *merkle.CorruptError
	if errors.As(err, &c) {
		key = c.Node.Key()
	}
	w.damage("node", fmt.Sprintf("%x", key), err.Error(), touches)
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

// dir walks a directory; at is the commit's part of the names of what is touched.
func (w *reachWalk) dir(e *merkle.Entry, at, path string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	d, err := merkle.OpenDir(w.rd, &e.Hash)
	if err != nil {
		w.node(e.Hash, err, at+path)
		return nil
	}
	if d.Totals() != (merkle.Totals{Files: e.Files, Dirs: e.Dirs, Bytes: e.Size}) {
		w.damage("node", e.Hash.String(), "its totals are not those that lead to it", at+path)
	}
	if w.seen[e.Hash.Key()] {
		return nil
	}
	w.seen[e.Hash.Key()] = true
	err = list(w.rd, e.Hash, func(e *merkle.Entry) error {
		p := joinPath(path, e.Name)
		w.attrs(e.Attrs, at+p)
		if e.Kind == merkle.KindDir {
			return w.dir(e, at, p)
		}
		w.content(e, at+p)
		return nil
	})
	if errors.Is(err, merkle.ErrCorrupt) || errors.Is(err, merkle.ErrMissing) {
		w.node(e.Hash, err, at+path)
		return nil
	}
	return err
}

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
