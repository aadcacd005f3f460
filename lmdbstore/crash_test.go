package lmdbstore

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"bole/merkle"
)

// perStep is how many nodes the writing children put in one Update.
const perStep = 400

// step adds one to a counter and puts the nodes that belong to the new value.
func step(w *Writer) error {
	n, err := counter(w.Get(Refs, []byte("counter")))
	if err != nil {
		return err
	}
	if err := putNodes(int(n)*perStep, int(n+1)*perStep, 600)(w); err != nil {
		return err
	}
	return w.Put(Refs, []byte("counter"), binary.LittleEndian.AppendUint64(nil, n+1))
}

func counter(value []byte, err error) (uint64, error) {
	if err == ErrNotFound {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	return binary.LittleEndian.Uint64(value), nil
}

func init() {
	// Makes args[1] steps and prints the number of each.
	children["steps"] = func(args []string) int {
		s, err := Open(args[0], Options{})
		fatal(err)
		steps, err := strconv.Atoi(args[1])
		fatal(err)
		for i := range steps {
			fatal(s.Update(step))
			fmt.Println(i + 1)
		}
		fatal(s.Close())
		return 0
	}
}

// checkSteps checks that the database holds whole steps, exactly.
func checkSteps(t *testing.T, s *Store) (n uint64) {
	t.Helper()
	view(t, s, func(r *Reader) error {
		var err error
		if n, err = counter(r.Get(Refs, []byte("counter"))); err != nil {
			return err
		}
		if err := checkNodes(r, 0, int(n)*perStep, 600); err != nil {
			return err
		}
		if nodes, err := r.Entries(Nodes); nodes != n*perStep {
			t.Errorf("%d steps, but %d nodes, %v", n, nodes, err)
		}
		return nil
	})
	if err := s.Nodes(func(merkle.Key, []byte) error { return nil }); err != nil {
		t.Error(err)
	}
	return n
}

// TestKilledWriter: kill -9 at any moment leaves whole transactions, all that
// were reported, and no lock.
func TestKilledWriter(t *testing.T) {
	manyProcesses(t)
	dir := newDir(t)
	random := rand.New(rand.NewPCG(1, 2))
	last := uint64(0)
	for range 20 {
		cmd := childCommand(t, "steps", dir, "1000000")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		if !lines.Scan() {
			t.Fatal("child says nothing")
		}
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		reported := uint64(1)
		for lines.Scan() {
			reported++
		}
		cmd.Wait()
		s := openDir(t, dir)
		n := checkSteps(t, s)
		if n < last+reported || n > last+reported+1 {
			t.Errorf("%d steps after %d and %d reported ones", n, last, reported)
		}
		last = n
		update(t, s, step) // the write lock of the dead is free
		last++
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTwoProcessesWrite(t *testing.T) {
	manyProcesses(t)
	s := newStore(t)
	var running []*exec.Cmd
	for range 2 {
		cmd := childCommand(t, "steps", s.Dir(), "30")
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, cmd)
	}
	for range 30 {
		update(t, s, step)
		view(t, s, func(r *Reader) error {
			// A snapshot is consistent in the middle of all this.
			n, err := counter(r.Get(Refs, []byte("counter")))
			if nodes, _ := r.Entries(Nodes); nodes != n*perStep {
				t.Errorf("%d steps, but %d nodes", n, nodes)
			}
			return err
		})
	}
	for _, cmd := range running {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	if n := checkSteps(t, s); n != 90 {
		t.Errorf("%d steps of 90", n)
	}
}

func init() {
	// Opens the database, then makes one Update between two lines that a trace shows.
	children["one update"] = func(args []string) int {
		s, err := Open(args[0], Options{})
		fatal(err)
		nodes, err := strconv.Atoi(args[1])
		fatal(err)
		before := txnID2(s)
		os.Stderr.WriteString("begin of the update\n")
		fatal(s.Update(func(w *Writer) error {
			if err := w.Put(Refs, []byte("main"), []byte("x")); err != nil {
				return err
			}
			return putNodes(0, nodes, 900)(w)
		}))
		os.Stderr.WriteString("end of the update\n")
		if after := txnID2(s); after != before+1 {
			fatal(fmt.Errorf("transaction %d became %d", before, after))
		}
		fatal(s.Close())
		return 0
	}
}

// TestOneBarrier: an Update of any size flushes the file once and writes the
// root once through LMDB's descriptor for synchronous writes.
func TestOneBarrier(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("no strace here")
	}
	for _, nodes := range []int{1, 20_000} {
		trace := filepath.Join(t.TempDir(), "trace")
		cmd := childCommand(t, "one update", newDir(t), strconv.Itoa(nodes))
		cmd.Args = append([]string{strace, "-f", "-o", trace,
			"-e", "trace=fsync,fdatasync,syncfs,sync,sync_file_range,msync,openat,open,write,pwrite64", os.Args[0]}, cmd.Args[1:]...)
		cmd.Path = strace
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Skipf("strace does not work here: %v\n%s", err, out)
		}
		b, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		before, rest, _ := strings.Cut(string(b), "begin of the update")
		during, _, ok := strings.Cut(rest, "end of the update")
		fd := regexp.MustCompile(`data\.mdb", [A-Z_|]*O_DSYNC[A-Z_|]*\) = (\d+)`).FindStringSubmatch(before)
		if !ok || fd == nil {
			t.Fatalf("cannot read the trace:\n%s", b)
		}
		flushes := regexp.MustCompile(`\b(fsync|fdatasync|syncfs|sync|sync_file_range|msync)\(`).FindAllString(during, -1)
		roots := strings.Count(during, "pwrite64("+fd[1]+",")
		if len(flushes) != 1 || roots != 1 {
			t.Errorf("%d nodes: flushes %q, %d writes of the root", nodes, flushes, roots)
		}
	}
}
