package fs

import (
	"sync"

	"bole/merkle"
)

// A node id is row<<slotBits | slot. Slot 0 is the directory itself, slot i+1
// its entry i; the mount's root answers to rootID as well.
const (
	slotBits  = 28
	slotMask  = 1<<slotBits - 1
	maxSlot   = slotMask
	rowLimit  = 1 << (64 - slotBits)
	rootID    = 1
	firstRow  = 1
	rootInode = 1
)

// row is one directory at one place of the mount. All but the counters is
// fixed when the row is made and may be read without the table's lock.
type row struct {
	parent *row
	hash   merkle.Hash // of the Dir node that gives the row's slots their meaning
	number uint64      // never used again, so node ids need no generation
	ino    uint64
	slot   uint32 // in parent, 0 for the root

	// Guarded by rows.mu.
	children uint32 // rows that have this one as parent
	count    uint64 // replies that named the directory or one of its entries, less FORGETs
	stream   stream // of push.go
	fetched  bool   // the child directories' nodes were asked for ahead
}

// id is the directory's node id.
func (r *row) id() uint64 {
	if r.parent == nil {
		return rootID
	}
	return r.number << slotBits
}

// entryID is the node id of the entry in a slot.
func (r *row) entryID(slot uint32) uint64 { return r.number<<slotBits | uint64(slot) }

// rows is the table of the directories that the kernel holds, or that hold
// something it does. It stays below 200 bytes a row and knows nothing of files.
type rows struct {
	mu       sync.Mutex
	byNumber map[uint64]*row
	byEntry  map[uint64]*row // key: the id that the directory would have as an entry of its parent
	next     uint64
	root     *row
}

func newRows(root merkle.Hash) *rows {
	t := &rows{byNumber: map[uint64]*row{}, byEntry: map[uint64]*row{}, next: firstRow + 1}
	t.root = &row{hash: root, number: firstRow, ino: rootInode, count: 1}
	t.byNumber[firstRow] = t.root
	return t
}

// get finds the row of a node id and the slot in it; ok is false for an id
// that the kernel cannot hold.
func (t *rows) get(id uint64) (r *row, slot uint32, ok bool) {
	if id == rootID {
		return t.root, 0, true
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok = t.byNumber[id>>slotBits]
	return r, uint32(id & slotMask), ok
}

// enter returns the row of the directory in a slot of parent, making it when
// there is none, and counts one reply that names it. It fails only when the
// numbers have run out.
func (t *rows) enter(parent *row, slot uint32, hash *merkle.Hash, ino uint64) (*row, bool) {
	key := parent.entryID(slot)
	t.mu.Lock()
	defer t.mu.Unlock()
	if r, ok := t.byEntry[key]; ok {
		r.count++
		return r, true
	}
	if t.next >= rowLimit {
		return nil, false
	}
	r := &row{parent: parent, hash: *hash, number: t.next, ino: ino, slot: slot, count: 1}
	t.next++
	t.byNumber[r.number] = r
	t.byEntry[key] = r
	parent.children++
	return r, true
}

// child returns the row of the directory in a slot of parent, if the kernel holds it.
func (t *rows) child(parent *row, slot uint32) (*row, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.byEntry[parent.entryID(slot)]
	return r, ok
}

// hold counts n replies that name entries of r.
func (t *rows) hold(r *row, n uint64) {
	t.mu.Lock()
	r.count += n
	t.mu.Unlock()
}

// forget takes n replies that named id back and frees what nothing refers to any more.
func (t *rows) forget(id, n uint64) {
	if id == rootID {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r, ok := t.byNumber[id>>slotBits]
	if !ok {
		return
	}
	if n > r.count || r == t.root && n >= r.count {
		broken("FORGET of more than was given out")
		n = min(n, r.count)
		if r == t.root {
			n = r.count - 1
		}
	}
	r.count -= n
	for r.count == 0 && r.children == 0 {
		delete(t.byNumber, r.number)
		delete(t.byEntry, r.parent.entryID(r.slot))
		r = r.parent
		r.children--
	}
}

// len is the number of rows, the root's included.
func (t *rows) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byNumber)
}

// first says, once in the row's life, that it was not asked before.
func (t *rows) first(r *row) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	was := r.fetched
	r.fetched = true
	return !was
}
