package lmdbstore

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"bole/merkle"

	"github.com/google/go-cmp/cmp"
)

func TestRecords(t *testing.T) {
	s := newStore(t)
	update(t, s, func(w *Writer) error {
		for _, k := range []string{"a", "aa", "ab", "ac", "b", "ab\xff", "\xff", "\xff\xff"} {
			if err := w.Put(Stage, []byte(k), []byte("<"+k+">")); err != nil {
				return err
			}
		}
		return w.Put(Stat, []byte("empty"), nil)
	})
	for _, c := range []struct {
		prefix, start string
		want          []string
	}{
		{"", "", []string{"a", "aa", "ab", "ab\xff", "ac", "b", "\xff", "\xff\xff"}},
		{"a", "", []string{"a", "aa", "ab", "ab\xff", "ac"}},
		{"a", "b", []string{"ab", "ab\xff", "ac"}},
		{"a", "d", nil},
		{"ab", "", []string{"ab", "ab\xff"}},
		{"", "ac", []string{"ac", "b", "\xff", "\xff\xff"}},
		{"\xff", "", []string{"\xff", "\xff\xff"}},
		{"\xff\xff\xff", "", nil},
		{strings.Repeat("x", 600), "", nil},
	} {
		want := map[string]string{}
		for _, k := range c.want {
			want[k] = "<" + k + ">"
		}
		if diff := cmp.Diff(want, readRecords(t, s, Stage, c.prefix, c.start)); diff != "" {
			t.Errorf("scan %q + %q: %s", c.prefix, c.start, diff)
		}
	}
	view(t, s, func(r *Reader) error {
		if v, err := r.Get(Stat, []byte("empty")); err != nil || len(v) != 0 {
			t.Errorf("empty value: %q, %v", v, err)
		}
		if _, err := r.Get(Stat, []byte("a")); err != ErrNotFound {
			t.Errorf("absent key: %v", err)
		}
		if _, err := r.Get(Stage, nil); err == nil {
			t.Error("the empty key is found")
		}
		return nil
	})
	boom := errors.New("boom")
	for _, c := range []struct{ give, want error }{{ErrStop, nil}, {boom, boom}} {
		n := 0
		err := s.View(func(r *Reader) error {
			return r.Scan(Stage, nil, nil, func(k, v []byte) error {
				if n++; n == 3 {
					return c.give
				}
				return nil
			})
		})
		if err != c.want || n != 3 {
			t.Errorf("scan stopped with %v after %d: %v", c.give, n, err)
		}
	}
}

func TestWriterSeesItsChanges(t *testing.T) {
	s := newStore(t)
	update(t, s, func(w *Writer) error {
		for i := range 1000 {
			if err := w.Put(Stage, fmt.Appendf(nil, "%04d", i), []byte("x")); err != nil {
				return err
			}
		}
		if err := w.Delete(Stage, []byte("0500")); err != nil {
			return err
		}
		if err := w.Delete(Stage, []byte("absent")); err != nil {
			return err
		}
		if n, err := w.Entries(Stage); n != 999 || err != nil {
			t.Errorf("%d records, %v", n, err)
		}
		n := 0
		err := w.Scan(Stage, []byte("0"), nil, func(k, v []byte) error {
			n++
			if err := w.Put(Stat, k, v); err != ErrDuringScan {
				t.Fatalf("write during a scan: %v", err)
			}
			return nil
		})
		if n != 999 {
			t.Errorf("scanned %d records", n)
		}
		return err
	})
	update(t, s, func(w *Writer) error {
		if err := w.Drop(Stage); err != nil {
			return err
		}
		if _, err := w.Get(Stage, []byte("0001")); err != ErrNotFound {
			t.Errorf("after Drop: %v", err)
		}
		return w.Put(Stage, []byte("new"), nil)
	})
	if got := readRecords(t, s, Stage, "", ""); len(got) != 1 {
		t.Errorf("after Drop: %v", got)
	}
}

func TestWriterRefuses(t *testing.T) {
	s := newStore(t)
	update(t, s, func(w *Writer) error {
		for what, err := range map[string]error{
			"an empty key":       w.Put(Stage, nil, nil),
			"a long key":         w.Put(Stage, make([]byte, MaxKey+1), nil),
			"a put into nodes":   w.Put(Nodes, []byte("k"), nil),
			"a delete in nodes":  w.Delete(Nodes, []byte("k")),
			"a drop of nodes":    w.Drop(Nodes),
			"a table not there":  w.Put(numTables, []byte("k"), nil),
			"a node of no bytes": w.PutNode(merkle.Hash{}, nil),
		} {
			if err == nil {
				t.Errorf("%s is taken", what)
			}
		}
		return w.Put(Stage, bytes.Repeat([]byte("k"), MaxKey), []byte("v"))
	})
	if got := readRecords(t, s, Stage, "", ""); len(got) != 1 {
		t.Errorf("%d records", len(got))
	}
}

func TestUpdateAborts(t *testing.T) {
	s := newStore(t)
	boom := errors.New("boom")
	before := txnID(t, s)
	err := s.Update(func(w *Writer) error {
		if err := w.Put(Refs, []byte("main"), []byte("x")); err != nil {
			return err
		}
		if err := putNodes(0, 10, 100)(w); err != nil {
			return err
		}
		return boom
	})
	if err != boom {
		t.Errorf("got %v", err)
	}
	func() {
		defer func() {
			if p := recover(); p != boom {
				t.Errorf("recovered %v", p)
			}
		}()
		s.Update(func(w *Writer) error {
			if err := w.Put(Refs, []byte("main"), []byte("y")); err != nil {
				return err
			}
			panic(boom)
		})
	}()
	if got := readRecords(t, s, Refs, "", ""); len(got) != 0 {
		t.Errorf("refs hold %v", got)
	}
	if err := s.Nodes(func(merkle.Key, []byte) error { return boom }); err != nil {
		t.Errorf("nodes remain: %v", err)
	}
	if after := txnID(t, s); after != before {
		t.Errorf("transaction %d became %d", before, after)
	}
	// The write lock is free and a View that panics gives its reader back.
	update(t, s, func(w *Writer) error { return nil })
	func() {
		defer func() { recover() }()
		s.View(func(r *Reader) error { panic(boom) })
	}()
}

// txnID returns the number of the last transaction.
func txnID(t testing.TB, s *Store) (id uint64) {
	t.Helper()
	view(t, s, func(r *Reader) error {
		id = r.TxnID()
		return nil
	})
	return id
}

func TestTransactionNumbers(t *testing.T) {
	s := newStore(t)
	before := txnID(t, s)
	update(t, s, func(w *Writer) error {
		if w.TxnID() != before+1 {
			t.Errorf("writer has number %d after %d", w.TxnID(), before)
		}
		return putNodes(0, 5000, 300)(w)
	})
	if after := txnID(t, s); after != before+1 {
		t.Errorf("5,000 nodes: %d became %d", before, after)
	}
	update(t, s, func(w *Writer) error { return putNodes(0, 5000, 300)(w) })
	update(t, s, func(w *Writer) error { return nil })
	if after := txnID(t, s); after != before+1 {
		t.Errorf("updates without a change: %d became %d", before, after)
	}
}
