// Package merkle owns the Merkle tree: the names of nodes and contents, the
// bytes of every node, and the operations on them: lookup, listing, applying
// edits, difference and check.
//
// It never does I/O, starts no goroutine, keeps no global state besides pools
// of hashers, and knows nothing of databases, files or processes. Nodes come
// in through a Reader and go out through a Writer.
//
// There are four kinds of node: Commit, Dir (the root of one directory's
// search tree), VNode (the inner and leaf nodes of a directory that is too
// large for one node) and Attrs (a list of extended attributes). Files and
// symlinks are entries of a directory, not nodes. docs/FORMAT.md specifies
// every byte.
//
// Lifetimes: a Reader lends bytes. A Dir, a Cursor, and every Entry, DiffEntry,
// Child or slice that comes from them point into lent bytes and are valid only
// as long as the Reader says these are; Entry.Clone makes a copy that lasts.
//
// Concurrency: there are no locks. A Dir may be read by several goroutines at
// once when its Reader may be; a Cursor belongs to one goroutine.
//
// Trust: a Reader hands out nodes that were checked against their name and by
// Check. Everything that reads a node is bounds-checked all the same, and what
// a single node cannot show (that a child has the kind, level and totals that
// its parent promises) is verified where the child is opened. Bytes that are
// not a canonical node give an error that matches ErrCorrupt, never a panic.
package merkle
