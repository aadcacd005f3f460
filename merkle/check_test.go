package merkle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// file is an ordinary record for hostile nodes to be made of.
func file(name string) refRecord {
	e := fileEntry("x")
	e.Name = []byte(name)
	return refEntry(e)
}

// leaf encodes a Dir of those records, whatever they say.
func leaf(rs ...refRecord) []byte {
	b, _ := refEncode('D', 0, rs)
	return b
}

// with returns a file record after change, which may write anywhere in it.
func with(change func(*refRecord)) refRecord {
	r := file("name")
	change(&r)
	return r
}

// entryOf encodes an entry without asking whether it is valid.
func entryOf(e Entry) refRecord { return refEntry(e) }

func named(name string) func(*refRecord) {
	return func(r *refRecord) {
		r.item = []byte(name)
		r.fixed[54] = byte(len(name))
	}
}

// edited returns b after change.
func edited(b []byte, change func(b []byte)) []byte {
	b = bytes.Clone(b)
	change(b)
	return b
}

// hostileNodes are nodes that lie about one thing each.
func hostileNodes() map[string][]byte {
	good := leaf(file("a"), file("b"))
	put32 := func(at int, v uint32) []byte {
		return edited(good, func(b []byte) { binary.LittleEndian.PutUint32(b[at:], v) })
	}
	mode := func(m uint16) []byte {
		return leaf(with(func(r *refRecord) { binary.LittleEndian.PutUint16(r.fixed[52:], m) }))
	}
	index := refRecord{make([]byte, 68), 64, []byte("a"), "a", [4]uint64{1, 1, 0, 0}}
	index.fixed[0], index.fixed[32], index.fixed[40] = 1, 1, 1
	indexWith := func(change func(*refRecord)) []byte {
		r := refRecord{bytes.Clone(index.fixed), 64, index.item, "a", index.counts}
		change(&r)
		b, _ := refEncode('D', 1, []refRecord{r})
		return b
	}
	nodes := map[string][]byte{
		"nothing":                nil,
		"one byte":               {'D'},
		"header cut":             good[:39],
		"unknown kind":           edited(good, func(b []byte) { b[0] = 'X' }),
		"version 0":              edited(good, func(b []byte) { b[1] = 0 }),
		"version 2":              edited(good, func(b []byte) { b[1] = 2 }),
		"reserved byte":          edited(good, func(b []byte) { b[3] = 1 }),
		"level 12":               edited(good, func(b []byte) { b[2] = 12 }),
		"level 255":              edited(good, func(b []byte) { b[2] = 255 }),
		"count too small":        put32(4, 1),
		"count too large":        put32(4, 3),
		"count absurd":           put32(4, math.MaxUint32),
		"entries wrong":          put32(8, 3),
		"files wrong":            put32(16, 3),
		"dirs wrong":             put32(24, 1),
		"bytes wrong":            put32(32, 3),
		"heap end absurd":        put32(40+48, math.MaxUint32),
		"heap end before":        put32(40+56+48, 0),
		"heap end in name":       put32(40+48, 0),
		"trailing byte":          append(bytes.Clone(good), 0),
		"cut by one":             good[:len(good)-1],
		"V without records":      edited(leaf(), func(b []byte) { b[0] = 'V' }),
		"index without records":  edited(leaf(), func(b []byte) { b[2] = 1 }),
		"dot":                    leaf(with(named("."))),
		"dot dot":                leaf(with(named(".."))),
		"empty name":             leaf(with(named(""))),
		"slash":                  leaf(with(named("a/b"))),
		"NUL":                    leaf(with(named("a\x00b"))),
		".bole":                  leaf(with(named(".bole"))),
		".BOLE":                  leaf(with(named(".BOLE"))),
		".bOlE":                  leaf(with(named(".bOlE"))),
		"256 bytes of name":      leaf(with(named(strings.Repeat("x", 256)))),
		"name longer than item":  leaf(with(func(r *refRecord) { r.fixed[54]++ })),
		"name shorter than item": leaf(with(func(r *refRecord) { r.fixed[54]-- })),
		"duplicate":              leaf(file("a"), file("a")),
		"unsorted":               leaf(file("b"), file("a")),
		"unsorted prefix":        leaf(file("ab"), file("a")),
		"kind 0":                 mode(0o644),
		"kind 4":                 mode(4<<12 | 0o644),
		"kind 15":                mode(15<<12 | 0o644),
		"setuid":                 mode(1<<12 | 0o4644),
		"unknown flag":           leaf(with(func(r *refRecord) { r.fixed[55] = 2 })),
		"attributes not there":   leaf(with(func(r *refRecord) { r.fixed[55] = 1 })),
		"attributes zero":        leaf(with(func(r *refRecord) { r.fixed[55] = 1; r.item = append(r.item, make([]byte, 32)...) })),
		"attributes unflagged":   leaf(with(func(r *refRecord) { r.item = append(r.item, make([]byte, 32)...) })),
		"file without content":   leaf(with(func(r *refRecord) { clear(r.fixed[:32]) })),
		"negative size": leaf(with(func(r *refRecord) {
			r.counts[3] = 1 << 63
			binary.LittleEndian.PutUint64(r.fixed[32:], 1<<63)
		})),
		"directory without hash": leaf(entryOf(Entry{Name: []byte("d"), Kind: KindDir})),
		"directory cut": leaf(with(func(r *refRecord) {
			binary.LittleEndian.PutUint16(r.fixed[52:], 2<<12|0o755)
			r.counts = [4]uint64{1, 0, 1, 1}
		})),
		"directory totals overflow":        leaf(entryOf(Entry{Name: []byte("d"), Kind: KindDir, Hash: Hash{1}, Dirs: math.MaxUint64})),
		"sum overflow":                     leaf(entryOf(Entry{Name: []byte("d"), Kind: KindDir, Hash: Hash{1}, Files: math.MaxUint64}), file("e")),
		"symlink without target":           leaf(entryOf(Entry{Name: []byte("l"), Kind: KindSymlink})),
		"symlink length":                   leaf(entryOf(Entry{Name: []byte("l"), Kind: KindSymlink, Size: 2, Target: []byte("t")})),
		"symlink NUL":                      leaf(entryOf(Entry{Name: []byte("l"), Kind: KindSymlink, Size: 2, Target: []byte("t\x00")})),
		"symlink with both":                leaf(entryOf(Entry{Name: []byte("l"), Kind: KindSymlink, Size: 1, Hash: Hash{1}, Target: []byte("t")})),
		"symlink long inline":              leaf(entryOf(Entry{Name: []byte("l"), Kind: KindSymlink, Size: 129, Target: make([]byte, 129)})),
		"symlink long without content":     leaf(entryOf(Entry{Name: []byte("l"), Kind: KindSymlink, Size: 129})),
		"symlink short by content":         leaf(entryOf(Entry{Name: []byte("l"), Kind: KindSymlink, Size: 128, Hash: Hash{1}})),
		"symlink longer than any":          leaf(entryOf(Entry{Name: []byte("l"), Kind: KindSymlink, Size: 4096, Hash: Hash{1}})),
		"index of an empty child":          indexWith(func(r *refRecord) { clear(r.fixed[32:]); r.counts = [4]uint64{} }),
		"index without child":              indexWith(func(r *refRecord) { clear(r.fixed[:32]) }),
		"index without name":               indexWith(func(r *refRecord) { r.item = nil }),
		"index with a bad name":            indexWith(func(r *refRecord) { r.item = []byte("..") }),
		"index with a name that is long":   indexWith(func(r *refRecord) { r.item = make([]byte, 300) }),
		"index entries beyond the header":  indexWith(func(r *refRecord) { r.fixed[32] = 2 }),
		"Dir over 8176 bytes":              leaf(manyFiles(130, 16)...),
		"VNode of 161 records":             edited(leaf(manyFiles(161, 3)...), func(b []byte) { b[0] = 'V' }),
		"commit cut":                       {'C', 1, 0, 0},
		"attrs cut":                        {'A', 1, 0, 0, 0},
		"attrs empty":                      {'A', 1, 0, 0, 0, 0, 0, 0},
		"attrs count absurd":               {'A', 1, 0, 0, 255, 255, 255, 255},
		"attrs trailing byte":              append(mustAttrs("user.a", "user.b"), 0),
		"attrs unsorted":                   bytes.Replace(mustAttrs("user.a", "user.b"), []byte("user.a"), []byte("user.c"), 1),
		"attrs twice":                      bytes.Replace(mustAttrs("user.a", "user.b"), []byte("user.a"), []byte("user.b"), 1),
		"attrs of another space":           bytes.Replace(mustAttrs("user.a", "user.b"), []byte("user.a"), []byte("uses.a"), 1),
		"attrs that the mount answers":     bytes.Replace(mustAttrs("user.bolx.a"), []byte("bolx"), []byte("bole"), 1),
		"attrs reserved byte":              edited(mustAttrs("user.a"), func(b []byte) { b[2] = 1 }),
		"attrs version":                    edited(mustAttrs("user.a"), func(b []byte) { b[1] = 2 }),
		"attrs heap end absurd":            edited(mustAttrs("user.a"), func(b []byte) { b[15] = 255 }),
		"attrs name end after its value's": edited(mustAttrs("user.a"), func(b []byte) { b[8] += 2 }),
	}
	for name, at := range map[string]int{"reserved 2": 2, "reserved 3": 3, "reserved 110": 110, "reserved 111": 111, "version": 1,
		"parents": 7, "fields": 131, "text length": 135, "mode": 105} {
		nodes["commit "+name] = edited(mustCommit(), func(b []byte) { b[at] |= 0x80 })
	}
	nodes["commit trailing byte"] = append(mustCommit(), 0)
	nodes["commit cut by one"] = mustCommit()[:len(mustCommit())-1]
	nodes["commit without tree"] = edited(mustCommit(), func(b []byte) { clear(b[8:40]) })
	return nodes
}

