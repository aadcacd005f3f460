package merkle

import (
	"bytes"
	"fmt"
	"sort"
	"strings"
)

// MaxNode is the length limit of a Commit or Attrs node in bytes.
const MaxNode = 4 << 20

// maxParents is the most parents a commit can have.
const maxParents = 256

// Signature says who did something, and when.
type Signature struct {
	Name, Email string // any bytes but NUL, line feed, '<' and '>'
	When        int64  // ns since 1970, signed
	Zone        int16  // minutes east of UTC, within a day
}

// Field is one statement about where a commit comes from. Key is 1 to 255
// bytes of a-z, 0-9, '.', '-' and '_'; Value is any bytes.
type Field struct {
	Key   string
	Value []byte
}

// Commit is one state of the whole tree and what led to it. All of it is
// covered by the commit's name.
type Commit struct {
	Tree      Hash   // the root's Dir node
	Totals    Totals // what lies below the root
	RootPerm  uint16 // permission bits of the root folder, 0777
	RootMtime int64  // its modification time, ns since 1970, signed
	RootAttrs Hash   // its Attrs node, or zero
	Parents   []Hash // commits; at most 256, each once
	Author    Signature
	Committer Signature
	Message   string  // any bytes but NUL
	Fields    []Field // sorted by key, each key once
}

// The fixed part of a commit; docs/FORMAT.md specifies it.
const (
	commitFixed     = 152
	offTree         = 8
	offCommitFiles  = 40
	offRootMtime    = 64
	offRootAttrs    = 72
	offRootPerm     = 104
	offAuthorZone   = 106
	offCommitZone   = 108
	offAuthorWhen   = 112
	offCommitWhen   = 120
	offFieldCount   = 128
	offTextLengths  = 132
	commitTexts     = 5
	fieldRecord     = 8
	maxZone         = 24 * 60
	maxCommitFields = 4096
)

// Field returns the value of the field with that key.
func (c *Commit) Field(key string) ([]byte, bool) {
	i := sort.Search(len(c.Fields), func(i int) bool { return c.Fields[i].Key >= key })
	if i == len(c.Fields) || c.Fields[i].Key != key {
		return nil, false
	}
	return c.Fields[i].Value, true
}

// fault returns what is wrong with c, or "".
func (c *Commit) fault() string {
	switch {
	case c.Tree.IsZero():
		return "no tree"
	case c.RootPerm&^permBits != 0:
		return "root mode has bits beyond 0777"
	case len(c.Parents) > maxParents:
		return "more than 256 parents"
	case len(c.Fields) > maxCommitFields:
		return "more than 4096 fields"
	case strings.IndexByte(c.Message, 0) >= 0:
		return "message has a NUL byte"
	}
	for i, p := range c.Parents {
		if p.IsZero() {
			return "zero parent"
		}
		for _, q := range c.Parents[:i] {
			if p == q {
				return "parent named twice"
			}
		}
	}
	for _, s := range []*Signature{&c.Author, &c.Committer} {
		if strings.ContainsAny(s.Name+s.Email, "\x00\n<>") {
			return "signature has a NUL byte, a line feed, '<' or '>'"
		}
		if s.Zone <= -maxZone || s.Zone >= maxZone {
			return "time zone of a day or more"
		}
	}
	for i, f := range c.Fields {
		if !validKey(f.Key) {
			return "invalid field key"
		}
		if i > 0 && c.Fields[i-1].Key >= f.Key {
			return "fields not sorted, or one twice"
		}
	}
	return ""
}

