// Package blobstore keeps file contents by their BLAKE3 hash: small ones as records appended to
// pack files, large ones as whole files. docs/FORMAT.md (section "Contents") specifies every byte.
//
// It owns the folders packs/, whole/ and tmp/ below one directory, and nothing else. It never
// decides which contents exist: the table that maps a hash to a [Location] belongs to the caller,
// who hands a look-up in ([Index]) and stores what [Batch.Sync] hands out. It never deletes a
// content, never logs, and never maps a file into memory.
//
// # Writing
//
// A [Batch] takes contents from any number of goroutines. [Batch.Sync] is the barrier: after it the
// contents are durable under their final names and the caller's transaction may name them. The
// order is always
//
//	Begin, {PutBytes | PutFile | LinkFile}, Sync, caller's transaction, {Put, Sync, transaction}, Close
//
// Until the caller's transaction is durable nothing refers to the new bytes, so a process that dies
// anywhere leaves the store as it was: the next writer cuts the pack back to its committed end and
// removes the temporary files of the dead.
//
// # Locks and lifetimes
//
// Between processes: one flock on each pack that a batch appends to (held until the transaction
// that names its records is durable), and one on tmp/<owner>.lock for the temporary files of a
// batch. Both vanish with their process.
//
// Within a process, in this order: Batch.syncing (one Sync at a time), Batch.writes (shared from
// the reservation of a record's place to the end of its write; exclusive for the moment in which
// Sync takes its cut), Batch.mu (fields of the batch). Index and packEnd may be called with
// Batch.mu held and must not call into the batch. Descriptor caches have their own mutex, never
// held during I/O. Store methods may be called from any goroutine.
package blobstore
