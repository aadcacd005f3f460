package merkle

import (
	"encoding/hex"
	"errors"
	"fmt"
	"sync"

	"github.com/zeebo/blake3"
)

// Hash is the 32-byte BLAKE3 name of a node (NodeHash) or of a file's content
// (ContentHash). The zero Hash names nothing.
type Hash [32]byte

// Key is what a node is filed under in a database: the first 16 bytes of its
// Hash. Nodes refer to each other by the whole Hash.
type Key [16]byte

// HashSize is the length of a Hash in bytes.
const HashSize = 32

// nodeContext is the BLAKE3 derive_key context of node names. It sets nodes
// apart from contents: no content can have the name of a node.
const nodeContext = "bole node v1"

// ErrBadHash means that a text is not 64 hexadecimal digits.
var ErrBadHash = errors.New("not a hash of 64 hexadecimal digits")

// String returns the hash as 64 lower-case hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// IsZero reports whether h is the zero Hash, which names nothing.
func (h Hash) IsZero() bool { return h == Hash{} }

// Key returns the first 16 bytes of h, the database key of the node.
func (h Hash) Key() Key { return Key(h[:16]) }

// ParseHash reads the form that String writes; upper-case digits are read too.
// Anything else gives an error that matches ErrBadHash.
func ParseHash(s string) (Hash, error) {
	var h Hash
	if len(s) != 2*HashSize {
		return Hash{}, fmt.Errorf("%.80q: %w", s, ErrBadHash)
	}
	if _, err := hex.Decode(h[:], []byte(s)); err != nil {
		return Hash{}, fmt.Errorf("%q: %w", s, ErrBadHash)
	}
	return h, nil
}

// hashing is a hasher together with room for its result, so that neither
// escapes to the heap on each use.
type hashing struct {
	h   *blake3.Hasher
	sum [HashSize]byte
}

func newHashing() hashing { return hashing{h: blake3.New()} }

func (p *hashing) hash(b []byte) Hash {
	p.h.Reset()
	p.h.Write(b) // never fails
	p.h.Sum(p.sum[:0])
	return p.sum
}

// The hashers weigh 10 KiB each and are pooled: NodeHash and ContentHash
// allocate nothing once a pool has warmed up.
var (
	nodeHashers    = sync.Pool{New: func() any { return &hashing{h: blake3.NewDeriveKey(nodeContext)} }}
	contentHashers = sync.Pool{New: func() any { return &hashing{h: blake3.New()} }}
)

// NodeHash returns the name of the node with the encoded bytes b: BLAKE3-256
// in derive_key mode with the context "bole node v1". It does not allocate.
func NodeHash(b []byte) Hash {
	p := nodeHashers.Get().(*hashing)
	h := p.hash(b)
	nodeHashers.Put(p)
	return h
}

// ContentHash returns the name of the file content b: plain BLAKE3-256, what
// b3sum prints. It does not allocate.
func ContentHash(b []byte) Hash {
	p := contentHashers.Get().(*hashing)
	h := p.hash(b)
	contentHashers.Put(p)
	return h
}

// ContentHasher computes the ContentHash of bytes that are written to it. It
// is an io.Writer whose Write never fails. Not for use by several goroutines
// at once.
type ContentHasher struct{ p hashing }

// NewContentHasher returns a ContentHasher of no bytes. It holds 10 KiB; reuse
// it by Reset.
func NewContentHasher() *ContentHasher {
	return &ContentHasher{p: newHashing()}
}

// Write adds b to the content.
func (c *ContentHasher) Write(b []byte) (int, error) { return c.p.h.Write(b) }

// Sum returns the hash of everything written since the last Reset. Call Reset
// before writing again.
func (c *ContentHasher) Sum() Hash {
	c.p.h.Sum(c.p.sum[:0])
	return c.p.sum
}

// Reset makes c as new.
func (c *ContentHasher) Reset() { c.p.h.Reset() }
