package lmdbstore

import "fmt"

// Table names one of the key spaces of a database. Keys are compared as byte
// strings; a key has 1 to 511 bytes, a value up to 2^32-1 bytes.
type Table uint8

// The tables. What keys and values mean is fixed by the packages that write
// them; docs/FORMAT.md lists all of them.
const (
	Nodes      Table = iota // first 16 bytes of a node's hash -> its bytes; written through PutNode alone
	Blobs                   // content hash -> where the content lies
	Refs                    // name of a ref -> what it points to
	Reflog                  // ref and time -> how it moved
	Stage                   // what add has recorded for the next commit
	Stat                    // the working directory as it was last seen
	Signatures              // commit -> signatures of it
	Cache                   // whatever can be rebuilt
	Meta                    // format version and other single values
	numTables
)

var tableNames = [numTables]string{
	"nodes", "blobs", "refs", "reflog", "stage", "stat", "signatures", "cache", "meta",
}

// String returns the table's name in the database file.
func (t Table) String() string {
	if t < numTables {
		return tableNames[t]
	}
	return fmt.Sprintf("table(%d)", uint8(t))
}

// Tables returns all tables in the order of their numbers.
func Tables() []Table {
	all := make([]Table, numTables)
	for i := range all {
		all[i] = Table(i)
	}
	return all
}

// MaxKey is the length in bytes of the longest key of a table (LMDB's limit).
const MaxKey = 511
