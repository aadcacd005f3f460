package snapshot

import (
	"errors"
	"fmt"
	"path/filepath"

	"bole/lmdbstore"
)

// CheckPages checks every page of the database of the repository in root by
// plain reads, before anything trusts one: a damaged page can end the process
// inside LMDB. It is the first step of a check; the repository must not be
// open in this process. Damage is reported and counted; a database with any
// should not be opened.
func CheckPages(root string, o OpenOptions, damage func(Damage)) (n uint64, err error) {
	opt := lmdbstore.Options{MapSize: testMapSize(), ReadOnly: o.ReadOnly}
	err = lmdbstore.CheckFile(filepath.Join(root, DirName, "db"), opt, func(d lmdbstore.Damage) error {
		n++
		if damage != nil {
			damage(Damage{Kind: "page", Hash: fmt.Sprint(d.Page), Reason: d.Reason, Touches: []string{"table " + d.Table}})
		}
		return nil
	})
	if errors.Is(err, lmdbstore.ErrPageUnreadable) { // not even its first pages
		n, err = n+1, nil
		if damage != nil {
			damage(Damage{Kind: "page", Hash: "0", Reason: "the database cannot be opened: the pages that lead to all others are damaged or cut off"})
		}
	}
	return n, err
}
