package lmdbstore

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"bole/merkle"
)

// BenchmarkView is one operation of a mount: a reader is renewed, one record
// is read, the reader is reset.
func BenchmarkView(b *testing.B) {
	s := newStore(b)
	update(b, s, putNodes(0, 100_000, 300))
	hashes := hashesOf(0, 100_000, 1, 300)
	random := rand.New(rand.NewPCG(1, 2))
	random.Shuffle(len(hashes), func(i, j int) { hashes[i], hashes[j] = hashes[j], hashes[i] })
	for _, keys := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("get of %d", keys), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				h := &hashes[i%keys]
				i++
				if err := s.View(func(r *Reader) error { _, err := r.Get(Nodes, h[:nodeKeySize]); return err }); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("node of %d", keys), func(b *testing.B) {
			b.ReportAllocs()
			i := 0
			for b.Loop() {
				h := &hashes[i%keys]
				i++
				if err := s.View(func(r *Reader) error { _, err := r.Node(h); return err }); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkRead is a read inside a View that is open.
func BenchmarkRead(b *testing.B) {
	s := newStore(b)
	update(b, s, putNodes(0, 1000, 300))
	h, _ := testNode(1, 300)
	view(b, s, func(r *Reader) error {
		b.Run("node", func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Node(&h); err != nil {
					b.Fatal(err)
				}
			}
		})
		return nil
	})
}

// BenchmarkLoad puts 100,000 nodes of about 300 bytes into an empty database,
// the way Update does it and in the order in which they come.
func BenchmarkLoad(b *testing.B) {
	type node struct {
		hash merkle.Hash
		b    []byte
	}
	var nodes []node
	for i := range 100_000 {
		h, body := testNode(i, 300)
		nodes = append(nodes, node{h, body})
	}
	for name, put := range map[string]func(w *Writer, n node) error{
		"sorted":   func(w *Writer, n node) error { return w.PutNode(n.hash, n.b) },
		"unsorted": func(w *Writer, n node) error { return w.Put(Blobs, n.hash[:nodeKeySize], n.b) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				s := newStore(b)
				b.StartTimer()
				update(b, s, func(w *Writer) error {
					for _, n := range nodes {
						if err := put(w, n); err != nil {
							return err
						}
					}
					return nil
				})
				b.StopTimer()
				info, err := s.Info()
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(allPages(info)), "pages")
				s.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkBarrier is the smallest Update.
func BenchmarkBarrier(b *testing.B) {
	s := newStore(b)
	i := 0
	for b.Loop() {
		i++
		update(b, s, func(w *Writer) error { return w.Put(Refs, []byte("main"), fmt.Append(nil, i)) })
	}
}

// BenchmarkPutNode is the cost of gathering nodes, without the commit.
func BenchmarkSort(b *testing.B) {
	var nodes []bufferedNode
	for _, h := range hashesOf(0, 50_000, 1, 60) {
		nodes = append(nodes, bufferedNode{hash: h})
	}
	for b.Loop() {
		nb := nodeBuffer{nodes: slices.Clone(nodes)}
		if err := nb.sort(); err != nil {
			b.Fatal(err)
		}
	}
}
