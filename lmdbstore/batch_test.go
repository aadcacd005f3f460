package lmdbstore

import (
	"errors"
	"fmt"
	"testing"

	"bole/merkle"
)

// smallLimits makes batches of a few pages.
var smallLimits = limits{dirty: 200, batch: 25, tooMany: 350, buffer: 16 << 20}

func TestBatchesWhenTold(t *testing.T) {
	s := newStore(t)
	s.limits = smallLimits
	before := txnID(t, s)
	update(t, s, func(w *Writer) error {
		w.ExpectPages(201)
		if err := putNodes(0, 1000, 900)(w); err != nil {
			return err
		}
		return w.Put(Refs, []byte("main"), []byte("x"))
	})
	// 1,000 nodes of 900 bytes are at least 250 pages.
	if n := txnID(t, s) - before; n < 10 || n > 120 {
		t.Errorf("%d transactions", n)
	}
	view(t, s, func(r *Reader) error { return checkNodes(r, 0, 1000, 900) })
}

func TestNoBatchesBelowTheLimit(t *testing.T) {
	s := newStore(t)
	s.limits = smallLimits
	before := txnID(t, s)
	update(t, s, func(w *Writer) error {
		w.ExpectPages(200)
		return putNodes(0, 300, 900)(w)
	})
	if n := txnID(t, s) - before; n != 1 {
		t.Errorf("%d transactions", n)
	}
}

func TestBatchesByItself(t *testing.T) {
	s := newStore(t)
	s.limits = smallLimits
	before := txnID(t, s)
	update(t, s, func(w *Writer) error {
		if err := putNodes(0, 2000, 900)(w); err != nil {
			return err
		}
		if n := w.TxnID() - before; n < 10 {
			t.Errorf("%d transactions so far", n)
		}
		return w.Put(Refs, []byte("main"), []byte("x"))
	})
	view(t, s, func(r *Reader) error { return checkNodes(r, 0, 2000, 900) })
}

