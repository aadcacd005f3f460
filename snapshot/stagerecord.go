package snapshot

import (
	"encoding/binary"
	"fmt"

	"bole/merkle"
)

// stageOp is what a stage record does to its path.
type stageOp byte

const (
	stageEntry   stageOp = 'E' // a file or symlink stands here
	stageRemoved stageOp = 'X' // nothing stands here
	stageInside  stageOp = 'C' // a directory, itself unchanged, with records below
	stageMeta    stageOp = 'D' // a directory with this mode, mtime, attributes; what the base has in it stays
	stageFresh   stageOp = 'O' // a directory that starts empty: what the base has here is gone
)

// stageRecord is one record of table stage. Format: the op byte; for E, D and O
// then kind u8, perm u16, size u64, mtime i64, hash 32, attrs 32, all
// little-endian, and a symlink's inline target to the end.
type stageRecord struct {
	op    stageOp
	entry merkle.Entry // without name
}

const stageFixed = 1 + 1 + 2 + 8 + 8 + 32 + 32

func (s stageRecord) encode() []byte {
	if s.op == stageRemoved || s.op == stageInside {
		return []byte{byte(s.op)}
	}
	e := &s.entry
	b := make([]byte, 0, stageFixed+len(e.Target))
	b = append(b, byte(s.op), byte(e.Kind))
	b = binary.LittleEndian.AppendUint16(b, e.Perm)
	b = binary.LittleEndian.AppendUint64(b, e.Size)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.Mtime))
	b = append(append(b, e.Hash[:]...), e.Attrs[:]...)
	return append(b, e.Target...)
}

// decodeStage reads a record; its target aliases b. ErrCorrupt for bytes that encode cannot have made.
func decodeStage(b []byte) (stageRecord, error) {
	bad := func(why string) (stageRecord, error) {
		return stageRecord{}, fmt.Errorf("%w: stage record %s", merkle.ErrCorrupt, why)
	}
	if len(b) == 1 && (b[0] == byte(stageRemoved) || b[0] == byte(stageInside)) {
		return stageRecord{op: stageOp(b[0])}, nil
	}
	if len(b) < stageFixed {
		return bad("is cut off")
	}
	s := stageRecord{op: stageOp(b[0])}
	e := &s.entry
	e.Kind = merkle.Kind(b[1])
	e.Perm = binary.LittleEndian.Uint16(b[2:])
	e.Size = binary.LittleEndian.Uint64(b[4:])
	e.Mtime = int64(binary.LittleEndian.Uint64(b[12:]))
	copy(e.Hash[:], b[20:])
	copy(e.Attrs[:], b[52:])
	if len(b) > stageFixed {
		e.Target = b[stageFixed:]
	}
	isDir := e.Kind == merkle.KindDir
	switch {
	case s.op != stageEntry && s.op != stageMeta && s.op != stageFresh:
		return bad("has an unknown operation")
	case e.Kind < merkle.KindFile || e.Kind > merkle.KindSymlink || e.Perm > 0o777:
		return bad("has an unknown kind or mode")
	case isDir != (s.op != stageEntry):
		return bad("has an operation that does not fit its kind")
	case isDir && (!e.Hash.IsZero() || e.Size != 0), len(e.Target) > 0 && e.Kind != merkle.KindSymlink, len(e.Target) > merkle.InlineTarget:
		return bad("has fields that do not fit its kind")
	}
	return s, nil
}

func (s stageRecord) hasBelow() bool {
	return s.op == stageInside || s.op == stageMeta || s.op == stageFresh
}

// change is what the record does to a tree; false for a record that only leads to others.
func (s stageRecord) change(path string) (merkle.Change, bool) {
	c := merkle.Change{Path: []byte(path), Entry: s.entry}
	switch s.op {
	case stageEntry, stageFresh:
		c.Op = merkle.OpSet
	case stageMeta:
		c.Op = merkle.OpMeta
	case stageRemoved:
		c.Op = merkle.OpRemove
	default:
		return c, false
	}
	return c, true
}

// over lays the record over what the base has at its path; ok says whether
// anything stands there then. A directory's Hash stays that of the base where
// its entries stay, and is zero where it starts empty.
func (s stageRecord) over(base *merkle.Entry) (e merkle.Entry, ok bool) {
	switch s.op {
	case stageRemoved:
		return e, false
	case stageInside:
		if base == nil {
			return merkle.Entry{Kind: merkle.KindDir, Perm: 0o755}, true
		}
		return *base, true
	case stageMeta:
		e = s.entry
		if base != nil && base.Kind == merkle.KindDir {
			e.Hash, e.Files, e.Dirs, e.Size = base.Hash, base.Files, base.Dirs, base.Size
		}
		return e, true
	}
	return s.entry, true
}
