package lmdbstore

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"bole/merkle"

	"pgregory.net/rapid"
)

func TestNodeIsVerifiedOnce(t *testing.T) {
	s := newStore(t)
	update(t, s, putNodes(0, 100, 500))
	h, b := testNode(7, 500)
	view(t, s, func(r *Reader) error {
		slot, print := fingerprint(&h)
		if s.verified.slots[slot].Load() == print {
			t.Error("remembered before it was read")
		}
		if err := checkNodes(r, 0, 100, 500); err != nil {
			return err
		}
		if s.verified.slots[slot].Load() != print {
			t.Error("not remembered")
		}
		// The key alone does not make a node: the other half of the hash counts.
		other := h
		other[31] ^= 1
		_, err := r.Node(&other)
		mustFail(t, err, merkle.ErrCorrupt, other.String())
		return nil
	})
	// Bytes that change under a verified node are noticed by the next process.
	bad := bytes.Clone(b)
	bad[len(bad)-1] ^= 1
	overwriteNode(t, s, h, bad)
	dir := s.Dir()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openDir(t, dir)
	view(t, s, func(r *Reader) error {
		for range 2 {
			_, err := r.Node(&h)
			mustFail(t, err, merkle.ErrCorrupt, h.String())
			if !strings.Contains(err.Error(), "hash") {
				t.Errorf("error does not say what is wrong: %v", err)
			}
		}
		return checkNodes(r, 8, 100, 500)
	})
}

// overwriteNode does what PutNode never does.
func overwriteNode(t testing.TB, s *Store, h merkle.Hash, b []byte) {
	t.Helper()
	update(t, s, func(w *Writer) error { return w.txn.Put(s.dbi[Nodes], h[:nodeKeySize], b, 0) })
}

func TestNodeMustBeCanonical(t *testing.T) {
	s := newStore(t)
	for _, b := range [][]byte{[]byte("no node at all"), {0}, bytes.Repeat([]byte("D"), 5000)} {
		h := merkle.NodeHash(b)
		update(t, s, func(w *Writer) error { return w.PutNode(h, b) })
		view(t, s, func(r *Reader) error {
			_, err := r.Node(&h)
			mustFail(t, err, merkle.ErrCorrupt, h.String())
			return nil
		})
	}
}

func TestNodeMissing(t *testing.T) {
	s := newStore(t)
	h, _ := testNode(1, 100)
	view(t, s, func(r *Reader) error {
		_, err := r.Node(&h)
		mustFail(t, err, merkle.ErrMissing, h.String())
		return nil
	})
}

func TestFingerprintCoversTheWholeHash(t *testing.T) {
	h, _ := testNode(1, 100)
	_, want := fingerprint(&h)
	for bit := range 256 {
		other := h
		other[bit/8] ^= 1 << (bit % 8)
		if _, print := fingerprint(&other); print == want {
			t.Errorf("bit %d does not count", bit)
		}
	}
	if _, zero := fingerprint(&merkle.Hash{}); zero == 0 {
		t.Error("a fingerprint is 0, which means an empty slot")
	}
}

// sameKey returns the hash of a node and one that differs behind the key.
func sameKey(number int) (a, b merkle.Hash, bytes []byte) {
	a, bytes = testNode(number, 100)
	b = a
	b[20] ^= 0xFF
	return a, b, bytes
}

