package merkle

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// inPathOrder gives changes sorted by path.
func inPathOrder(cs []Change) iter.Seq2[Change, error] {
	cs = slices.Clone(cs)
	slices.SortFunc(cs, func(a, b Change) int { return ComparePaths(a.Path, b.Path) })
	return asGiven(cs)
}

// asGiven gives changes as they are. The bytes of each are overwritten after
// its turn, because Apply may not keep them.
func asGiven(cs []Change) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for _, c := range cs {
			c.Path = bytes.Clone(c.Path)
			c.Entry.Target = bytes.Clone(c.Entry.Target)
			ok := yield(c, nil)
			for _, p := range [][]byte{c.Path, c.Entry.Target} {
				for i := range p {
					p[i] = '#'
				}
			}
			if !ok {
				return
			}
		}
	}
}

func fileEntry(content string) Entry {
	return Entry{Kind: KindFile, Perm: 0o644, Size: uint64(len(content)), Mtime: 1700000000_123456789, Hash: ContentHash([]byte(content))}
}

func setFile(path, content string) Change {
	return Change{Path: []byte(path), Op: OpSet, Entry: fileEntry(content)}
}

func dirEntry(mtime int64) Entry { return Entry{Kind: KindDir, Perm: 0o755, Mtime: mtime} }

func setDir(path string) Change {
	return Change{Path: []byte(path), Op: OpSet, Entry: dirEntry(5)}
}

func remove(path string) Change { return Change{Path: []byte(path), Op: OpRemove} }

// mustApply applies cs to base in m and verifies what Apply returns. New nodes
// are not visible to it.
func mustApply(t rapid.TB, m *MemStore, base Hash, cs ...Change) Hash {
	t.Helper()
	w := NewMemStore()
	h, totals, err := Apply(m, w, base, inPathOrder(cs))
	if err != nil {
		t.Fatalf("Apply: %v", err)
	}
	for h, b := range w.nodes {
		if err := m.PutNode(h, b); err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenDir(m, &h)
	if err != nil {
		t.Fatalf("OpenDir of what Apply returned: %v", err)
	}
	if d.Totals() != totals {
		t.Fatalf("Apply returned totals %+v, the node has %+v", totals, d.Totals())
	}
	return h
}

// flat is the reference for one directory of files: name to content.
type flat map[string]string

func (f flat) changes() []Change {
	cs := make([]Change, 0, len(f))
	for name, content := range f {
		cs = append(cs, setFile(name, content))
	}
	return cs
}

func (f flat) ref() (Hash, map[Hash][]byte, int) {
	entries := make([]Entry, 0, len(f))
	for name, content := range f {
		e := fileEntry(content)
		e.Name = []byte(name)
		entries = append(entries, e)
	}
	return refDir(entries)
}

// universe is a set of names to draw from, in order.
type universe func(n int) []string

var universes = map[string]universe{
	"numbers": func(n int) []string {
		return numbered("n%06d", n)
	},
	"long": func(n int) []string { // high trees from few entries
		return numbered(strings.Repeat("x", 230)+"%06d", n)
	},
	"rising run": func(n int) []string { return amongOthers(risingNames(), n) },
	"stairs":     func(n int) []string { return amongOthers(stairNames(), n) },
}

// amongOthers puts names before, behind and between those of a run.
func amongOthers(run []string, n int) []string {
	names := slices.Concat(numbered("q%05d", n/4), run, numbered("s%05d", n/4))
	for i := 0; i < len(run); i += 100 {
		names = append(names, run[i]+"x", run[i]+"y")
	}
	slices.Sort(names)
	return names
}

func numbered(format string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf(format, i)
	}
	return names
}

// edits changes f at random and returns the changes that do the same. They
// are spread over all names or in one place, and set, remove or do both.
func (f flat) edits(rng *rand.Rand, names []string, n int, value string) []Change {
	together, removals := rng.IntN(2) == 0, rng.IntN(4)
	start := rng.IntN(len(names))
	cs := map[string]Change{}
	for i := range n {
		k := rng.IntN(len(names))
		if together {
			k = (start + i) % len(names)
		}
		name := names[k]
		if removals == 3 || removals > 0 && rng.IntN(2) == 0 {
			delete(f, name)
			cs[name] = remove(name)
		} else {
			f[name] = value
			cs[name] = setFile(name, value)
		}
	}
	list := make([]Change, 0, len(cs))
	for _, c := range cs {
		list = append(list, c)
	}
	return list
}