func manyFiles(n, nameLen int) []refRecord {
	var rs []refRecord
	for i := range n {
		rs = append(rs, file(fmt.Sprintf("%0*d", nameLen, i)))
	}
	return rs
}

func mustAttrs(names ...string) []byte {
	var attrs []Attr
	for _, n := range names {
		attrs = append(attrs, Attr{n, []byte("v")})
	}
	b, err := EncodeAttrs(attrs)
	if err != nil {
		panic(err)
	}
	return b
}

func mustCommit() []byte {
	c := sampleCommit()
	b, err := c.Encode()
	if err != nil {
		panic(err)
	}
	return b
}

func TestCheckRefusesHostileNodes(t *testing.T) {
	for name, b := range hostileNodes() {
		h := NodeHash(b)
		kind, err := Check(&h, b)
		var c *CorruptError
		if !errors.Is(err, ErrCorrupt) || !errors.As(err, &c) || c.Node != h || kind != 0 {
			t.Errorf("%s: %v, %v", name, kind, err)
			continue
		}
		if !strings.Contains(err.Error(), h.String()) || c.Reason == "" {
			t.Errorf("%s: the message is %q", name, err)
		}
	}
}

// goodNodes are valid nodes of every kind and level.
func goodNodes(t testing.TB) [][]byte {
	t.Helper()
	empty, b := EmptyDir()
	all := [][]byte{b, mustCommit(), mustAttrs("user.a"), mustAttrs("user.a", "user.b", "user.c")}
	c := Commit{Tree: Hash{1}}
	b, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	all = append(all, b)
	rng := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{1, 8, 700} {
		m, _, _ := dirOf(t, rng, n, "f")
		for h, b := range m.nodes {
			if h != empty {
				all = append(all, b)
			}
		}
	}
	slices.SortFunc(all, bytes.Compare)
	return all
}

