package blobstore

import (
	"encoding/binary"
	"sync"
	"sync/atomic"

	"bole/merkle"
)

const verifiedSlots = 1 << 20

// verified remembers which records were hashed and found good, in bounded memory: a direct-mapped
// table of 1<<20 slots of 8 bytes (8 MiB, made at the first use), chosen by the content's hash. A
// slot holds a tag of hash and place; a newer record pushes an older one out, which is then hashed
// again at its next read.
type verified struct {
	once  sync.Once
	slots []atomic.Uint64
}

func (v *verified) slot(h *merkle.Hash) *atomic.Uint64 {
	v.once.Do(func() { v.slots = make([]atomic.Uint64, verifiedSlots) })
	return &v.slots[binary.LittleEndian.Uint64(h[:])%verifiedSlots]
}

// tag is never 0, which stands for an empty slot.
func verifiedTag(h *merkle.Hash, loc Location) uint64 {
	place := uint64(loc.Pack)*0x9e3779b97f4a7c15 ^ loc.Offset*0xc2b2ae3d27d4eb4f ^ loc.Length*0x165667b19e3779f9
	return (binary.LittleEndian.Uint64(h[8:]) ^ place) | 1
}

func (v *verified) has(h *merkle.Hash, loc Location) bool {
	return v.slot(h).Load() == verifiedTag(h, loc)
}

func (v *verified) add(h *merkle.Hash, loc Location) {
	v.slot(h).Store(verifiedTag(h, loc))
}

func (v *verified) remove(h *merkle.Hash, loc Location) {
	v.slot(h).CompareAndSwap(verifiedTag(h, loc), 0)
}
