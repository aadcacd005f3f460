package snapshot

import (
	"encoding/binary"
	"fmt"

	"bole/lmdbstore"
	"bole/merkle"
)

// ReflogEntry is one move of a ref.
type ReflogEntry struct {
	When     int64 // ns since 1970
	Old, New merkle.Hash
	Who, Why string
}

// The key is the ref's name, a NUL, and the time as 8 bytes big-endian, so that
// one ref is one prefix in the order of time. The value is old, new, the length
// of who as u16 little-endian, who, why.
func reflogKey(ref string, when int64) []byte {
	k := append([]byte(ref), 0)
	return binary.BigEndian.AppendUint64(k, uint64(when))
}

func encodeReflog(e ReflogEntry) []byte {
	b := append(append([]byte(nil), e.Old[:]...), e.New[:]...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(e.Who)))
	return append(append(b, e.Who...), e.Why...)
}

// decodeReflog reads one record; ErrCorrupt for bytes that encodeReflog cannot have made.
func decodeReflog(key, v []byte) (ReflogEntry, error) {
	const fixed = 2*merkle.HashSize + 2
	var e ReflogEntry
	if len(key) < 9 || len(v) < fixed {
		return e, fmt.Errorf("reflog record: %w: too short", merkle.ErrCorrupt)
	}
	if key[len(key)-9] != 0 {
		return e, fmt.Errorf("reflog record: %w: no NUL behind the ref", merkle.ErrCorrupt)
	}
	e.When = int64(binary.BigEndian.Uint64(key[len(key)-8:]))
	copy(e.Old[:], v)
	copy(e.New[:], v[merkle.HashSize:])
	n := int(binary.LittleEndian.Uint16(v[2*merkle.HashSize:]))
	if len(v) < fixed+n {
		return e, fmt.Errorf("reflog record: %w: cut off", merkle.ErrCorrupt)
	}
	e.Who, e.Why = string(v[fixed:fixed+n]), string(v[fixed+n:])
	return e, nil
}

// reflogText is how much of who and of why a record keeps, in bytes each.
const reflogText = 1000

// appendReflog adds an entry; two moves in one nanosecond take the next free one.
func appendReflog(w *lmdbstore.Writer, ref string, e ReflogEntry) error {
	e.Who, e.Why = e.Who[:min(len(e.Who), reflogText)], e.Why[:min(len(e.Why), reflogText)]
	for {
		key := reflogKey(ref, e.When)
		if _, err := w.Get(lmdbstore.Reflog, key); err == nil {
			e.When++
			continue
		}
		if err := w.Put(lmdbstore.Reflog, key, encodeReflog(e)); err != nil {
			return fmt.Errorf("write reflog of %s: %w", ref, err)
		}
		return nil
	}
}