func TestCollision(t *testing.T) {
	if invariants {
		t.Skip("PutNode hashes what it is given in this build")
	}
	h, other, b := sameKey(1)
	for name, puts := range map[string]func(s *Store) error{
		"in one batch": func(s *Store) error {
			return s.Update(func(w *Writer) error {
				if err := w.PutNode(h, b); err != nil {
					return err
				}
				return w.PutNode(other, []byte("others"))
			})
		},
		"in two transactions": func(s *Store) error {
			update(t, s, func(w *Writer) error { return w.PutNode(h, b) })
			return s.Update(func(w *Writer) error { return w.PutNode(other, []byte("others")) })
		},
		"in two batches of one transaction": func(s *Store) error {
			s.limits.buffer = 1
			return s.Update(func(w *Writer) error {
				for _, x := range []merkle.Hash{h, other} {
					if err := w.PutNode(x, append(bytes.Clone(b), x[20])); err != nil {
						return err
					}
				}
				return nil
			})
		},
		"and the error is ignored": func(s *Store) error {
			s.limits.buffer = 1
			return s.Update(func(w *Writer) error {
				for _, x := range []merkle.Hash{h, other, h} {
					w.PutNode(x, append(bytes.Clone(b), x[20]))
				}
				if _, err := w.Get(Refs, []byte("main")); !errors.Is(err, ErrCollision) {
					t.Errorf("Get after a failed put: %v", err)
				}
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStore(t)
			mustFail(t, puts(s), ErrCollision, h.String()[:2*nodeKeySize])
			s.Nodes(func(k merkle.Key, got []byte) error {
				if !bytes.Equal(got, b) {
					t.Errorf("node has become %q", got)
				}
				return nil
			})
		})
	}
}

func TestPutNodeTwice(t *testing.T) {
	s := newStore(t)
	for range 2 {
		update(t, s, func(w *Writer) error {
			for range 2 {
				if err := putNodes(0, 50, 3000)(w); err != nil {
					return err
				}
			}
			return nil
		})
	}
	view(t, s, func(r *Reader) error {
		if n, err := r.Entries(Nodes); n != 50 || err != nil {
			t.Errorf("%d nodes, %v", n, err)
		}
		return checkNodes(r, 0, 50, 3000)
	})
}

// TestPutNodeCopies: the caller uses its buffer again at once.
func TestPutNodeCopies(t *testing.T) {
	s := newStore(t)
	update(t, s, func(w *Writer) error {
		room := make([]byte, 4096)
		for i := range 200 {
			h, b := testNode(i, 600)
			if err := w.PutNode(h, room[:copy(room, b)]); err != nil {
				return err
			}
		}
		return nil
	})
	view(t, s, func(r *Reader) error { return checkNodes(r, 0, 200, 600) })
}

func TestNodesScan(t *testing.T) {
	s := newStore(t)
	update(t, s, putNodes(0, 500, 700))
	var keys []merkle.Key
	err := s.Nodes(func(k merkle.Key, b []byte) error {
		if h := merkle.NodeHash(b); h.Key() != k {
			t.Errorf("key %x holds node %s", k, h)
		}
		keys = append(keys, k)
		return nil
	})
	if err != nil || len(keys) != 500 {
		t.Errorf("%d nodes, %v", len(keys), err)
	}
	if !slices.IsSortedFunc(keys, func(a, b merkle.Key) int { return bytes.Compare(a[:], b[:]) }) {
		t.Error("keys are not in order")
	}
	n := 0
	if err := s.Nodes(func(merkle.Key, []byte) error { n++; return ErrStop }); err != nil || n != 1 {
		t.Errorf("stopped after %d: %v", n, err)
	}
	update(t, s, func(w *Writer) error { return w.txn.Put(s.dbi[Nodes], []byte("short"), []byte("x"), 0) })
	mustFail(t, s.Nodes(func(merkle.Key, []byte) error { return nil }), ErrPageUnreadable, "5 bytes")
}

// TestNodesModel: any sequence of Updates, committed or not, against a map.
func TestNodesModel(t *testing.T) {
	dir := newDir(t)
	s := openDir(t, dir)
	s.limits.buffer = 20 << 10 // several flushes in one Update
	model := map[merkle.Hash][]byte{}
	refs := map[string]string{}
	rapid.Check(t, func(rt *rapid.T) {
		abort := rapid.Bool().Draw(rt, "abort")
		numbers := rapid.SliceOfN(rapid.IntRange(0, 2000), 0, 60).Draw(rt, "nodes")
		size := rapid.SampledFrom([]int{60, 2014 + 16, 2100, 5000}).Draw(rt, "size")
		name := rapid.StringMatching("[a-c]{1,2}").Draw(rt, "ref")
		remove := rapid.Bool().Draw(rt, "remove")
		boom := errors.New("boom")
		err := s.Update(func(w *Writer) error {
			for _, i := range numbers {
				if err := w.PutNode(testNode(i, size)); err != nil {
					return err
				}
			}
			if remove {
				if err := w.Delete(Refs, []byte(name)); err != nil {
					return err
				}
			} else if err := w.Put(Refs, []byte(name), []byte{byte(size)}); err != nil {
				return err
			}
			if abort {
				return boom
			}
			return nil
		})
		if abort != (err == boom) || !abort && err != nil {
			rt.Fatalf("update: %v", err)
		}
		if !abort {
			for _, i := range numbers {
				h, b := testNode(i, size)
				model[h] = b
			}
			refs[name] = string([]byte{byte(size)})
			if remove {
				delete(refs, name)
			}
		}
		checkModel(rt, s, model, refs)
	})
}

func checkModel(rt *rapid.T, s *Store, model map[merkle.Hash][]byte, refs map[string]string) {
	err := s.View(func(r *Reader) error {
		if n, err := r.Entries(Nodes); int(n) != len(model) {
			rt.Fatalf("%d nodes, want %d; %v", n, len(model), err)
		}
		n := 0
		for h, want := range model {
			if got, err := r.Node(&h); err != nil || !bytes.Equal(got, want) {
				rt.Fatalf("node %s: %v", h, err)
			}
			if n++; n > 50 {
				break // a map gives other nodes each time
			}
		}
		n = 0
		if err := r.Scan(Refs, nil, nil, func(k, v []byte) error {
			if n++; refs[string(k)] != string(v) {
				rt.Fatalf("ref %q is %q, want %q", k, v, refs[string(k)])
			}
			return nil
		}); err != nil {
			return err
		}
		if n != len(refs) {
			rt.Fatalf("%d refs, want %d", n, len(refs))
		}
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
}

// TestViewsAtOnce: many goroutines read verified nodes while one writes.
func TestViewsAtOnce(t *testing.T) {
	s := newStore(t)
	update(t, s, putNodes(0, 300, 900))
	done := make(chan error)
	for g := range 8 {
		go func() {
			random := rand.New(rand.NewPCG(1, uint64(g)))
			for range 200 {
				i := random.IntN(300)
				if err := s.View(func(r *Reader) error { return checkNodes(r, i, i+1, 900) }); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for i := range 20 {
		update(t, s, putNodes(300+10*i, 310+10*i, 900))
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
