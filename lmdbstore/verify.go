package lmdbstore

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
	"sync/atomic"

	"bole/merkle"
)

// nodeKeySize is the length of a node's key, the first bytes of its hash.
const nodeKeySize = len(merkle.Key{})

// verifiedSlots is the number of nodes that a Store remembers as verified (1 MiB).
const verifiedSlots = 1 << 17

// verifiedTable remembers which nodes were hashed and checked since the Store
// was opened: a direct-mapped table of 64-bit fingerprints over all 32 bytes
// of a node's hash. They are keyed by a secret of this process, so that no
// stored bytes can be made to look verified. A node that loses its slot to
// another is verified again.
type verifiedTable struct {
	slots [verifiedSlots]atomic.Uint64
}

// verifySecret keys the fingerprints.
var verifySecret = [4]uint64{rand.Uint64(), rand.Uint64(), rand.Uint64(), rand.Uint64()}

// fingerprint returns the slot of a hash and what is stored there, never 0.
func fingerprint(h *merkle.Hash) (slot, print uint64) {
	a := binary.LittleEndian.Uint64(h[0:]) ^ verifySecret[0]
	b := binary.LittleEndian.Uint64(h[8:]) ^ verifySecret[1]
	c := binary.LittleEndian.Uint64(h[16:]) ^ verifySecret[2]
	d := binary.LittleEndian.Uint64(h[24:]) ^ verifySecret[3]
	hi1, lo1 := bits.Mul64(a, b)
	hi2, lo2 := bits.Mul64(c, d)
	return (lo1 + hi2) % verifiedSlots, hi1 ^ lo1 ^ bits.RotateLeft64(hi2^lo2, 23) | 1
}

// verify checks that b is the node named h, once.
func (s *Store) verify(h *merkle.Hash, b []byte) error {
	slot, print := fingerprint(h)
	if s.verified.slots[slot].Load() == print {
		return nil
	}
	if merkle.NodeHash(b) != *h {
		return &merkle.CorruptError{Node: *h, Reason: "its bytes have another hash"}
	}
	if _, err := merkle.Check(h, b); err != nil {
		return err
	}
	s.verified.slots[slot].Store(print)
	return nil
}
