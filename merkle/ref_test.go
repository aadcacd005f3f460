package merkle

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/zeebo/blake3"
)

// This file builds directories a second time, from docs/FORMAT.md alone and
// with everything in memory. It shares no code with Apply but the layout's
// numbers written out, so that the two can be compared.

// refRecord is a record of any level: its fixed part without the heap end (which
// goes in at end), its heap item and its name.
type refRecord struct {
	fixed  []byte
	endAt  int
	item   []byte
	name   string
	counts [4]uint64 // entries, files, dirs, bytes
}

func u64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
func u32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
func u16(v uint16) []byte { return binary.LittleEndian.AppendUint16(nil, v) }

func refEntry(e Entry) refRecord {
	attrs := byte(0)
	item := append([]byte{}, e.Name...)
	counts := [4]uint64{1, 1, 0, 0}
	switch e.Kind {
	case KindFile:
		counts[3] = e.Size
	case KindDir:
		counts = [4]uint64{1, e.Files, e.Dirs + 1, e.Size}
		item = slices.Concat(item, u64(e.Files), u64(e.Dirs))
	}
	if !e.Attrs.IsZero() {
		attrs = 1
		item = append(item, e.Attrs[:]...)
	}
	item = append(item, e.Target...)
	fixed := slices.Concat(e.Hash[:], u64(e.Size), u64(uint64(e.Mtime)), u32(0),
		u16(uint16(e.Kind)<<12|e.Perm), []byte{byte(len(e.Name)), attrs})
	return refRecord{fixed, 48, item, string(e.Name), counts}
}

func refEncode(kind byte, level int, rs []refRecord) ([]byte, [4]uint64) {
	var sum [4]uint64
	var fixed, heap []byte
	for _, r := range rs {
		heap = append(heap, r.item...)
		f := bytes.Clone(r.fixed)
		copy(f[r.endAt:], u32(uint32(len(heap))))
		fixed = append(fixed, f...)
		for i := range sum {
			sum[i] += r.counts[i]
		}
	}
	head := slices.Concat([]byte{kind, 1, byte(level), 0}, u32(uint32(len(rs))),
		u64(sum[0]), u64(sum[1]), u64(sum[2]), u64(sum[3]))
	return slices.Concat(head, fixed, heap), sum
}

// refNumbers remembers what refNumber gave.
var refNumbers sync.Map

// refNumber is h(level, name).
func refNumber(level int, name string) uint64 {
	key := string(rune('0'+level)) + name
	if n, ok := refNumbers.Load(key); ok {
		return n.(uint64)
	}
	sum := blake3.Sum256(append([]byte{byte(level)}, name...))
	n := binary.LittleEndian.Uint64(sum[:])
	refNumbers.Store(key, n)
	return n
}

// refStarts returns where the nodes of a level begin.
func refStarts(level int, rs []refRecord) []int {
	numbers := make([]uint64, len(rs))
	for i, r := range rs {
		numbers[i] = refNumber(level, r.name)
	}
	starts := []int{0}
	for i := 1; i < len(rs); i++ {
		natural := true
		for j := max(0, i-20); j <= min(len(rs)-1, i+20); j++ {
			natural = natural && (j == i || numbers[j] > numbers[i])
		}
		if natural || i-starts[len(starts)-1] == 160 {
			starts = append(starts, i)
		}
	}
	return starts
}

// refDir returns the name of the directory with those entries, its nodes and
// the height of its tree.
func refDir(entries []Entry) (Hash, map[Hash][]byte, int) {
	rs := make([]refRecord, len(entries))
	for i, e := range entries {
		rs[i] = refEntry(e)
	}
	sort.Slice(rs, func(i, j int) bool { return rs[i].name < rs[j].name })
	nodes := map[Hash][]byte{}
	for level := 0; ; level++ {
		if b, _ := refEncode('D', level, rs); len(b) <= 8176 {
			h := NodeHash(b)
			nodes[h] = b
			return h, nodes, level
		}
		var up []refRecord
		starts := append(refStarts(level, rs), len(rs))
		for i := range starts[:len(starts)-1] {
			part := rs[starts[i]:starts[i+1]]
			b, sum := refEncode('V', level, part)
			h := NodeHash(b)
			nodes[h] = b
			fixed := slices.Concat(h[:], u64(sum[0]), u64(sum[1]), u64(sum[2]), u64(sum[3]), u32(0))
			up = append(up, refRecord{fixed, 64, []byte(part[0].name), part[0].name, sum})
		}
		rs = up
	}
}

