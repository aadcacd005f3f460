package snapshot

import (
	"bole/lmdbstore"
	"bole/merkle"
)

// Prefetch asks for the pages of nodes that will be read soon, all at once and
// in the order of the database. rd is the reader that View lent. It is advice
// and cannot fail.
func (r *Repo) Prefetch(rd merkle.Reader, nodes []merkle.Hash) {
	if lr, ok := rd.(*lmdbstore.Reader); ok {
		r.db.Prefetch(lr, nodes)
	}
}
