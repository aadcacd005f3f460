package merkle

import (
	"bytes"
	"encoding/binary"
)

// The layout of Dir and VNode, specified in docs/FORMAT.md. All integers are
// little-endian.
const (
	kindCommit = 'C'
	kindDir    = 'D'
	kindVNode  = 'V'
	kindAttrs  = 'A'

	formatVersion = 1

	headerSize  = 40
	offLevel    = 2
	offCount    = 4
	offEntries  = 8
	offFiles    = 16
	offDirs     = 24
	offBytes    = 32
	entryRecord = 56 // a record of level 0
	offSize     = 32
	offMtime    = 40
	offEntryEnd = 48
	offMode     = 52
	offNameLen  = 54
	offFlags    = 55
	flagAttrs   = 1
	indexRecord = 68 // a record of level 1 and above
	offIndexEnd = 64
	modeShift   = 12
)

const (
	// rootLimit is the size in bytes up to which a Dir is one node: two pages
	// of a database of 4,096-byte pages less their 16-byte header.
	rootLimit = 8176

	// window is the number of records on either side that a record's hash
	// is compared with when nodes are cut; see boundary.go.
	window = 20

	// maxRun is the number of records after which a run without a natural
	// start is cut, and so the most records that a VNode can have.
	maxRun = 8 * window

	// maxLevels bounds the height of a search tree. Each level has at most a
	// 21st of the records of the one below (and one more), so that 12 levels
	// hold more entries than any disk.
	maxLevels = 12
)

var le = binary.LittleEndian

// node is a Dir or VNode in place. Its methods report false (or a fault) on
// anything that would lead outside its bytes.
type node struct {
	b     []byte
	h     *Hash // its name, in its parent's bytes; nil for a root
	count int
	level int
}

// parseNode looks at a node's header. The fault is "" when count records and
// a heap fit the bytes.
func parseNode(b []byte) (n node, fault string) {
	if len(b) < headerSize {
		return n, "shorter than its header"
	}
	if b[0] != kindDir && b[0] != kindVNode {
		return n, "not a Dir or VNode"
	}
	if b[1] != formatVersion {
		return n, "unknown version"
	}
	if b[offLevel] >= maxLevels {
		return n, "level out of range"
	}
	n = node{b: b, level: int(b[offLevel])}
	count := le.Uint32(b[offCount:])
	if uint64(count) > uint64(len(b)-headerSize)/uint64(n.recordSize()) {
		return node{}, "more records than bytes"
	}
	n.count = int(count)
	return n, ""
}

func recordSize(level int) int {
	if level == 0 {
		return entryRecord
	}
	return indexRecord
}

func (n *node) recordSize() int { return recordSize(n.level) }

// record returns the fixed part of record i, 0 <= i < count.
func (n *node) record(i int) []byte {
	size := n.recordSize()
	off := headerSize + i*size
	return n.b[off : off+size : off+size]
}

func (n *node) heapEnd(i int) int {
	if n.level == 0 {
		return int(le.Uint32(n.record(i)[offEntryEnd:]))
	}
	return int(le.Uint32(n.record(i)[offIndexEnd:]))
}

// item returns the heap item of record i.
func (n *node) item(i int) ([]byte, bool) {
	start := 0
	if i > 0 {
		start = n.heapEnd(i - 1)
	}
	end := n.heapEnd(i)
	heap := n.b[headerSize+n.count*n.recordSize():]
	if start < 0 || start > end || end > len(heap) { // below 0 where int has 32 bits
		return nil, false
	}
	return heap[start:end:end], true
}

// name returns the name of record i: of the entry, or the first name below.
func (n *node) name(i int) ([]byte, bool) {
	item, ok := n.item(i)
	if !ok {
		return nil, false
	}
	if n.level > 0 {
		return item, len(item) > 0
	}
	l := int(n.record(i)[offNameLen])
	if l == 0 || l > len(item) {
		return nil, false
	}
	return item[:l:l], true
}

// firstName returns the name of the first record; false without records.
func (n *node) firstName() ([]byte, bool) {
	if n.count == 0 {
		return nil, false
	}
	return n.name(0)
}

// lastName returns the name of the last record; false without records.
func (n *node) lastName() ([]byte, bool) {
	if n.count == 0 {
		return nil, false
	}
	return n.name(n.count - 1)
}

