package lmdbstore

import (
	"bytes"
	"slices"
	"testing"

	"bole/merkle"

	"golang.org/x/sys/unix"
)

// hashesOf returns the names of nodes from, from+step, ... below to.
func hashesOf(from, to, step, size int) (hashes []merkle.Hash) {
	for i := from; i < to; i += step {
		h, _ := testNode(i, size)
		hashes = append(hashes, h)
	}
	return hashes
}

// pagesOf returns the pages that LMDB reads to find each of the nodes: those
// in which their bytes lie.
func pagesOf(t *testing.T, s *Store, r *Reader, hashes []merkle.Hash) map[uint64]bool {
	t.Helper()
	pages := map[uint64]bool{}
	for i := range hashes {
		b, err := s.get(r.txn, Nodes, hashes[i][:nodeKeySize])
		if err != nil {
			t.Fatal(err)
		}
		first, last := s.pageOf(b)
		for ; first <= last; first++ {
			pages[first] = true
		}
	}
	return pages
}

// TestPrefetchFindsThePages: exactly the pages of these nodes, found without
// LMDB's own search.
func TestPrefetchFindsThePages(t *testing.T) {
	for _, size := range []int{300, 2000, 9000} {
		s := newStore(t)
		update(t, s, putNodes(0, 3000, size))
		update(t, s, putNodes(3000, 4000, size))
		view(t, s, func(r *Reader) error {
			hashes := hashesOf(0, 4000, 37, size)
			missing, _ := testNode(1<<20, 100)
			want := pagesOf(t, s, r, hashes)
			p := prefetch{s: s}
			sorted := append(slices.Clone(hashes), missing)
			slices.SortFunc(sorted, func(a, b merkle.Hash) int { return bytes.Compare(a[:], b[:]) })
			p.find(r, sorted)
			leaves := p.pages
			p.pages = nil
			p.overflow(r, hashes)
			got := map[uint64]bool{}
			for _, run := range p.pages {
				for i := range run.n {
					got[run.first+i] = true
				}
			}
			if size < 2014 {
				if len(got) != 0 {
					t.Errorf("size %d: overflow pages %v", size, got)
				}
				for _, run := range leaves {
					got[run.first] = true
				}
				if len(leaves) > len(want)+1 { // one more for the node that is missing
					t.Errorf("size %d: %d pages, want %d", size, len(leaves), len(want))
				}
			}
			for page := range want {
				if !got[page] {
					t.Errorf("size %d: page %d is not asked for", size, page)
				}
			}
			return nil
		})
	}
}

func TestPrefetchIsHarmless(t *testing.T) {
	s := newStore(t)
	view(t, s, func(r *Reader) error {
		s.Prefetch(r, nil)
		s.whole = false
		s.Prefetch(r, hashesOf(0, 10, 1, 100)) // an empty table
		return nil
	})
	update(t, s, putNodes(0, 2000, 5000))
	view(t, s, func(r *Reader) error {
		hashes := hashesOf(0, 2000, 3, 5000)
		first := hashes[0]
		s.Prefetch(r, hashes)
		if hashes[0] != first {
			t.Error("the caller's keys were sorted")
		}
		return checkNodes(r, 0, 2000, 5000)
	})
}

// BenchmarkColdNodes reads nodes all over a database whose pages the kernel
// has dropped, with and without asking for them first.
func BenchmarkColdNodes(b *testing.B) {
	s := newStore(b)
	for from := 0; from < 100_000; from += 20_000 {
		update(b, s, putNodes(from, from+20_000, 900))
	}
	s.whole = false
	hashes := hashesOf(0, 100_000, 101, 900)
	for _, prefetch := range []bool{false, true} {
		name := map[bool]string{false: "one by one", true: "prefetched"}[prefetch]
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				dropPages(b, s)
				b.StartTimer()
				view(b, s, func(r *Reader) error {
					if prefetch {
						s.Prefetch(r, hashes)
					}
					for i := range hashes {
						if _, err := r.Node(&hashes[i]); err != nil {
							return err
						}
					}
					return nil
				})
			}
			b.ReportMetric(float64(len(hashes)), "nodes/op")
		})
	}
}

// dropPages makes the kernel forget the pages of the database.
func dropPages(b *testing.B, s *Store) {
	b.Helper()
	if err := unix.Madvise(s.mapped(), unix.MADV_DONTNEED); err != nil {
		b.Fatal(err)
	}
	if err := unix.Fadvise(s.fd, 0, 0, unix.FADV_DONTNEED); err != nil {
		b.Fatal(err)
	}
}
