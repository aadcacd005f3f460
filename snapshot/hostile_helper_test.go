package snapshot

import (
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
