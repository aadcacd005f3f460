package merkle

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// trusting reads from a map without checks and counts.
type trusting struct {
	nodes map[Hash][]byte
	reads int
}

func (r *trusting) Node(h *Hash) ([]byte, error) {
	r.reads++
	b, ok := r.nodes[*h]
	if !ok {
		return nil, &MissingError{Node: *h}
	}
	return b, nil
}

// dirOf builds a directory of n entries of all kinds and returns them sorted.
func dirOf(t rapid.TB, rng *rand.Rand, n int, prefix string) (*MemStore, Hash, []Entry) {
	t.Helper()
	names := map[string]bool{}
	for len(names) < n {
		names[fmt.Sprintf("%s%05x", prefix, rng.IntN(max(n*3, 10)))] = true
	}
	var entries []Entry
	var cs []Change
	empty, _ := EmptyDir()
	for name := range names {
		e := randomEntry(rng)
		if rng.IntN(5) == 0 {
			e = Entry{Kind: KindDir, Perm: e.Perm, Mtime: e.Mtime, Attrs: e.Attrs, Hash: empty}
		}
		cs = append(cs, Change{Path: []byte(name), Op: OpSet, Entry: e})
		e.Name = []byte(name)
		entries = append(entries, e)
	}
	sort.Slice(entries, func(i, j int) bool { return bytes.Compare(entries[i].Name, entries[j].Name) < 0 })
	m := NewMemStore()
	return m, mustApply(t, m, Hash{}, cs...), entries
}

// same compares entries but not whether an absent slice is nil.
func same(a, b Entry) bool {
	a.Name, b.Name = append([]byte{}, a.Name...), append([]byte{}, b.Name...)
	a.Target, b.Target = append([]byte{}, a.Target...), append([]byte{}, b.Target...)
	return reflect.DeepEqual(a, b)
}

func TestDirAgainstSortedEntries(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 4))
		n := rapid.SampledFrom([]int{0, 1, 50, 130, 500, 3000}).Draw(rt, "entries")
		prefix := rapid.SampledFrom([]string{"f", strings.Repeat("long", 55)}).Draw(rt, "prefix")
		m, h, want := dirOf(rt, rng, n, prefix)
		d, err := OpenDir(m, &h)
		if err != nil {
			rt.Fatal(err)
		}
		if d.Len() != uint64(n) || d.Hash() != h {
			rt.Fatalf("Len %d, Hash %s", d.Len(), d.Hash())
		}
		var e Entry
		for range 50 {
			i := rng.IntN(n + 1)
			err := d.At(uint64(i), &e)
			if i == n {
				if err != ErrNotFound {
					rt.Fatalf("At(%d) of %d: %v", i, n, err)
				}
				continue
			}
			if err != nil || !same(e, want[i]) {
				rt.Fatalf("At(%d): %+v, %v; want %+v", i, e, err, want[i])
			}
			ord, err := d.Lookup(want[i].Name, &e)
			if err != nil || ord != uint64(i) || !same(e, want[i]) {
				rt.Fatalf("Lookup(%q): %d, %+v, %v; want %d, %+v", want[i].Name, ord, e, err, i, want[i])
			}
		}
		for range 50 {
			name := []byte(fmt.Sprintf("%s%05x", prefix, rng.IntN(max(n*3, 10)+2)))
			switch rng.IntN(8) {
			case 0:
				name = name[:rng.IntN(len(name))]
			case 1:
				name = append(name, '!')
			}
			i := sort.Search(n, func(i int) bool { return bytes.Compare(want[i].Name, name) >= 0 })
			found := i < n && bytes.Equal(want[i].Name, name)
			ord, err := d.Lookup(name, &e)
			if found != (err == nil) || err != nil && err != ErrNotFound || found && ord != uint64(i) {
				rt.Fatalf("Lookup(%q): %d, %v; there: %v at %d", name, ord, err, found, i)
			}
			c := d.SeekName(name)
			expectEntries(rt, &c, want, i, 1+rng.IntN(200))
		}
		for range 20 {
			i := rng.IntN(n + 3)
			c := d.Seek(uint64(i))
			expectEntries(rt, &c, want, min(i, n), 1+rng.IntN(200))
		}
		c := d.Seek(0)
		expectEntries(rt, &c, want, 0, n+1)
	})
}

