package lmdbstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bole/merkle"
)

// theSentence is all that a process says when LMDB met a page it cannot live with.
const theSentence = "bole: database page unreadable, run bole fsck\n"

// mustSaySentence runs a child that is to end with the sentence, and nothing else.
func mustSaySentence(t *testing.T, mode string, args ...string) {
	t.Helper()
	status, stdout, stderr := runChild(t, mode, args...)
	if status != 1 || stderr != theSentence {
		t.Errorf("%s: status %d\nstdout: %s\nstderr: %s", mode, status, stdout, stderr)
	}
}

// filledDir returns a closed database with nodes 0..n-1.
func filledDir(t testing.TB, n, size int) string {
	t.Helper()
	s := newStore(t)
	update(t, s, putNodes(0, n, size))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return s.Dir()
}

func init() {
	// Cuts the file off under the open database and then reads nodes.
	children["cutthenread"] = func(args []string) int {
		s, err := Open(args[0], Options{})
		fatal(err)
		fatal(s.View(func(r *Reader) error { return nil }))
		fatal(os.Truncate(s.dataFile(), 2*int64(s.pageSize)))
		fatal(s.View(func(r *Reader) error { return checkNodes(r, 0, 100, 900) }))
		return 0
	}
	children["cutthenscan"] = func(args []string) int {
		s, err := Open(args[0], Options{})
		fatal(err)
		fatal(s.View(func(r *Reader) error { return nil }))
		fatal(os.Truncate(s.dataFile(), 2*int64(s.pageSize)))
		fatal(s.Nodes(func(merkle.Key, []byte) error { return nil }))
		return 0
	}
	children["open and read"] = func(args []string) int {
		s, err := Open(args[0], Options{})
		fatal(err)
		fatal(s.View(func(r *Reader) error { return checkNodes(r, 0, 100, 900) }))
		return 0
	}
	// A fault in Go code, with the handler of C in place.
	children["gofault"] = func(args []string) int {
		s, err := Open(args[0], Options{})
		fatal(err)
		func() {
			defer func() { fmt.Println("recovered:", recover()) }()
			var p *[1 << 20]byte
			p[len(args)]++
		}()
		s.View(func(r *Reader) error {
			var p *int
			*p = 1
			return nil
		})
		return 0
	}
}

func TestFileCutOffUnderAReader(t *testing.T) {
	mustSaySentence(t, "cutthenread", filledDir(t, 2000, 900))
	mustSaySentence(t, "cutthenscan", filledDir(t, 2000, 900))
}

// TestFailedAssertion: LMDB asserts that a branch page has two records.
func TestFailedAssertion(t *testing.T) {
	dir := filledDir(t, 2000, 900)
	path := filepath.Join(dir, "data.mdb")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for at := 2 * 4096; at < len(b); at += 4096 {
		if page := rawPage(b[at : at+4096]); page.flags() == pageBranch {
			binary.LittleEndian.PutUint16(page[12:], pageHeader+2)
		}
	}
	if err := os.WriteFile(path, b, 0o666); err != nil {
		t.Fatal(err)
	}
	mustSaySentence(t, "open and read", dir)
}

func TestFaultInGoStaysAPanic(t *testing.T) {
	status, stdout, stderr := runChild(t, "gofault", newDir(t))
	if !strings.Contains(stdout, "recovered: runtime error: invalid memory address") {
		t.Errorf("stdout: %s", stdout)
	}
	if status != 2 || !strings.Contains(stderr, "panic: runtime error: invalid memory address") ||
		!strings.Contains(stderr, "fault_test.go") {
		t.Errorf("status %d, stderr: %s", status, stderr)
	}
}

// TestLentBytesUnreadable: a page goes bad between the moment LMDB finds a
// value and the moment that the caller reads it.
func TestLentBytesUnreadable(t *testing.T) {
	if invariants {
		t.Skip("lends copies in this build")
	}
	s := newStore(t)
	update(t, s, putNodes(0, 20, 20_000))
	h, _ := testNode(3, 20_000)
	read := func(node func() ([]byte, error)) error {
		b, err := node()
		if err != nil {
			return err
		}
		cutOff(t, s)
		sum := 0
		for _, c := range b {
			sum += int(c)
		}
		return fmt.Errorf("read all, sum %d", sum)
	}
	mustFail(t, s.View(func(r *Reader) error {
		return read(func() ([]byte, error) { return r.Get(Nodes, h[:nodeKeySize]) })
	}), ErrPageUnreadable, s.dataFile())
	// A panic of the caller's own goes on as it is.
	boom := errors.New("boom")
	defer func() {
		if p := recover(); p != boom {
			t.Errorf("recovered %v", p)
		}
	}()
	s.checked.Store(txnID2(s) + 1)
	s.View(func(r *Reader) error { panic(boom) })
}

// txnID2 returns the last transaction's number without looking at pages.
func txnID2(s *Store) uint64 {
	info, err := s.env.Info()
	if err != nil {
		panic(err)
	}
	return uint64(info.LastTxnID)
}

// cutOff leaves the two meta pages of an open database.
func cutOff(t testing.TB, s *Store) {
	t.Helper()
	if err := os.Truncate(s.dataFile(), 2*int64(s.pageSize)); err != nil {
		t.Fatal(err)
	}
}

func TestCutOffFileIsAnError(t *testing.T) {
	dir := filledDir(t, 200, 900)
	whole, err := os.ReadFile(filepath.Join(dir, "data.mdb"))
	if err != nil {
		t.Fatal(err)
	}
	lengths := []int{1, 100, 4095, 4096, 4097, 8191, 8192, 8193, len(whole) - 1}
	for at := 3 * 4096; at < len(whole); at += 4096 {
		lengths = append(lengths, at)
	}
	for _, n := range lengths {
		cut := filepath.Join(t.TempDir(), "db")
		if err := os.Mkdir(cut, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(cut, "data.mdb"), whole[:n], 0o666); err != nil {
			t.Fatal(err)
		}
		_, err := Open(cut, Options{})
		mustFail(t, err, ErrPageUnreadable, cut)
		if st, err := os.Stat(filepath.Join(cut, "data.mdb")); err != nil || st.Size() != int64(n) {
			t.Errorf("%d bytes have become %d", n, st.Size())
		}
	}
}

func TestLengthIsCheckedForEachSnapshot(t *testing.T) {
	s := newStore(t)
	update(t, s, putNodes(0, 200, 900))
	view(t, s, func(r *Reader) error { return nil })
	cutOff(t, s)
	mustFail(t, s.Update(func(w *Writer) error { return nil }), ErrPageUnreadable, s.dataFile())
	mustFail(t, s.CheckLength(), ErrPageUnreadable, s.dataFile())
	s.checked.Store(0) // as watchReaders does each minute
	mustFail(t, s.View(func(r *Reader) error { return nil }), ErrPageUnreadable, s.dataFile())
}