// TestTablesEndBatches: once a table was read, what was seen stays true until
// the commit, so there is one transaction, and too much for it is refused.
func TestTablesEndBatches(t *testing.T) {
	for name, pin := range map[string]func(w *Writer) error{
		"get":     func(w *Writer) error { _, err := w.Get(Meta, formatKey); return err },
		"put":     func(w *Writer) error { return w.Put(Refs, []byte("main"), []byte("x")) },
		"delete":  func(w *Writer) error { return w.Delete(Refs, []byte("main")) },
		"drop":    func(w *Writer) error { return w.Drop(Stage) },
		"entries": func(w *Writer) error { _, err := w.Entries(Refs); return err },
		"scan": func(w *Writer) error {
			return w.Scan(Refs, nil, nil, func(k, v []byte) error { return nil })
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			s.limits = smallLimits
			before := txnID(t, s)
			err := s.Update(func(w *Writer) error {
				w.ExpectPages(1000)
				if err := pin(w); err != nil {
					return err
				}
				return putNodes(0, 3000, 900)(w)
			})
			mustFail(t, err, ErrTooLarge, s.dataFile())
			if after := txnID(t, s); after != before {
				t.Errorf("transaction %d became %d", before, after)
			}
			if err := s.Nodes(func(merkle.Key, []byte) error { return errors.New("a node") }); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestTooManyRecords(t *testing.T) {
	s := newStore(t)
	s.limits = smallLimits
	mustFail(t, s.Update(func(w *Writer) error {
		for i := range 100_000 {
			if err := w.Put(Stage, fmt.Appendf(nil, "%d", i), make([]byte, 100)); err != nil {
				return err
			}
		}
		return nil
	}), ErrTooLarge, s.dataFile(), "stage")
	if got := readRecords(t, s, Stage, "", ""); len(got) != 0 {
		t.Errorf("%d records", len(got))
	}
}

// TestFailureAfterBatches: nodes remain, which nothing refers to, and no record.
func TestFailureAfterBatches(t *testing.T) {
	s := newStore(t)
	s.limits = smallLimits
	boom := errors.New("boom")
	err := s.Update(func(w *Writer) error {
		if err := putNodes(0, 2000, 900)(w); err != nil {
			return err
		}
		if err := w.Put(Refs, []byte("main"), []byte("x")); err != nil {
			return err
		}
		return boom
	})
	if err != boom {
		t.Errorf("got %v", err)
	}
	if got := readRecords(t, s, Refs, "", ""); len(got) != 0 {
		t.Errorf("refs hold %v", got)
	}
	update(t, s, putNodes(0, 2000, 900)) // the same again finds most of them there
	view(t, s, func(r *Reader) error { return checkNodes(r, 0, 2000, 900) })
}

// TestDirtyIsAnUpperBound compares the estimate with the pages that a commit
// really writes: those that it adds and those that it frees.
func TestDirtyIsAnUpperBound(t *testing.T) {
	for _, c := range []struct {
		name  string
		first func(w *Writer) error // what is there before
		then  func(w *Writer) error
		loose uint64 // the estimate may be so many times too high
	}{
		{"first nodes", nil, putNodes(0, 3000, 1200), 3},
		{"more nodes", putNodes(0, 3000, 300), putNodes(3000, 4000, 300), 5},
		{"nodes in overflow pages", putNodes(0, 3000, 300), putNodes(3000, 3300, 9000), 3},
		{"a few nodes in many", putNodes(0, 20000, 100), putNodes(20000, 20010, 100), 5},
		{"the same nodes", putNodes(0, 3000, 300), putNodes(0, 3000, 300), 0},
		{"records", nil, func(w *Writer) error {
			for i := range 20_000 {
				if err := w.Put(Blobs, fmt.Appendf(nil, "%05d", i*7%20_000), make([]byte, 50)); err != nil {
					return err
				}
			}
			return nil
		}, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStore(t)
			if c.first != nil {
				update(t, s, c.first)
			}
			before, err := s.Info()
			if err != nil {
				t.Fatal(err)
			}
			estimate := uint64(0)
			update(t, s, func(w *Writer) error {
				if err := c.then(w); err != nil {
					return err
				}
				if err := w.flush(true); err != nil {
					return err
				}
				estimate = w.dirty()
				return nil
			})
			after, err := s.Info()
			if err != nil {
				t.Fatal(err)
			}
			written := allPages(after) - allPages(before)
			if after.FreePages > before.FreePages {
				written += after.FreePages - before.FreePages // each was replaced by a new one
			}
			t.Logf("estimate %d, written %d", estimate, written)
			// The table of tables and the free list are not counted.
			if estimate+8 < written {
				t.Errorf("the estimate of %d pages is below the %d written", estimate, written)
			}
			if written > 0 && estimate > c.loose*written+20 {
				t.Errorf("the estimate of %d pages is far above the %d written", estimate, written)
			}
		})
	}
}

// allPages returns the number of pages in use.
func allPages(info Info) uint64 {
	sum := info.Main.Pages() + info.Freelist.Pages()
	for _, table := range info.Tables {
		sum += table.Pages()
	}
	return sum
}

func TestRecordSize(t *testing.T) {
	for _, c := range []struct{ key, val, leaf, overflow int }{
		{16, 0, 26, 0},
		{16, 1, 28, 0},
		{16, 2014, 2040, 0},
		{16, 2015, 34, 1},
		{16, 4080, 34, 1},
		{16, 4081, 34, 2},
		{16, 8176, 34, 2},
		{16, 8177, 34, 3},
	} {
		leaf, overflow := recordSize(4096, c.key, c.val)
		if leaf != c.leaf || overflow != c.overflow {
			t.Errorf("key %d, value %d: %d bytes and %d pages, want %d and %d", c.key, c.val, leaf, overflow, c.leaf, c.overflow)
		}
	}
	// LMDB agrees.
	s := newStore(t)
	if s.pageSize != 4096 {
		t.Skipf("pages have %d bytes here", s.pageSize)
	}
	for size, want := range map[int]uint64{2014: 0, 2015: 1, 4080: 1, 4081: 2, 8176: 2, 8177: 3} {
		var got uint64
		err := s.Update(func(w *Writer) error {
			if err := w.Put(Stage, make([]byte, 16), make([]byte, size)); err != nil {
				return err
			}
			stat, err := w.txn.Stat(s.dbi[Stage])
			got = stat.OverflowPages
			return errors.Join(err, errors.New("enough"))
		})
		if got != want {
			t.Errorf("a value of %d bytes takes %d overflow pages, want %d (%v)", size, got, want, err)
		}
	}
}

// TestFirstCommitIsDense: sorted nodes that are appended leave full pages.
func TestFirstCommitIsDense(t *testing.T) {
	s := newStore(t)
	update(t, s, putNodes(0, 5000, 300))
	info, err := s.Info()
	if err != nil {
		t.Fatal(err)
	}
	nodes := info.Tables[Nodes]
	_, b := testNode(0, 300)
	size, _ := recordSize(s.pageSize, nodeKeySize, len(b))
	if best := uint64(5000/((s.pageSize-pageHeader)/size) + 1); nodes.Leaf > best+best/50 {
		t.Errorf("%d leaf pages, %d would do", nodes.Leaf, best)
	}
	if nodes.Entries != 5000 || nodes.Overflow != 0 || nodes.Depth < 2 {
		t.Errorf("%+v", nodes)
	}
}
