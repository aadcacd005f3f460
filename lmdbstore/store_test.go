package lmdbstore

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"bole/merkle"

	"github.com/google/go-cmp/cmp"
)

func TestCreateAndOpen(t *testing.T) {
	dir := newDir(t)
	mustFail(t, Create(dir, Options{}), fs.ErrExist, dir)
	s := openDir(t, dir)
	if s.Dir() != dir {
		t.Errorf("Dir is %q", s.Dir())
	}
	for _, table := range Tables() {
		view(t, s, func(r *Reader) error {
			n, err := r.Entries(table)
			if want := map[bool]uint64{true: 1}[table == Meta]; n != want {
				t.Errorf("table %s has %d records, want %d", table, n, want)
			}
			return err
		})
	}
	got := readRecords(t, s, Meta, "", "")
	if diff := cmp.Diff(map[string]string{"format": "\x01\x00\x00\x00"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestCreateCompletesWhatWasKilled(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "data.mdb"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Create(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	openDir(t, dir)
}

func TestCreateModes(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	if err := Create(dir, Options{FileMode: 0o662}); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"data.mdb", "lock.mdb"} {
		st, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if st.Mode().Perm() != 0o662 {
			t.Errorf("%s has mode %v", name, st.Mode())
		}
	}
}

func TestOpenErrors(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "none")
	_, err := Open(missing, Options{})
	mustFail(t, err, fs.ErrNotExist, missing)

	empty := t.TempDir()
	_, err = Open(empty, Options{})
	mustFail(t, err, fs.ErrNotExist, empty)
	if names, _ := os.ReadDir(empty); len(names) != 0 {
		t.Errorf("Open of an empty folder left %v", names)
	}

	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(file, Options{}); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("open of a file: %v", err)
	}

	s := newStore(t)
	_, err = Open(s.Dir(), Options{})
	mustFail(t, err, ErrOpenTwice, s.Dir())
	view(t, s, func(r *Reader) error { return nil })
}

func TestOpenRefusesAnotherFormat(t *testing.T) {
	dir := newDir(t)
	s := openDir(t, dir)
	update(t, s, func(w *Writer) error { return w.Put(Meta, formatKey, []byte{2, 0, 0, 0}) })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, Options{})
	mustFail(t, err, ErrFormat, dir, "02000000")
}

func TestOpenWithoutPermission(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to become somebody else")
	}
	dir := newDir(t)
	for parent := dir; parent != filepath.Dir(os.TempDir()); parent = filepath.Dir(parent) {
		if st, err := os.Stat(parent); err == nil && st.Mode().Perm()&0o5 != 0o5 {
			if err := os.Chmod(parent, st.Mode().Perm()|0o5); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		data, lock os.FileMode
		read       bool // whether a reader may open it
		names      string
	}{
		{0o644, 0o644, false, "lock.mdb"},
		{0o644, 0o666, true, "data.mdb"},
		{0o666, 0o644, false, "lock.mdb"},
	} {
		os.Chmod(filepath.Join(dir, "data.mdb"), c.data)
		os.Chmod(filepath.Join(dir, "lock.mdb"), c.lock)
		for _, how := range []string{"read", "write"} {
			_, out, errs := runChildAs(t, 65534, "open", dir, how)
			if c.read && how == "read" {
				if out != "open\n" {
					t.Errorf("%v/%v %s: %s%s", c.data, c.lock, how, out, errs)
				}
			} else if !strings.Contains(out, c.names) || !strings.Contains(out, "permission denied") {
				t.Errorf("%v/%v %s: %s%s", c.data, c.lock, how, out, errs)
			}
		}
	}
}

func init() {
	children["open"] = func(args []string) int {
		s, err := Open(args[0], Options{ReadOnly: args[1] == "read"})
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fatal(s.View(func(r *Reader) error { return nil }))
		fatal(s.Close())
		fmt.Println("open")
		return 0
	}
}

func TestReadOnly(t *testing.T) {
	dir := newDir(t)
	s := openWith(t, dir, Options{ReadOnly: true})
	err := s.Update(func(w *Writer) error { return nil })
	mustFail(t, err, ErrReadOnly, dir)
	mustFail(t, err, fs.ErrPermission)
	if got := readRecords(t, s, Meta, "", ""); len(got) != 1 {
		t.Errorf("meta holds %v", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// The disk is not read-only: somebody may write at the same time, so the
	// reader must have used the lock file.
	if st, err := os.Stat(filepath.Join(dir, "lock.mdb")); err != nil || st.Size() == 0 {
		t.Errorf("lock file: %v, %v", st, err)
	}
}

func TestCloseTells(t *testing.T) {
	s := newStore(t)
	mustFail(t, s.View(func(r *Reader) error { return s.Close() }), ErrBusy, s.Dir())
	mustFail(t, s.Update(func(w *Writer) error { return s.Close() }), ErrBusy, s.Dir())
	view(t, s, func(r *Reader) error { return nil })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	mustFail(t, s.Close(), ErrClosed)
	mustFail(t, s.View(func(r *Reader) error { return nil }), ErrClosed)
	mustFail(t, s.Update(func(w *Writer) error { return nil }), ErrClosed)
	if _, err := s.Info(); !errors.Is(err, ErrClosed) {
		t.Errorf("Info after Close: %v", err)
	}
	mustFail(t, s.CopyTo(t.TempDir()), ErrClosed)
	mustFail(t, s.CheckLength(), ErrClosed)
	openDir(t, s.Dir())
}

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

// TestCreateAtOnce: many databases made by goroutines that the scheduler moves
// from thread to thread; LMDB's write lock belongs to one.
func TestCreateAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 10 {
				dir := filepath.Join(t.TempDir(), "db")
				if err := Create(dir, Options{}); err != nil {
					t.Error(err)
					return
				}
				s, err := Open(dir, Options{})
				if err != nil {
					t.Error(err)
					return
				}
				if err := s.Update(putNodes(0, 10, 100)); err != nil {
					t.Error(err)
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
