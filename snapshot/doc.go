// Package snapshot is a repository: its refs, commits, working directory and
// the record of what goes into the next commit. It is the one place where
// history is written (Repo.Commit).
//
// It owns the folder .bole: the configuration, the locks beside the database,
// the leases, and the meaning of every table but nodes. It never speaks FUSE,
// never prints and never logs; what a caller should know comes back as a
// value, an error, or through a callback of the options.
//
// Lock order: worktree.lock or import.lock, then gc.lock (shared), then the
// flocks of packs, then LMDB's writer. A reader (View) may be opened at any point and is never
// held while a content is read or hashed. All locks are flocks or LMDB's
// robust mutex, so a killed process leaves none behind.
//
// Lifetimes: bytes lent inside View die with its closure; entries that leave
// this package are clones. A Repo may be used from many goroutines; it must be
// opened after a fork and closed once.
package snapshot