// expectEntries steps c through count entries of want from i on, or to the end.
func expectEntries(t rapid.TB, c *Cursor, want []Entry, i, count int) {
	t.Helper()
	var e Entry
	for range count {
		if c.Ordinal() != uint64(i) {
			t.Fatalf("Ordinal %d, want %d", c.Ordinal(), i)
		}
		ok, err := c.Next(&e)
		if err != nil || ok != (i < len(want)) {
			t.Fatalf("Next at %d of %d: %v, %v", i, len(want), ok, err)
		}
		if !ok {
			return
		}
		if !same(e, want[i]) {
			t.Fatalf("Next at %d: %+v, want %+v", i, e, want[i])
		}
		i++
	}
}

func TestEntryClone(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	m, h, want := dirOf(t, rng, 100, "f")
	d, err := OpenDir(m, &h)
	if err != nil {
		t.Fatal(err)
	}
	var clones []Entry
	var e Entry
	for c := d.Seek(0); ; {
		ok, err := c.Next(&e)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		clones = append(clones, e.Clone())
	}
	for i := range m.nodes[h] {
		m.nodes[h][i] = 0xff
	}
	for i := range want {
		if !same(clones[i], want[i]) {
			t.Fatalf("clone %d changed with the bytes it came from", i)
		}
	}
}

func TestReadAhead(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	m, h, want := dirOf(t, rng, 2000, "f")
	d, err := OpenDir(m, &h)
	if err != nil {
		t.Fatal(err)
	}
	top := d.NodeHashes(nil)
	if len(top) < 10 {
		t.Fatalf("NodeHashes gives %d", len(top))
	}
	for _, h := range top {
		b, err := m.Node(&h)
		if err != nil || KindOf(b) != NodeVNode {
			t.Fatalf("NodeHashes names %v, %v", KindOf(b), err)
		}
	}
	// What LeavesAhead and DirsAhead name is what stepping on needs.
	c := d.Seek(700)
	leaves, dirs := c.LeavesAhead(nil), c.DirsAhead(nil)
	r := &recording{m: m}
	d2, _ := OpenDir(r, &h)
	c = d2.Seek(700)
	r.asked = nil
	var e Entry
	for len(r.asked) < len(leaves) {
		if ok, err := c.Next(&e); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if len(leaves) == 0 || !slices.Equal(leaves, r.asked) {
		t.Errorf("LeavesAhead names %v, read were %v", leaves, r.asked)
	}
	n := 0
	for _, e := range want[700:] {
		if e.Kind == KindDir && n < len(dirs) {
			if dirs[n] != e.Hash {
				t.Errorf("DirsAhead %d is %s, want %s", n, dirs[n], e.Hash)
			}
			n++
		}
	}
	if n == 0 || n != len(dirs) {
		t.Errorf("DirsAhead names %d, found %d", len(dirs), n)
	}
	small, hs, _ := dirOf(t, rng, 3, "f")
	if d, err := OpenDir(small, &hs); err != nil || len(d.NodeHashes(nil)) != 0 {
		t.Errorf("NodeHashes of a single node: %v, %v", d.NodeHashes(nil), err)
	}
}

type recording struct {
	m     *MemStore
	asked []Hash
}

func (r *recording) Node(h *Hash) ([]byte, error) {
	r.asked = append(r.asked, *h)
	return r.m.Node(h)
}

func TestOpenDirErrors(t *testing.T) {
	m := NewMemStore()
	if _, err := OpenDir(m, &Hash{1}); !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), Hash{1}.String()) {
		t.Errorf("missing: %v", err)
	}
	c := sampleCommit()
	b, err := c.Encode()
	if err != nil {
		t.Fatal(err)
	}
	h := NodeHash(b)
	if err := m.PutNode(h, b); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir(m, &h); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), h.String()) {
		t.Errorf("a commit: %v", err)
	}
	m.nodes[Hash{2}] = b
	if _, err := m.Node(&Hash{2}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("another name: %v", err)
	}
	if err := m.PutNode(h, []byte("x")); err == nil {
		t.Error("PutNode took other bytes under a name that is taken")
	}
	var zero Dir
	if zero.Len() != 0 || zero.Totals() != (Totals{}) {
		t.Error("the zero Dir is not empty")
	}
}
