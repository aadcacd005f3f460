package merkle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// refDiff compares two trees path by path.
func refDiff(a, b refTree) []string {
	paths := map[string]bool{}
	for p := range a {
		paths[p] = true
	}
	for p := range b {
		paths[p] = true
	}
	var out []string
	for p := range paths {
		x, inA := a[p]
		y, inB := b[p]
		if inA && inB && same(x, y) {
			continue
		}
		out = append(out, diffLine(p, inA, inB, x, y))
	}
	slices.SortFunc(out, func(a, b string) int {
		return ComparePaths([]byte(a[:strings.IndexByte(a, 0)]), []byte(b[:strings.IndexByte(b, 0)]))
	})
	return out
}

func diffLine(path string, inA, inB bool, a, b Entry) string {
	line := path + "\x00"
	for _, s := range []struct {
		in bool
		e  Entry
	}{{inA, a}, {inB, b}} {
		if s.in {
			line += fmt.Sprintf(" %v %o %d %x", s.e.Kind, s.e.Perm, s.e.Mtime, s.e.Attrs[:2])
		} else {
			line += " none"
		}
	}
	return line
}

func collectDiff(t rapid.TB, r Reader, a, b Hash) []string {
	t.Helper()
	var out []string
	err := Diff(r, a, b, func(d DiffEntry) error {
		var x, y Entry
		for e, p := range map[*Entry]*Entry{&x: d.Old, &y: d.New} {
			if p != nil {
				*e = *p
				if want := string(d.Path[strings.LastIndexByte(string(d.Path), '/')+1:]); string(p.Name) != want {
					t.Fatalf("entry of %q is called %q", d.Path, p.Name)
				}
			}
		}
		out = append(out, diffLine(string(d.Path), d.Old != nil, d.New != nil, x, y))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestDiffTreeModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := treeModel{rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 5)), refTree{}}
		store := NewMemStore()
		var hashes []Hash
		var trees []refTree
		h := mustApply(rt, store, Hash{})
		for range 6 {
			for range rapid.IntRange(0, 6).Draw(rt, "batches") {
				h = mustApply(rt, store, h, m.batch(8)...)
			}
			copied := refTree{}
			for p, e := range m.tree {
				copied[p] = e
			}
			hashes, trees = append(hashes, h), append(trees, copied)
		}
		for i := range hashes {
			for j := range hashes {
				got, want := collectDiff(rt, store, hashes[i], hashes[j]), refDiff(trees[i], trees[j])
				if !slices.Equal(got, want) {
					rt.Fatalf("Diff gives\n%q\nwant\n%q", got, want)
				}
			}
		}
		if got, want := collectDiff(rt, store, Hash{}, h), refDiff(nil, m.tree); !slices.Equal(got, want) {
			rt.Fatalf("Diff from nothing gives\n%q\nwant\n%q", got, want)
		}
	})
}

func TestDiffLargeDirectories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 6))
		all := universes["numbers"](rapid.SampledFrom([]int{100, 1000, 6000}).Draw(rt, "names"))
		f := flat{}
		for _, name := range all {
			if rng.IntN(2) == 0 {
				f[name] = "a"
			}
		}
		store := NewMemStore()
		a := mustApply(rt, store, Hash{}, f.changes()...)
		before := flat{}
		for k, v := range f {
			before[k] = v
		}
		n := rapid.SampledFrom([]int{1, 5, 100, 3000}).Draw(rt, "edits")
		b := mustApply(rt, store, a, f.edits(rng, all, n, "b")...)
		var want []string
		for _, name := range all {
			x, inA := before[name]
			y, inB := f[name]
			if inA != inB || x != y {
				want = append(want, diffLine(name, inA, inB, fileEntry(x), fileEntry(y)))
			}
		}
		if got := collectDiff(rt, store, a, b); !slices.Equal(got, want) {
			rt.Fatalf("Diff gives %d lines, want %d:\n%q\n%q", len(got), len(want), got, want)
		}
	})
}

// TestDiffReadsWhatDiffers counts reads where little differs.
func TestDiffReadsWhatDiffers(t *testing.T) {
	m := theMillion()
	both := &trusting{nodes: map[Hash][]byte{}}
	for h, b := range m.r.nodes {
		both.nodes[h] = b
	}
	h, _, err := Apply(m.r, both, m.h, inPathOrder([]Change{
		setFile("aaa", "first"), setFile(fmt.Sprintf(millionFormat, m.n/3), "changed"), remove(fmt.Sprintf(millionFormat, m.n/2)),
	}))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	if err := Diff(both, m.h, h, func(DiffEntry) error { n++; return nil }); err != nil || n != 3 {
		t.Fatalf("%d differences, %v", n, err)
	}
	if both.reads > 60 {
		t.Errorf("read %d nodes for three differences", both.reads)
	}
	both.reads = 0
	if err := Diff(both, h, h, func(DiffEntry) error { return errors.New("called") }); err != nil || both.reads != 0 {
		t.Errorf("equal trees: %v, %d reads", err, both.reads)
	}
}

func TestDiffSkipsAndStops(t *testing.T) {
	store := NewMemStore()
	a := mustApply(t, store, Hash{}, setDir("gone"), setFile("gone/x", ""), setDir("meta"), setFile("meta/x", "1"), setFile("z", "1"))
	b := mustApply(t, store, Hash{}, setDir("new"), setFile("new/x", ""), setFile("z", "2"),
		Change{Path: []byte("meta"), Op: OpSet, Entry: dirEntry(6)}, setFile("meta/x", "2"))
	for skip, want := range map[string]string{
		"":     "gone gone/x meta meta/x new new/x z",
		"gone": "gone meta meta/x new new/x z",
		"new":  "gone gone/x meta meta/x new z",
		"meta": "gone gone/x meta new new/x z",
		"z":    "gone gone/x meta meta/x new new/x z",
	} {
		var got []string
		err := Diff(store, a, b, func(d DiffEntry) error {
			got = append(got, string(d.Path))
			if string(d.Path) == skip {
				return SkipDir
			}
			return nil
		})
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("skipping %q: %v, %v; want %s", skip, got, err, want)
		}
	}
	stop, n := errors.New("stop"), 0
	if err := Diff(store, a, b, func(d DiffEntry) error { n++; return stop }); err != stop || n != 1 {
		t.Errorf("stopping: %v after %d", err, n)
	}
	if err := Diff(store, a, Hash{9}, func(d DiffEntry) error { return nil }); !errors.Is(err, ErrMissing) {
		t.Errorf("missing tree: %v", err)
	}
}
