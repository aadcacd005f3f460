package merkle

import "bytes"

// Where a level of a search tree is cut into nodes depends on names alone.
// Every record has the number h(level, name). A record whose number is strictly
// smaller than those of the 20 records on either side (of as many as there
// are) is a natural start of a node. The first record of a level starts a node
// too, and so does every 160th record after a start if no natural one comes
// first. So a boundary depends on at most 41 names, on no order of edits and on
// nothing far away, except in runs that only chosen names make; and because
// the level is hashed too, boundaries of one level do not line up with those of
// the next, and each level is about 41 times shorter than the one below.

// nameHasher computes h(level, name): the first 8 bytes, as a little-endian
// number, of BLAKE3 over the level as one byte and the name.
type nameHasher struct {
	p   hashing
	buf [1 + MaxName]byte
}

func (n *nameHasher) hash(level int, name []byte) uint64 {
	n.buf[0] = byte(level)
	l := copy(n.buf[1:], name)
	h := n.p.hash(n.buf[:1+l])
	return le.Uint64(h[:])
}

// closing says what is known of the record after the last one in a builder.
type closing uint8

const (
	open      closing = iota // nothing: more records may follow
	atNatural                // it is a natural start
	atEnd                    // there is none: the level ends here
)

// builder gathers the records of one level, from the start of a node on, and
// finds where the next node starts. It holds one node and the window that
// decides where it ends.
type builder struct {
	level   int
	n       int     // records held; the first one starts a node
	fixed   []byte  // their fixed parts, with heap ends counted from the first
	heap    []byte  // their heap items
	firsts  []*Hash // for a record that was the first of an old node: that node
	cutting bool    // boundaries are wanted, and names hashed
	hashes  []uint64
	left    int // hashes of so many records before the first one are held too
	decided int // records 1..decided-1 are known not to start a node
	names   *nameHasher
}

// reset empties b for records that follow a natural start or begin a level.
// No hashes of earlier records are needed: within a window of a natural start
// there is no other.
func (b *builder) reset(level int, cutting bool) {
	b.level, b.n, b.cutting, b.left, b.decided = level, 0, cutting, 0, 0
	b.fixed, b.heap, b.firsts, b.hashes = b.fixed[:0], b.heap[:0], b.firsts[:0], b.hashes[:0]
}

// size returns the length in bytes of a node of all records held.
func (b *builder) size() int { return headerSize + len(b.fixed) + len(b.heap) }

// add appends a record; the heap end inside fixed is set here. It reports false
// when the name is not after the one before, as a corrupt old tree can have it.
func (b *builder) add(fixed, item []byte, first *Hash) bool {
	b.fixed = append(b.fixed, fixed...)
	b.heap = append(b.heap, item...)
	b.setEnd(b.n, len(b.heap))
	b.firsts = append(b.firsts, first)
	b.n++
	name := b.name(b.n - 1)
	if b.cutting {
		b.hashes = append(b.hashes, b.names.hash(b.level, name))
	}
	return b.n == 1 || bytes.Compare(b.name(b.n-2), name) < 0
}

// startCutting hashes the names gathered so far; from now on cut is answered.
func (b *builder) startCutting() {
	b.cutting = true
	for i := 0; i < b.n; i++ {
		b.hashes = append(b.hashes, b.names.hash(b.level, b.name(i)))
	}
}

func (b *builder) record(i int) []byte {
	size := recordSize(b.level)
	return b.fixed[i*size : (i+1)*size]
}

func (b *builder) endField(i int) []byte {
	if b.level == 0 {
		return b.record(i)[offEntryEnd:]
	}
	return b.record(i)[offIndexEnd:]
}

func (b *builder) setEnd(i, end int) { le.PutUint32(b.endField(i), uint32(end)) }

func (b *builder) end(i int) int {
	if i < 0 {
		return 0
	}
	return int(le.Uint32(b.endField(i)))
}

func (b *builder) name(i int) []byte {
	item := b.heap[b.end(i-1):b.end(i)]
	if b.level == 0 {
		return item[:b.record(i)[offNameLen]]
	}
	return item
}

// cut returns the length in records of the node at the front when its end is
// known, and 0 when more records are needed or none are left.
func (b *builder) cut(c closing) int {
	for i := max(b.decided, 1); i < b.n && (c != open || i+window < b.n); i++ {
		if i == maxRun || (c != atNatural && b.natural(i)) {
			return i
		}
		b.decided = i + 1
	}
	if c == open {
		return 0
	}
	return b.n
}

// natural reports whether record i starts a node by its hash.
func (b *builder) natural(i int) bool {
	i += b.left
	h := b.hashes[i]
	for j := 1; j <= window; j++ {
		if i-j >= 0 && b.hashes[i-j] <= h {
			return false
		}
		if i+j < len(b.hashes) && b.hashes[i+j] <= h {
			return false
		}
	}
	return true
}

// node appends to dst a node of the first m records.
func (b *builder) node(dst []byte, kind byte, m int) (_ []byte, entries uint64, t Totals, err error) {
	at := len(dst)
	dst = appendHeader(dst, kind, b.level, m, 0, t)
	dst = append(dst, b.fixed[:m*recordSize(b.level)]...)
	dst = append(dst, b.heap[:b.end(m-1)]...)
	n, fault := parseNode(dst[at:])
	if fault == "" {
		entries, t, fault = n.sum()
	}
	if fault != "" {
		return dst, 0, t, faultError(fault)
	}
	appendHeader(dst[:at], kind, b.level, m, entries, t)
	return dst, entries, t, nil
}

// drop removes the first m records and keeps the hashes that windows to the
// left of what remains reach.
func (b *builder) drop(m int) {
	base := b.end(m - 1)
	b.heap = b.heap[:copy(b.heap, b.heap[base:])]
	b.fixed = b.fixed[:copy(b.fixed, b.fixed[m*recordSize(b.level):])]
	b.firsts = b.firsts[:copy(b.firsts, b.firsts[m:])]
	b.n -= m
	for i := 0; i < b.n; i++ {
		b.setEnd(i, b.end(i)-base)
	}
	if b.cutting {
		from := max(b.left+m-window, 0)
		b.left += m - from
		b.hashes = b.hashes[:copy(b.hashes, b.hashes[from:])]
	}
	b.decided = 0
}
