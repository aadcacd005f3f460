// Package fs is the face that a commit shows to the kernel: it takes FUSE
// requests, answers them from the Merkle tree of one commit, and turns errors
// into errno. It owns the mount, the ids that the kernel holds (rows), and what
// is pushed into the kernel's page cache. It never writes to a repository, never
// decides what a tree holds, and keeps nothing for a file that is merely cached.
//
// Locks. rows.mu guards the row table, files.mu the open whole files, journal.mu
// what was logged; each is a leaf: nothing is called with one of them held, no
// database reader is opened and no request is sent to the kernel. A database
// reader (snapshot.Repo.View) is held only while nodes are read, never while a
// content is read or a reply is written. Notifications are sent to the kernel with
// no lock held and by nobody who has a request to answer (push.go and warm.go),
// because the kernel may wait for an unanswered READ before it takes them.
//
// Lifetimes. A row lives from the first reply that names it to the FORGET of the
// last one. Entries lent by a reader die with the View that lent them; what a
// handler needs afterwards it copies. A Server lives until the mount is gone.
package fs
