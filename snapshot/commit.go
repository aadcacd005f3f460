package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"bole/lmdbstore"
	"bole/merkle"
)

// ErrNothing is returned when a commit would hold what its parent holds.
var ErrNothing = errors.New("nothing to commit")

// RootMeta is what a commit keeps of the root folder itself.
type RootMeta struct {
	Perm  uint16 // mode bits 0777
	Mtime int64  // ns since 1970
	Attrs merkle.Hash
}

// Meta is who, when and why. A zero author or committer is the Identity, now.
type Meta struct {
	Message    string
	Author     merkle.Signature
	Committer  merkle.Signature
	Fields     []merkle.Field
	AllowEmpty bool
}

// Request is one commit: changes onto a branch that must stand on Parent.
type Request struct {
	Branch string      // "" moves HEAD itself, which must be detached
	Parent merkle.Hash // zero: the first commit
	// Changes yields path-sorted changes from a stable snapshot.
	Changes func(*lmdbstore.Reader) iter.Seq2[merkle.Change, error]
	Root    *RootMeta // nil keeps the parent's
	Meta    Meta
	// Pages is how many database pages the transaction is expected to dirty.
	Pages uint64
	// Finish cleans up inside the same transaction.
	Finish func(w *lmdbstore.Writer, id merkle.Hash) error
}

// Commit is the one place where history is written. Contents must be durable
// and named by table blobs before. One LMDB write transaction holds the nodes,
// the commit, the move of the branch by compare-and-swap and Finish; it is one
// durability barrier. ErrRefMoved and ErrNothing leave everything as it was.
func (r *Repo) Commit(ctx context.Context, q Request) (id merkle.Hash, c *merkle.Commit, err error) {
	gc, err := r.shareGC(ctx)
	if err != nil {
		return id, nil, err
	}
	defer func() { err = errors.Join(err, gc.close()) }()
	if q.Meta.Committer == (merkle.Signature{}) {
		q.Meta.Committer = r.Identity()
	}
	if q.Meta.Author == (merkle.Signature{}) {
		q.Meta.Author = q.Meta.Committer
	}
	err = r.db.View(func(rd *lmdbstore.Reader) error {
		return r.db.Update(func(w *lmdbstore.Writer) error {
			if q.Pages > 0 {
				w.ExpectPages(q.Pages)
			}
			id, c, err = r.commit(ctx, rd, w, q)
			return err
		})
	})
	if err != nil {
		return merkle.Hash{}, nil, err
	}
	return id, c, nil
}

func (r *Repo) commit(ctx context.Context, rd *lmdbstore.Reader, w *lmdbstore.Writer, q Request) (id merkle.Hash, c *merkle.Commit, err error) {
	ref, err := commitRef(rd, q)
	if err != nil {
		return id, nil, err
	}
	c, parent, err := newCommit(rd, q)
	if err != nil {
		return id, nil, err
	}
	changes, stop := r.readAhead(ctx, q.Changes)
	defer stop()
	c.Tree, c.Totals, err = merkle.Apply(rd, w, parent.Tree, changes)
	if err != nil {
		return id, nil, fmt.Errorf("build tree: %w", err)
	}
	if !q.Meta.AllowEmpty && c.Tree == parent.Tree && !q.Parent.IsZero() && rootMeta(c) == rootMeta(parent) {
		return id, nil, ErrNothing
	}
	b, err := c.Encode()
	if err != nil {
		return id, nil, fmt.Errorf("encode commit: %w", err)
	}
	id = merkle.NodeHash(b)
	if err := w.PutNode(id, b); err != nil {
		return id, nil, fmt.Errorf("write commit: %w", err)
	}
	subject, _, _ := strings.Cut(q.Meta.Message, "\n")
	who := c.Committer.Name + " <" + c.Committer.Email + ">"
	if err := moveRef(w, ref, q.Parent, id, who, "commit: "+subject); err != nil {
		return id, nil, err
	}
	if q.Finish != nil {
		err = q.Finish(w, id)
	}
	return id, c, err
}

// commitRef is the full name of the ref that the commit moves; it must stand on
// the parent. moveRef looks once more, inside the transaction.
func commitRef(t tableReader, q Request) (string, error) {
	ref, name := headRef, headRef
	if q.Branch != "" {
		ref, name = headsPrefix+q.Branch, q.Branch
	}
	now, _, err := readRef(t, ref)
	if err != nil {
		return "", err
	}
	if now != q.Parent {
		return "", fmt.Errorf("%s stands on %.12s, not on %.12s: %w", name, now, q.Parent, ErrRefMoved)
	}
	return ref, nil
}

func newCommit(rd merkle.Reader, q Request) (c, parent *merkle.Commit, err error) {
	parent = &merkle.Commit{RootPerm: 0o755, RootMtime: q.Meta.Committer.When}
	c = &merkle.Commit{Message: q.Meta.Message, Author: q.Meta.Author, Committer: q.Meta.Committer, Fields: q.Meta.Fields}
	if !q.Parent.IsZero() {
		if parent, err = readCommit(rd, q.Parent); err != nil {
			return nil, nil, err
		}
		c.Parents = []merkle.Hash{q.Parent}
	}
	root := rootMeta(parent)
	if q.Root != nil {
		root = *q.Root
	}
	c.RootPerm, c.RootMtime, c.RootAttrs = root.Perm, root.Mtime, root.Attrs
	return c, parent, nil
}

func rootMeta(c *merkle.Commit) RootMeta {
	return RootMeta{Perm: c.RootPerm, Mtime: c.RootMtime, Attrs: c.RootAttrs}
}