func validKey(key string) bool {
	for i := 0; i < len(key); i++ {
		c := key[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '-' && c != '_' {
			return false
		}
	}
	return len(key) >= 1 && len(key) <= 255
}

// texts returns the five texts in the order in which they are stored.
func (c *Commit) texts() [commitTexts]*string {
	return [...]*string{&c.Author.Name, &c.Author.Email, &c.Committer.Name, &c.Committer.Email, &c.Message}
}

// size returns the length of the encoded commit in bytes.
func (c *Commit) size() int {
	size := commitFixed + len(c.Parents)*HashSize + len(c.Fields)*fieldRecord
	for _, s := range c.texts() {
		size += len(*s)
	}
	for _, f := range c.Fields {
		size += len(f.Key) + len(f.Value)
	}
	return size
}

// Encode returns the bytes of the node. The error matches ErrBadCommit or
// ErrTooLarge.
func (c *Commit) Encode() ([]byte, error) {
	if fault := c.fault(); fault != "" {
		return nil, fmt.Errorf("%w: %s", ErrBadCommit, fault)
	}
	size := c.size()
	if size > MaxNode {
		return nil, fmt.Errorf("commit of %d bytes: %w", size, ErrTooLarge)
	}
	b := c.appendFixed(make([]byte, 0, size))
	for _, p := range c.Parents {
		b = append(b, p[:]...)
	}
	for _, f := range c.Fields {
		b = le.AppendUint32(b, uint32(len(f.Key)))
		b = le.AppendUint32(b, uint32(len(f.Value)))
	}
	for _, s := range c.texts() {
		b = append(b, *s...)
	}
	for _, f := range c.Fields {
		b = append(b, f.Key...)
		b = append(b, f.Value...)
	}
	return b, nil
}

// appendFixed appends the fixed part.
func (c *Commit) appendFixed(b []byte) []byte {
	b = append(b, kindCommit, formatVersion, 0, 0)
	b = le.AppendUint32(b, uint32(len(c.Parents)))
	b = append(b, c.Tree[:]...)
	b = le.AppendUint64(b, c.Totals.Files)
	b = le.AppendUint64(b, c.Totals.Dirs)
	b = le.AppendUint64(b, c.Totals.Bytes)
	b = le.AppendUint64(b, uint64(c.RootMtime))
	b = append(b, c.RootAttrs[:]...)
	b = le.AppendUint16(b, c.RootPerm)
	b = le.AppendUint16(b, uint16(c.Author.Zone))
	b = le.AppendUint16(b, uint16(c.Committer.Zone))
	b = append(b, 0, 0)
	b = le.AppendUint64(b, uint64(c.Author.When))
	b = le.AppendUint64(b, uint64(c.Committer.When))
	b = le.AppendUint32(b, uint32(len(c.Fields)))
	for _, s := range c.texts() {
		b = le.AppendUint32(b, uint32(len(*s)))
	}
	return b
}

// DecodeCommit decodes the Commit node b, whose name is *h. The Commit shares
// no memory with b. The error matches ErrCorrupt.
func DecodeCommit(h *Hash, b []byte) (*Commit, error) {
	c, fault := decodeCommit(b)
	if fault != "" {
		return nil, corrupt(h, fault)
	}
	return c, nil
}

// decodeCommit returns the commit, or what is wrong with its bytes.
func decodeCommit(b []byte) (*Commit, string) {
	if len(b) < commitFixed || len(b) > MaxNode {
		return nil, "length out of range for a Commit"
	}
	if b[0] != kindCommit || b[1] != formatVersion {
		return nil, "not a Commit of a known version"
	}
	if b[2]|b[3]|b[110]|b[111] != 0 {
		return nil, "reserved bytes are not zero"
	}
	parents, fields := le.Uint32(b[offCount:]), le.Uint32(b[offFieldCount:])
	if parents > maxParents || fields > maxCommitFields {
		return nil, "too many parents or fields"
	}
	c := decodeFixed(b)
	in := reader{b: b[commitFixed:]}
	for p := in.take(uint64(parents) * HashSize); len(p) > 0; p = p[HashSize:] {
		c.Parents = append(c.Parents, Hash(p))
	}
	records := in.take(uint64(fields) * fieldRecord)
	for i, s := range c.texts() {
		*s = string(in.take(uint64(le.Uint32(b[offTextLengths+4*i:]))))
	}
	for ; len(records) > 0; records = records[fieldRecord:] {
		key := in.take(uint64(le.Uint32(records)))
		value := in.take(uint64(le.Uint32(records[4:])))
		c.Fields = append(c.Fields, Field{string(key), bytes.Clone(value)})
	}
	if in.short || len(in.b) != 0 {
		return nil, "lengths do not add up"
	}
	return c, c.fault()
}

// decodeFixed decodes the fixed part but for counts and lengths.
func decodeFixed(b []byte) *Commit {
	c := &Commit{
		Tree:      Hash(b[offTree:]),
		Totals:    Totals{le.Uint64(b[offCommitFiles:]), le.Uint64(b[offCommitFiles+8:]), le.Uint64(b[offCommitFiles+16:])},
		RootMtime: int64(le.Uint64(b[offRootMtime:])),
		RootAttrs: Hash(b[offRootAttrs:]),
		RootPerm:  le.Uint16(b[offRootPerm:]),
	}
	c.Author.Zone = int16(le.Uint16(b[offAuthorZone:]))
	c.Committer.Zone = int16(le.Uint16(b[offCommitZone:]))
	c.Author.When = int64(le.Uint64(b[offAuthorWhen:]))
	c.Committer.When = int64(le.Uint64(b[offCommitWhen:]))
	return c
}

// reader hands out parts of b and remembers when there was not enough.
type reader struct {
	b     []byte
	short bool
}

// take returns the next n bytes; when there are not so many none, and then
// none for ever.
func (r *reader) take(n uint64) []byte {
	if r.short || n > uint64(len(r.b)) {
		r.short, r.b = true, nil
		return nil
	}
	p := r.b[:n:n]
	r.b = r.b[n:]
	return p
}