// hash returns the hash of record i in place.
func (n *node) hash(i int) *Hash { return (*Hash)(n.record(i)) }

// lowerBound returns the first record whose name is not before name, and
// whether it is equal.
func (n *node) lowerBound(name []byte) (i int, equal, ok bool) {
	lo, hi := 0, n.count
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		m, ok := n.name(mid)
		if !ok {
			return 0, false, false
		}
		switch bytes.Compare(m, name) {
		case 0:
			return mid, true, true
		case -1:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return lo, false, true
}

// childFor returns the record of an index node below which name would stand:
// the last one whose first name is not after it, or else the first.
func (n *node) childFor(name []byte) (int, bool) {
	i, equal, ok := n.lowerBound(name)
	if !equal && i > 0 {
		i--
	}
	return i, ok
}

// below returns the number of entries below record i of an index node.
func (n *node) below(i int) uint64 { return le.Uint64(n.record(i)[32:]) }

// entriesBefore sums the entries below the records before i of an index node.
func (n *node) entriesBefore(i int) uint64 {
	var sum uint64
	for j := 0; j < i; j++ {
		sum += n.below(j)
	}
	return sum
}

func (n *node) entries() uint64 { return le.Uint64(n.b[offEntries:]) }

func (n *node) totals() Totals {
	return Totals{Files: le.Uint64(n.b[offFiles:]), Dirs: le.Uint64(n.b[offDirs:]), Bytes: le.Uint64(n.b[offBytes:])}
}

// entry decodes record i of a level-0 node into e and returns a fault or "".
// The slices of e point into the node.
func (n *node) entry(i int, e *Entry) string {
	rec := n.record(i)
	item, ok := n.item(i)
	l := int(rec[offNameLen])
	if !ok || l == 0 || l > len(item) {
		return "heap out of bounds"
	}
	mode := le.Uint16(rec[offMode:])
	e.Name = item[:l:l]
	e.Kind = Kind(mode >> modeShift)
	e.Perm = mode & permBits
	e.Size = le.Uint64(rec[offSize:])
	e.Mtime = int64(le.Uint64(rec[offMtime:]))
	e.Hash = Hash(rec)
	e.Target = nil
	e.Files, e.Dirs = 0, 0
	e.Attrs = Hash{}
	rest := item[l:]
	if e.Kind == KindDir {
		if len(rest) < 16 {
			return "directory entry without totals"
		}
		e.Files, e.Dirs = le.Uint64(rest), le.Uint64(rest[8:])
		rest = rest[16:]
	}
	if rec[offFlags]&flagAttrs != 0 {
		if len(rest) < HashSize {
			return "entry without its attributes"
		}
		e.Attrs = Hash(rest)
		rest = rest[HashSize:]
	}
	if e.Kind == KindSymlink && len(rest) > 0 {
		e.Target = rest
	}
	return ""
}

// openRoot reads the Dir named *h.
func openRoot(r Reader, h *Hash) (node, error) {
	b, err := r.Node(h)
	if err != nil {
		return node{}, err
	}
	n, fault := parseNode(b)
	if fault == "" && b[0] != kindDir {
		fault = "not a Dir where one is needed"
	}
	if fault != "" {
		return node{}, corrupt(h, fault)
	}
	return n, nil
}

// openChild reads the node below record i of an index node and verifies that
// it is what the record promises.
func openChild(r Reader, parent *node, i int) (node, error) {
	h := parent.hash(i)
	b, err := r.Node(h)
	if err != nil {
		return node{}, err
	}
	n, fault := parseNode(b)
	if fault == "" {
		fault = n.promised(parent, i)
	}
	if fault != "" {
		return node{}, corrupt(h, fault)
	}
	n.h = h
	return n, nil
}

// promised compares n with record i of its parent. The four sums stand in the
// header and in the record in the same order.
func (n *node) promised(parent *node, i int) string {
	if n.b[0] != kindVNode {
		return "not a VNode where one is needed"
	}
	if n.level != parent.level-1 {
		return "its level does not fit its parent's"
	}
	if !bytes.Equal(n.b[offEntries:headerSize], parent.record(i)[32:64]) {
		return "its totals are not what its parent records"
	}
	want, ok := parent.name(i)
	if !ok {
		return "its parent has no name for it"
	}
	if first, ok := n.firstName(); !ok || !bytes.Equal(first, want) {
		return "its first name is not what its parent records"
	}
	return ""
}
