package merkle

import (
	"bytes"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// changesOf gives changes in path order, those of the same path once.
func changesOf(cs []Change) iter.Seq2[Change, error] {
	cs = slices.Clone(cs)
	slices.SortFunc(cs, func(a, b Change) int { return ComparePaths(a.Path, b.Path) })
	return inOrder(cs)
}

// inOrder gives changes as they are. Each path is overwritten after its turn,
// because Apply may not keep it.
func inOrder(cs []Change) iter.Seq2[Change, error] {
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

func setDir(path string) Change {
	return Change{Path: []byte(path), Op: OpSet, Entry: Entry{Kind: KindDir, Perm: 0o755, Mtime: 5}}
}

func remove(path string) Change { return Change{Path: []byte(path), Op: OpRemove} }

// mustApply applies cs to base in m.
func mustApply(t testing.TB, m *MemStore, base Hash, cs ...Change) Hash {
	t.Helper()
	h, totals, err := Apply(m, m, base, changesOf(cs))
	if err != nil {
		t.Fatalf("Apply: %v", err)
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

func (f flat) build(t testing.TB, m *MemStore) Hash {
	t.Helper()
	cs := make([]Change, 0, len(f))
	for name, content := range f {
		cs = append(cs, setFile(name, content))
	}
	return mustApply(t, m, Hash{}, cs...)
}

func TestApplyFlatEqualsBuild(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := NewMemStore()
		seed := rapid.Uint64().Draw(rt, "seed")
		rng := rand.New(rand.NewPCG(seed, 1))
		size := rapid.SampledFrom([]int{0, 1, 30, 120, 140, 200, 1000, 6000}).Draw(rt, "size")
		space := max(size*2, 4)
		f := flat{}
		for len(f) < size {
			f[fmt.Sprintf("n%06d", rng.IntN(space))] = "x"
		}
		h := f.build(t, m)
		for round := range rapid.IntRange(1, 6).Draw(rt, "rounds") {
			cs := map[string]Change{}
			kind := rapid.IntRange(0, 5).Draw(rt, "kind")
			n := rapid.SampledFrom([]int{1, 2, 10, 100, 2000}).Draw(rt, "edits")
			start := rng.IntN(space)
			for i := range n {
				k := rng.IntN(space)
				if kind%2 == 1 {
					k = start + i // all in one place
				}
				name := fmt.Sprintf("n%06d", k)
				if kind < 2 && rng.IntN(2) == 0 || kind > 3 {
					delete(f, name)
					cs[name] = remove(name)
				} else {
					f[name] = fmt.Sprint(round)
					cs[name] = setFile(name, fmt.Sprint(round))
				}
			}
			list := []Change{}
			for _, c := range cs {
				list = append(list, c)
			}
			h = mustApply(t, m, h, list...)
			if want := f.build(t, m); h != want {
				rt.Fatalf("round %d: %d entries: applied %s, built %s", round, len(f), h, want)
			}
			if err := CheckDir(m, &h); err != nil {
				rt.Fatal(err)
			}
		}
	})
}
