package merkle

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkLookup opens a directory and looks one name up.
func BenchmarkLookup(b *testing.B) {
	for _, n := range []int{10, 1_000_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := &trusting{nodes: map[Hash][]byte{}}
			h, _, err := Apply(r, r, Hash{}, numberedFiles(n))
			if err != nil {
				b.Fatal(err)
			}
			var e Entry
			var buf [64]byte
			rng := rand.New(rand.NewPCG(1, 1))
			b.ReportAllocs()
			for b.Loop() {
				d, err := OpenDir(r, &h)
				if err != nil {
					b.Fatal(err)
				}
				if _, err := d.Lookup(fixedName(&buf, rng.IntN(n)), &e); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkList steps through a directory; the figure is for one entry.
func BenchmarkList(b *testing.B) {
	r := &trusting{nodes: map[Hash][]byte{}}
	h, _, err := Apply(r, r, Hash{}, numberedFiles(100_000))
	if err != nil {
		b.Fatal(err)
	}
	d, err := OpenDir(r, &h)
	if err != nil {
		b.Fatal(err)
	}
	var e Entry
	c := d.Seek(0)
	b.ReportAllocs()
	for b.Loop() {
		ok, err := c.Next(&e)
		if err != nil {
			b.Fatal(err)
		}
		if !ok {
			c = d.Seek(0)
		}
	}
}

// BenchmarkBuild applies one file at a time to nothing; the figure is for one file.
func BenchmarkBuild(b *testing.B) {
	b.Run("one directory", func(b *testing.B) {
		b.ReportAllocs()
		if _, _, err := Apply(NewMemStore(), discard{}, Hash{}, numberedFiles(b.N)); err != nil {
			b.Fatal(err)
		}
	})
	b.Run("directories of 10", func(b *testing.B) {
		b.ReportAllocs()
		_, _, err := Apply(NewMemStore(), discard{}, Hash{}, func(yield func(Change, error) bool) {
			var path []byte
			e := fileEntry("x")
			for i := 0; i < b.N; i++ {
				if i%10 == 0 {
					path = fmt.Appendf(path[:0], "dir%08d", i/10)
					if !yield(Change{Path: path, Op: OpSet, Entry: Entry{Kind: KindDir}}, nil) {
						return
					}
				}
				path = fmt.Appendf(path[:11], "/file%d", i%10)
				if !yield(Change{Path: path, Op: OpSet, Entry: e}, nil) {
					return
				}
			}
		})
		if err != nil {
			b.Fatal(err)
		}
	})
}

// BenchmarkEditOfMillion edits one file of a million.
func BenchmarkEditOfMillion(b *testing.B) {
	r := &trusting{nodes: map[Hash][]byte{}}
	h, _, err := Apply(r, r, Hash{}, numberedFiles(1_000_000))
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	b.ReportAllocs()
	for b.Loop() {
		c := setFile(fmt.Sprintf(millionFormat, rng.IntN(1_000_000)), "edited")
		if _, _, err := Apply(r, discard{}, h, asGiven([]Change{c})); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCheck verifies nodes as a store does when it first reads them; the
// figure is for one node of about 3 KiB.
func BenchmarkCheck(b *testing.B) {
	m := NewMemStore()
	if _, _, err := Apply(m, m, Hash{}, numberedFiles(20_000)); err != nil {
		b.Fatal(err)
	}
	var hashes []Hash
	for h := range m.nodes {
		hashes = append(hashes, h)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := m.Node(&hashes[i%len(hashes)]); err != nil {
			b.Fatal(err)
		}
	}
}
