package snapshot

// limits bound what is held in memory at once, in numbers. They are variables so
// that tests can make them small, and meet all that happens where a limit lies.
var limits = struct {
	// chunk is how many names of one directory are looked at in one go: the
	// memory of a scan grows neither with the tree nor, beside the names
	// themselves, with a directory.
	chunk int
	// window is how many names of each kind are compared in one go. A chunk has
	// fewer on disk; what the index has between them, because it was deleted,
	// may be many more.
	window int
	// entries is how many entries of a directory are taken out of one read
	// transaction, which is closed again before anything is done with them.
	entries int
	// records is how many records a checkpoint writes. It keeps the transaction
	// far below LMDB's limit of dirty pages even when every record lies on a page
	// of its own.
	records int
	// fresh is how many written files wait to be looked at.
	fresh int
}{chunk: 1024, window: 4096, entries: 1024, records: 16 << 10, fresh: 8192}