func TestApplyEqualsBuild(t *testing.T) {
	for kind, names := range universes {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 1))
				all := names(rapid.SampledFrom([]int{4, 60, 300, 2000, 5000}).Draw(rt, "names"))
				share := rapid.IntRange(0, 100).Draw(rt, "share")
				f := flat{}
				for _, name := range all {
					if rng.IntN(100) < share {
						f[name] = "first"
					}
				}
				m := NewMemStore()
				h := mustApply(rt, m, Hash{}, f.changes()...)
				for round := range rapid.IntRange(0, 5).Draw(rt, "rounds") {
					if want, _, _ := f.ref(); h != want {
						rt.Fatalf("before round %d: %d entries: applied %s, built %s", round, len(f), h, want)
					}
					n := rapid.SampledFrom([]int{1, 2, 10, 100, 2000}).Draw(rt, "edits")
					h = mustApply(rt, m, h, f.edits(rng, all, n, fmt.Sprint(round))...)
				}
				want, nodes, _ := f.ref()
				if h != want {
					rt.Fatalf("at the end: %d entries: applied %s, built %s", len(f), h, want)
				}
				for h := range nodes {
					if _, err := m.Node(&h); err != nil {
						rt.Fatalf("a node of the tree was not written: %v", err)
					}
				}
				if err := CheckDir(m, &h); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// TestApplyHighTree goes through trees of four levels and back to one.
func TestApplyHighTree(t *testing.T) {
	n := 50_000
	if testing.Short() {
		n = 10_000
	}
	all := universes["long"](n)
	rng := rand.New(rand.NewPCG(7, 7))
	f := flat{}
	for _, name := range all {
		f[name] = "a"
	}
	m := NewMemStore()
	h := mustApply(t, m, Hash{}, f.changes()...)
	heights := map[int]bool{}
	verify := func() {
		t.Helper()
		want, _, height := f.ref()
		heights[height] = true
		if h != want {
			t.Fatalf("%d entries, height %d: applied %s, built %s", len(f), height, h, want)
		}
	}
	verify()
	for len(f) > 1 {
		before := len(f)
		var cs []Change
		for name := range f {
			if rng.IntN(10) < 8 {
				cs = append(cs, remove(name))
				delete(f, name)
			}
		}
		h = mustApply(t, m, h, cs...)
		verify()
		t.Logf("%d entries became %d", before, len(f))
	}
	for _, n := range []int{20, 500, n} {
		h = mustApply(t, m, h, f.edits(rng, all, n, "b")...)
		verify()
	}
	for height := range 3 {
		if !heights[height] {
			t.Errorf("no tree of height %d was seen, only %v", height, heights)
		}
	}
}

// TestApplySingleEdits makes every kind of edit at every place of one
// directory that has two kinds of run that must be cut.
func TestApplySingleEdits(t *testing.T) {
	all := slices.Concat(numbered("a%04d", 150), risingNames()[:200], numbered("s%04d", 50), stairNames()[:200], numbered("z%04d", 150))
	f := flat{}
	for _, name := range all {
		f[name] = "a"
	}
	m := NewMemStore()
	base := mustApply(t, m, Hash{}, f.changes()...)
	step := 3
	if testing.Short() {
		step = 17
	}
	for i := 0; i < len(all); i += step {
		name := all[i]
		for _, edit := range []func() Change{
			func() Change { delete(f, name); return remove(name) },
			func() Change { f[name] = "b"; return setFile(name, "b") },
			func() Change { f[name+"!"] = "c"; return setFile(name+"!", "c") },
		} {
			got := mustApply(t, m, base, edit())
			if want, _, _ := f.ref(); got != want {
				t.Fatalf("edit of %q: applied %s, built %s", name, got, want)
			}
			f[name] = "a"
			delete(f, name+"!")
		}
	}
}

// TestApplyAtTheRootLimit goes from a directory that just fits one node to one
// that just does not.
func TestApplyAtTheRootLimit(t *testing.T) {
	f := flat{}
	size := headerSize
	for i := 0; size+2*(entryRecord+100) <= rootLimit; i++ {
		f[fmt.Sprintf("n%099d", i)] = "x"
		size += entryRecord + 100
	}
	spare := rootLimit - size - entryRecord
	m := NewMemStore()
	base := mustApply(t, m, Hash{}, f.changes()...)
	for _, long := range []int{spare - 1, spare, spare + 1} {
		name := "o" + strings.Repeat("o", long-1)
		f[name] = "x"
		h := mustApply(t, m, base, setFile(name, "x"))
		want, _, height := f.ref()
		if h != want || (height > 0) != (long > spare) {
			t.Fatalf("name of %d bytes: applied %s, built %s of height %d", long, h, want, height)
		}
		more := mustApply(t, m, h, setFile("p", "x"))
		if got := mustApply(t, m, more, remove("p")); got != h {
			t.Fatalf("name of %d bytes: adding and removing another gives %s, want %s", long, got, h)
		}
		if h = mustApply(t, m, h, remove(name)); h != base {
			t.Fatalf("name of %d bytes: removing it gives %s, want %s", long, h, base)
		}
		delete(f, name)
	}
}
