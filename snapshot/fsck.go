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
	Hash    string   // of a content 64 hex digits, of a node the first 32; the name of a ref; table and key of a record
	Reason  string   // what is wrong, for people
	Touches []string // what cannot be read because of it, at most 100: "COMMIT:PATH" where it was met first, "stage:PATH", or the name of a ref
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
	seen  map[merkle.Key]bool // nodes that were walked
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
			f.damage("node", nodeName(key), "its bytes do not have its name", "")
			return nil
		}
		if _, err := merkle.Check(&h, b); err != nil {
			f.damage("node", nodeName(key), err.Error(), "")
		}
		return nil
	})
}

// nodeName is how a node is called in a Damage: by its key, the first half of
// its name, since that is all that is known of one whose bytes are wrong.
func nodeName(key merkle.Key) string { return fmt.Sprintf("%x", key) }

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
				if copy(rec.Hash[:], k) != len(k) || len(k) != merkle.HashSize || err != nil {
					f.damage("content", fmt.Sprintf("%x", k), "its entry in the index of contents is malformed", "")
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
