package snapshot

import (
	"errors"
	"iter"
	"slices"

	"bole/lmdbstore"
	"bole/merkle"
)

// putCommit writes nodes and a commit as they are, past every check, and returns the commit.
func (w *work) putCommit(c merkle.Commit, nodes map[merkle.Hash][]byte) (id merkle.Hash) {
	w.t.Helper()
	b, err := c.Encode()
	ok(w.t, err)
	id = merkle.NodeHash(b)
	ok(w.t, w.db.Update(func(tx *lmdbstore.Writer) error {
		for h, b := range nodes {
			if err := tx.PutNode(h, b); err != nil {
				return err
			}
		}
		return tx.PutNode(id, b)
	}))
	return id
}

// buildEntries makes a tree of entries and returns its root.
func buildEntries(t tb, store *merkle.MemStore, entries map[string]merkle.Entry) merkle.Entry {
	t.Helper()
	paths := make([]string, 0, len(entries))
	for p := range entries {
		paths = append(paths, p)
	}
	slices.SortFunc(paths, func(a, b string) int { return merkle.ComparePaths([]byte(a), []byte(b)) })
	h, totals, err := merkle.Apply(store, store, merkle.Hash{}, iter.Seq2[merkle.Change, error](func(yield func(merkle.Change, error) bool) {
		for _, p := range paths {
			if !yield(merkle.Change{Path: []byte(p), Op: merkle.OpSet, Entry: entries[p]}, nil) {
				return
			}
		}
	}))
	ok(t, err)
	return merkle.Entry{Kind: merkle.KindDir, Perm: 0o755, Hash: h, Files: totals.Files, Dirs: totals.Dirs, Size: totals.Bytes}
}

// eachNode copies a tree's nodes out of a store; attributes may be there already.
func eachNode(r merkle.Reader, h merkle.Hash, out map[merkle.Hash][]byte) error {
	if out[h] != nil {
		return nil
	}
	b, err := r.Node(&h)
	if errors.Is(err, merkle.ErrMissing) {
		return nil // meant to be
	}
	if err != nil {
		return err
	}
	out[h] = b
	return merkle.Children(&h, b, func(c merkle.Child) error {
		if c.Kind != merkle.ChildNode || out[c.Hash] != nil {
			return nil
		}
		return eachNode(r, c.Hash, out)
	})
}