// reencode decodes a node by the reading functions alone and encodes what they
// gave.
func reencode(t testing.TB, b []byte) []byte {
	t.Helper()
	h := NodeHash(b)
	var out []byte
	var err error
	switch KindOf(b) {
	case NodeCommit:
		var c *Commit
		if c, err = DecodeCommit(&h, b); err == nil {
			out, err = c.Encode()
		}
	case NodeAttrs:
		var a []Attr
		if a, err = DecodeAttrs(&h, b); err == nil {
			out, err = EncodeAttrs(a)
		}
	default:
		n, fault := parseNode(b)
		if fault != "" {
			t.Fatal(fault)
		}
		var rs []refRecord
		for i := range n.count {
			if n.level == 0 {
				var e Entry
				if fault := n.entry(i, &e); fault != "" {
					t.Fatal(fault)
				}
				rs = append(rs, refEntry(e))
				continue
			}
			rec := n.record(i)
			name, _ := n.name(i)
			r := refRecord{fixed: bytes.Clone(rec), endAt: 64, item: name}
			for j := range r.counts {
				r.counts[j] = binary.LittleEndian.Uint64(rec[32+8*j:])
			}
			rs = append(rs, r)
		}
		out, _ = refEncode(b[0], n.level, rs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCheckAcceptsAndReencodes(t *testing.T) {
	kinds := map[NodeKind]int{}
	for _, b := range goodNodes(t) {
		h := NodeHash(b)
		kind, err := Check(&h, b)
		if err != nil {
			t.Fatalf("%x: %v", b, err)
		}
		kinds[kind]++
		if !bytes.Equal(reencode(t, b), b) {
			t.Fatalf("%x: encodes to other bytes", b)
		}
	}
	for kind := NodeCommit; kind <= NodeAttrs; kind++ {
		if kinds[kind] == 0 {
			t.Errorf("no %v among the nodes", kind)
		}
	}
}

// TestCheckOfEveryByteChanged changes each byte of nodes of every kind, and
// cuts them at each length. What Check accepts must encode to itself.
func TestCheckOfEveryByteChanged(t *testing.T) {
	refused := 0
	for _, b := range goodNodes(t) {
		if len(b) > 1500 {
			continue
		}
		for i := range b {
			for _, x := range []byte{1, 0x20, 0x80, 0xff} {
				c := edited(b, func(b []byte) { b[i] ^= x })
				h := NodeHash(c)
				if _, err := Check(&h, c); err != nil {
					refused++
				} else if !bytes.Equal(reencode(t, c), c) {
					t.Fatalf("byte %d of %x changed: encodes to other bytes", i, b)
				}
			}
			if _, err := Check(&Hash{}, b[:i]); !errors.Is(err, ErrCorrupt) {
				t.Fatalf("cut to %d bytes: %v", i, err)
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was refused")
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	for _, b := range goodNodes(t) {
		h := NodeHash(b)
		if KindOf(b) == NodeCommit {
			continue
		}
		if n := testing.AllocsPerRun(10, func() {
			if _, err := Check(&h, b); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Fatalf("Check of a %v of %d bytes: %v allocations", KindOf(b), len(b), n)
		}
	}
}
