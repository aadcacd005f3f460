package lmdbstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"bole/merkle"
)

// What a child that works on a damaged database may end with.
const (
	statusRight    = 0
	statusSentence = 1
	statusError    = 4
	statusWrong    = 5
)

var errWrong = errors.New("wrong answer")

const (
	flipNodes = 2000
	flipSize  = 700
)

func init() {
	for mode, work := range map[string]func(dir string) error{
		"flip read": readAll,
		"flip write": func(dir string) error {
			if err := writeSome(dir); err != nil {
				return err
			}
			return readAll(dir)
		},
		"flip check": func(dir string) error {
			if err := CheckFile(dir, Options{}, func(d Damage) error { return errors.New(d.String()) }); err != nil {
				return err
			}
			return readAll(dir)
		},
	} {
		children[mode] = func(args []string) int {
			err := work(args[0])
			switch {
			case err == nil:
				return statusRight
			case errors.Is(err, errWrong):
				fmt.Println(err)
				return statusWrong
			}
			fmt.Println(err)
			return statusError
		}
	}
}

// readAll reads everything in a database that may be damaged anywhere.
func readAll(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	if _, err := s.Info(); err != nil {
		return err
	}
	seen := 0
	if err := s.Nodes(func(merkle.Key, []byte) error { seen++; return nil }); err != nil {
		return err
	}
	err = s.View(func(r *Reader) error {
		for _, table := range Tables() {
			var last []byte
			if err := r.Scan(table, nil, nil, func(k, v []byte) error {
				last = append(append(last[:0], k...), v...) // touches every byte
				return nil
			}); err != nil {
				return err
			}
		}
		return checkNodes(r, 0, flipNodes, flipSize)
	})
	if err == nil && seen < flipNodes {
		return fmt.Errorf("%w: %d nodes", errWrong, seen)
	}
	return err
}

// writeSome changes most tables of a database that may be damaged anywhere.
func writeSome(dir string) error {
	s, err := Open(dir, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	for round := range 3 {
		if err := s.Update(func(w *Writer) error {
			for i := range 100 {
				key := fmt.Appendf(nil, "blob %d", i)
				if err := errors.Join(
					w.Put(Stage, key, make([]byte, 50)),
					w.Put(Blobs, key, make([]byte, 60)),
					w.Delete(Blobs, fmt.Appendf(nil, "blob %d", 2*i))); err != nil {
					return err
				}
			}
			return putNodes(flipNodes+100*round, flipNodes+100*round+100, flipSize)(w)
		}); err != nil {
			return err
		}
	}
	return nil
}

// flipDatabase returns the bytes of a database of flipNodes nodes.
func flipDatabase(t *testing.T) []byte {
	t.Helper()
	s := newStore(t)
	update(t, s, putNodes(0, flipNodes/2, flipSize))
	update(t, s, func(w *Writer) error {
		for i := range 300 {
			if err := w.Put(Blobs, fmt.Appendf(nil, "blob %d", i), make([]byte, 50)); err != nil {
				return err
			}
		}
		return putNodes(flipNodes/2, flipNodes, flipSize)(w)
	})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(s.Dir(), "data.mdb"))
	if err != nil {
		t.Fatal(err)
	}
	return whole
}

// TestFlippedBytes: one byte of the database is inverted. Whatever it is, a
// process that reads or changes everything gives the right answer, an error or
// the sentence, and ends; and one that checks the pages first never says the
// sentence.
func TestFlippedBytes(t *testing.T) {
	manyProcesses(t)
	whole := flipDatabase(t)
	offsets := []int{16, 4096 + 16, 8192 + 12}
	spread := 50
	if raceEnabled {
		spread = 8
	}
	for i := range spread {
		// Spread over the file, three quarters of them in page headers and slots.
		at := len(whole) / spread * i
		if i%4 != 0 {
			at = at/4096*4096 + (7*i)%40
		}
		offsets = append(offsets, at)
	}
	count := map[string]int{}
	for i, at := range offsets {
		for _, mode := range []string{"flip read", "flip write", "flip check"} {
			if mode == "flip write" && i%3 != 0 {
				continue
			}
			b := bytes.Clone(whole)
			b[at] ^= 0xFF
			status, stdout, stderr := runChild(t, mode, writeDatabase(t, b))
			switch {
			case status == statusRight && stderr == "":
				count[mode+": right"]++
			case status == statusError && stderr == "" && stdout != "":
				count[mode+": error"]++
			case status == statusSentence && stderr == theSentence && mode != "flip check":
				count[mode+": sentence"]++
			default:
				t.Errorf("%s, byte %d: status %d\nstdout: %s\nstderr: %s", mode, at, status, stdout, stderr)
			}
		}
	}
	t.Logf("outcomes: %v", count)
	if count["flip read: error"] == 0 || count["flip write: error"] == 0 || count["flip check: error"] < count["flip read: error"] {
		t.Error("damage was not noticed: this test cannot fail")
	}
}