// refTree is a whole tree by path; directories are entries of their own.
type refTree map[string]Entry

// set puts e at path after removing what was there.
func (t refTree) set(path string, e Entry) {
	t.remove(path)
	t[path] = e
}

func (t refTree) remove(path string) {
	maps.DeleteFunc(t, func(p string, _ Entry) bool { return p == path || strings.HasPrefix(p, path+"/") })
}

// build returns the root of the tree with its totals and all nodes. Below is a
// slash-ended path or "".
func (t refTree) build() (Hash, Totals, map[Hash][]byte) {
	children := map[string][]string{}
	for p := range t {
		dir := ""
		if i := strings.LastIndexByte(p, '/'); i >= 0 {
			dir = p[:i]
		}
		children[dir] = append(children[dir], p)
	}
	nodes := map[Hash][]byte{}
	h, totals := t.buildDir("", children, nodes)
	return h, totals, nodes
}

func (t refTree) buildDir(dir string, children map[string][]string, nodes map[Hash][]byte) (Hash, Totals) {
	var totals Totals
	var entries []Entry
	for _, p := range children[dir] {
		e := t[p]
		e.Name = []byte(p[strings.LastIndexByte(p, '/')+1:])
		if e.Kind == KindDir {
			h, below := t.buildDir(p, children, nodes)
			e.Hash, e.Files, e.Dirs, e.Size = h, below.Files, below.Dirs, below.Bytes
			totals.Dirs += 1 + below.Dirs
			totals.Files += below.Files
		} else {
			totals.Files++
		}
		if e.Kind != KindSymlink {
			totals.Bytes += e.Size
		}
		entries = append(entries, e)
	}
	h, below, _ := refDir(entries)
	maps.Copy(nodes, below)
	return h, totals
}

// minedNames returns count names in order, beginning with prefix, whose numbers
// on level 0 lie in the ranges that want gives; found by trying suffixes.
func minedNames(prefix string, count int, want func(i uint64) (from, below uint64)) []string {
	names := make([]string, 0, count)
	for i := range uint64(count) {
		from, below := want(i)
		for try := 0; ; try++ {
			name := fmt.Sprintf("%s%05d.%x", prefix, i, try)
			sum := blake3.Sum256(append([]byte{0}, name...))
			if n := binary.LittleEndian.Uint64(sum[:]); n >= from && n < below {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// risingNames have numbers that only rise, so that none but the first is a
// natural start: a run that must be cut.
var risingNames = sync.OnceValue(func() []string {
	const count = 1500
	const step = 1 << 63 / count * 2
	return minedNames("r", count, func(i uint64) (uint64, uint64) { return i * step, i*step + step })
})

// stairNames are a run too: every 15th number is low and higher than the low
// one before, all others are high. A builder that forgets what stands before a
// cut takes the next low one for a natural start.
var stairNames = sync.OnceValue(func() []string {
	const count = 1500
	const step = 1 << 63 / (count / 15)
	return minedNames("t", count, func(i uint64) (uint64, uint64) {
		if i%15 != 0 {
			return 1 << 63, ^uint64(0)
		}
		return i / 15 * step, i/15*step + step
	})
})

func TestRunsHaveNoNaturalStart(t *testing.T) {
	for kind, names := range map[string][]string{"rising": risingNames(), "stairs": stairNames()} {
		var rs []refRecord
		for _, n := range names {
			rs = append(rs, refRecord{name: n})
		}
		starts := refStarts(0, rs)
		for i, s := range starts {
			if s != i*160 {
				t.Fatalf("%s: start %d is at record %d: not a cut every 160", kind, i, s)
			}
		}
		if len(starts) != 10 {
			t.Fatalf("%s: %d nodes", kind, len(starts))
		}
	}
}
