package merkle

import (
	"bytes"
	"fmt"
	"math"
)

// Kind says what an entry is. The values are stored.
type Kind uint8

// The kinds of entry.
const (
	KindFile    Kind = 1
	KindDir     Kind = 2
	KindSymlink Kind = 3
)

// String returns "file", "directory" or "symlink".
func (k Kind) String() string {
	switch k {
	case KindFile:
		return "file"
	case KindDir:
		return "directory"
	case KindSymlink:
		return "symlink"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

const (
	// InlineTarget is the length in bytes up to which a symlink's target
	// stands in its entry; a longer one is stored as a content.
	InlineTarget = 128

	// MaxTarget is the length limit of a symlink's target in bytes, that of
	// Linux (PATH_MAX without its NUL).
	MaxTarget = 4095

	// MaxSize is the size limit of a file in bytes, that of off_t.
	MaxSize = math.MaxInt64

	permBits = 0o777
)

// Totals counts what lies below a directory at any depth, the directory itself
// not included.
type Totals struct {
	Files uint64 // files and symlinks
	Dirs  uint64 // directories
	Bytes uint64 // sum of the sizes of regular files
}

// add adds u to t and reports whether all three sums fit 64 bits.
func (t *Totals) add(u Totals) bool {
	t.Files += u.Files
	t.Dirs += u.Dirs
	t.Bytes += u.Bytes
	return t.Files >= u.Files && t.Dirs >= u.Dirs && t.Bytes >= u.Bytes
}

// Entry is one name in a directory. Its slices point into the lent bytes of a
// node unless the Entry was made by Clone or by the caller.
type Entry struct {
	Name   []byte // 1 to 255 bytes; see CheckName
	Kind   Kind
	Perm   uint16 // permission bits, 0777
	Size   uint64 // file: its bytes; symlink: length of the target; directory: Totals.Bytes
	Mtime  int64  // ns since 1970, signed
	Hash   Hash   // file: content; directory: Dir node; symlink: zero, or the content when the target is over 128 bytes
	Target []byte // target of a symlink of 1 to 128 bytes
	Attrs  Hash   // Attrs node; zero: no attributes
	Files  uint64 // directory: Totals.Files
	Dirs   uint64 // directory: Totals.Dirs
}

// Clone returns a copy of e that shares no memory with it.
func (e Entry) Clone() Entry {
	e.Name = bytes.Clone(e.Name)
	e.Target = bytes.Clone(e.Target)
	return e
}

// Totals returns what a directory entry records of everything below it.
func (e *Entry) Totals() Totals {
	return Totals{Files: e.Files, Dirs: e.Dirs, Bytes: e.Size}
}

// weight returns what the entry adds to the totals of the directory that it
// stands in. It reports false when that exceeds 64 bits.
func (e *Entry) weight() (Totals, bool) {
	switch e.Kind {
	case KindDir:
		return Totals{Files: e.Files, Dirs: e.Dirs + 1, Bytes: e.Size}, e.Dirs != math.MaxUint64
	case KindFile:
		return Totals{Files: 1, Bytes: e.Size}, true
	default:
		return Totals{Files: 1}, true
	}
}

// fault returns what is wrong with an entry apart from its name, or "".
func (e *Entry) fault() string {
	if e.Perm&^permBits != 0 {
		return "mode has bits beyond 0777"
	}
	if e.Kind != KindDir && (e.Files != 0 || e.Dirs != 0) {
		return "totals on what is no directory"
	}
	if e.Kind != KindSymlink && len(e.Target) != 0 {
		return "target on what is no symlink"
	}
	switch e.Kind {
	case KindFile:
		if e.Size > MaxSize {
			return "size exceeds 63 bits"
		}
	case KindDir:
	case KindSymlink:
		return e.targetFault()
	default:
		return "unknown kind"
	}
	if e.Hash.IsZero() {
		return "no hash"
	}
	return ""
}

func (e *Entry) targetFault() string {
	switch {
	case e.Size > MaxTarget:
		return "symlink target longer than 4095 bytes"
	case e.Size == 0:
		return "symlink without target"
	case e.Size > InlineTarget && e.Hash.IsZero():
		return "long symlink target without content hash"
	case e.Size > InlineTarget && len(e.Target) != 0:
		return "long symlink target inside the entry"
	case e.Size <= InlineTarget && !e.Hash.IsZero():
		return "short symlink target with content hash"
	case e.Size <= InlineTarget && uint64(len(e.Target)) != e.Size:
		return "symlink size is not the length of its target"
	case bytes.IndexByte(e.Target, 0) >= 0:
		return "symlink target has a NUL byte"
	}
	return ""
}
