package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"bole/lmdbstore"
	"bole/merkle"
)

// drawTree draws entries of few names, several levels deep, and a large folder at times.
func drawTree(t *rapid.T, label string) map[string]merkle.Entry {
	out := map[string]merkle.Entry{}
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "a-", "a.b"}), 0, 4, rapid.ID[string]).Draw(t, label) {
			p := joinPath(dir, name)
			e := merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Mtime: int64(rapid.IntRange(0, 2).Draw(t, "mtime")), Hash: merkle.Hash{byte(rapid.IntRange(1, 3).Draw(t, "content"))}}
			if depth > 0 && rapid.Bool().Draw(t, "dir") {
				e = merkle.Entry{Kind: merkle.KindDir, Perm: 0o755, Mtime: e.Mtime}
				fill(p, depth-1)
			}
			out[p] = e
		}
	}
	fill("", 3)
	if rapid.IntRange(0, 5).Draw(t, "large") == 0 {
		out["big"] = merkle.Entry{Kind: merkle.KindDir, Perm: 0o755}
		step := rapid.IntRange(1, 7).Draw(t, "step")
		for i := 0; i < 2500; i += step {
			out[fmt.Sprintf("big/%05d", i)] = merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Hash: merkle.Hash{byte(1 + i%2)}}
		}
	}
	return out
}

// shown is what tests compare of one difference.
func shown(path string, old, now *merkle.Entry) string {
	one := func(e *merkle.Entry) string {
		if e == nil {
			return "-"
		}
		return fmt.Sprintf("%s %o %d %.4s", e.Kind, e.Perm, e.Mtime, e.Hash)
	}
	return path + ": " + one(old) + " -> " + one(now)
}

// TestEachDifference compares the walk that holds no reader with merkle.Diff.
func TestEachDifference(t *testing.T) {
	w := newWork(t)
	rapid.Check(t, func(rt *rapid.T) {
		store := merkle.NewMemStore()
		a := buildEntries(rt, store, drawTree(rt, "old")).Hash
		b := buildEntries(rt, store, drawTree(rt, "new")).Hash
		nodes := map[merkle.Hash][]byte{}
		ok(rt, eachNode(store, a, nodes))
		ok(rt, eachNode(store, b, nodes))
		ok(rt, w.db.Update(func(tx *lmdbstore.Writer) error {
			for h, b := range nodes {
				if err := tx.PutNode(h, b); err != nil {
					return err
				}
			}
			return nil
		}))
		skip := rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(rt, "skip")
		answer := func(path string) error {
			if path == skip {
				return merkle.SkipDir
			}
			return nil
		}
		var want, got []string
		ok(rt, merkle.Diff(store, a, b, func(d merkle.DiffEntry) error {
			want = append(want, shown(string(d.Path), d.Old, d.New))
			return answer(string(d.Path))
		}))
		ok(rt, w.eachDifference(ctx, "", a, b, func(path string, old, now *merkle.Entry) error {
			got = append(got, shown(path, old, now))
			return answer(path)
		}))
		if d := cmp.Diff(want, got); d != "" {
			rt.Fatalf("differences (-want +got):\n%s", d)
		}
	})
}

// TestEachDifferenceEnds with what its function, its context or the store says.
func TestEachDifferenceEnds(t *testing.T) {
	w := newWork(t)
	for i := range 3 {
		w.write(fmt.Sprintf("d/%d", i), "x")
	}
	id := w.save("first")
	e, err := w.Lookup(id, "")
	ok(t, err)
	boom := errors.New("boom")
	wantErr(t, w.eachDifference(ctx, "", merkle.Hash{}, e.Hash, func(string, *merkle.Entry, *merkle.Entry) error { return boom }), boom)
	stopped, stop := context.WithCancel(ctx)
	stop()
	wantErr(t, w.eachDifference(stopped, "", merkle.Hash{}, e.Hash, nil), context.Canceled)
	wantErr(t, w.eachDifference(ctx, "", merkle.Hash{9}, e.Hash, nil), merkle.ErrMissing)
	var names []string
	ok(t, w.eachEntry(ctx, e.Hash, func(e *merkle.Entry) error { names = append(names, string(e.Name)); return nil }))
	if !slices.Equal(names, []string{"d"}) {
		t.Fatalf("entries of the root: %q", names)
	}
}
