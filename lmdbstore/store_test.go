package lmdbstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

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
