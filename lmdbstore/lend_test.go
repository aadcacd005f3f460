package lmdbstore

import (
	"bytes"
	"testing"
)

// TestDeadBytesAreScribbledOver: in builds with invariants whoever keeps lent
// bytes sees at once that they are dead.
func TestDeadBytesAreScribbledOver(t *testing.T) {
	if !invariants {
		t.Skip("only with the build tag invariants")
	}
	s := newStore(t)
	update(t, s, putNodes(0, 10, 200))
	h, want := testNode(3, 200)
	var kept [][]byte
	keep := func(b []byte) { kept = append(kept, b) }
	var reader *Reader
	view(t, s, func(r *Reader) error {
		reader = r
		b, err := r.Node(&h)
		if err != nil {
			return err
		}
		keep(b)
		v, err := r.Get(Meta, formatKey)
		if err != nil {
			return err
		}
		keep(v)
		if err := r.Scan(Meta, nil, nil, func(k, v []byte) error { keep(k); keep(v); return nil }); err != nil {
			return err
		}
		if !bytes.Equal(b, want) {
			t.Error("bytes died inside the View")
		}
		return nil
	})
	dead(t, kept)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("a dead Reader can be used")
			}
		}()
		reader.Get(Meta, formatKey)
	}()

	kept = nil
	update(t, s, func(w *Writer) error {
		v, err := w.Get(Meta, formatKey)
		if err != nil {
			return err
		}
		keep(v)
		if err := w.Put(Refs, []byte("a"), []byte("b")); err != nil {
			return err
		}
		dead(t, kept)
		return w.Scan(Refs, nil, nil, func(k, v []byte) error { keep(k); keep(v); return nil })
	})
	dead(t, kept)

	func() {
		defer func() {
			if recover() == nil {
				t.Error("PutNode takes a hash that is not the node's")
			}
		}()
		s.Update(func(w *Writer) error { return w.PutNode(h, []byte("other bytes")) })
	}()
}

func dead(t *testing.T, kept [][]byte) {
	t.Helper()
	for i, b := range kept {
		if len(b) == 0 || !bytes.Equal(b, bytes.Repeat([]byte{scribble}, len(b))) {
			t.Errorf("bytes %d are still alive: %x", i, b)
		}
	}
}

// TestReaderOfTheMapItself: in normal builds nothing is copied.
func TestLentBytesLieInTheMap(t *testing.T) {
	if invariants {
		t.Skip("lends copies in this build")
	}
	s := newStore(t)
	update(t, s, putNodes(0, 10, 5000))
	h, _ := testNode(3, 5000)
	view(t, s, func(r *Reader) error {
		b, err := r.Node(&h)
		if err != nil {
			return err
		}
		if first, last := s.pageOf(b); last >= s.end.Load()/uint64(s.pageSize) || last != first+1 {
			t.Errorf("node lies in pages %d to %d", first, last)
		}
		if cap(b) != len(b) {
			t.Error("append would write into the map")
		}
		return nil
	})
}

func TestTableNames(t *testing.T) {
	seen := map[string]bool{}
	for _, table := range Tables() {
		if name := table.String(); name == "" || seen[name] {
			t.Errorf("table %d is called %q", table, name)
		}
		seen[table.String()] = true
	}
	if len(seen) != int(numTables) || numTables.String() != "table(9)" {
		t.Errorf("%d tables, then %s", len(seen), numTables)
	}
}
