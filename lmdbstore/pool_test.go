package lmdbstore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"bole/merkle"
)

func TestViewAllocatesNothing(t *testing.T) {
	if invariants {
		t.Skip("lends copies in this build")
	}
	s := newStore(t)
	update(t, s, func(w *Writer) error {
		if err := w.Put(Refs, []byte("main"), []byte("x")); err != nil {
			return err
		}
		return putNodes(0, 100, 900)(w)
	})
	h, _ := testNode(5, 900)
	key := []byte("main")
	var n int
	once := func() {
		err := s.View(func(r *Reader) error {
			b, err := r.Node(&h)
			if err != nil {
				return err
			}
			v, err := r.Get(Refs, key)
			n += len(b) + len(v)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	once()
	if allocs := testing.AllocsPerRun(200, once); allocs != 0 {
		t.Errorf("a View with Node and Get makes %v allocations", allocs)
	}
}

// readersInUse returns the number of reader slots in use, dead ones cleared.
func readersInUse(t testing.TB, s *Store) int {
	t.Helper()
	s.clearDeadReaders()
	info, err := s.Info()
	if err != nil {
		t.Fatal(err)
	}
	return info.Readers
}

func TestPoolIsBounded(t *testing.T) {
	s := newStore(t)
	for round := range 3 {
		const views = 3 * poolSize
		var inside, all sync.WaitGroup
		inside.Add(views)
		leave := make(chan struct{})
		for range views {
			all.Go(func() {
				if err := s.View(func(r *Reader) error {
					inside.Done()
					<-leave
					return nil
				}); err != nil {
					t.Error(err)
				}
			})
		}
		inside.Wait()
		if n := readersInUse(t, s); n < views {
			t.Errorf("%d views, but %d slots", views, n)
		}
		close(leave)
		all.Wait()
		if n := readersInUse(t, s); n != poolSize {
			t.Errorf("round %d: %d slots remain, want %d", round, n, poolSize)
		}
	}
	for range 10 * poolSize {
		view(t, s, func(r *Reader) error { return nil })
	}
	if n := readersInUse(t, s); n != poolSize {
		t.Errorf("%d slots after views one by one", n)
	}
}

func TestReadersFull(t *testing.T) {
	s := newStore(t)
	info, err := s.Info()
	if err != nil {
		t.Fatal(err)
	}
	var nest func(left int) error
	nest = func(left int) error {
		if left == 0 {
			return nil
		}
		return s.View(func(r *Reader) error { return nest(left - 1) })
	}
	if info.MaxReader < 1024 {
		t.Errorf("only %d reader slots", info.MaxReader)
	}
	mustFail(t, nest(info.MaxReader+1), ErrReadersFull, s.Dir())
	if err := nest(100); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func init() {
	// Opens the database, says so from inside a View, and stays there until
	// its input ends.
	children["reader"] = func(args []string) int {
		s, err := Open(args[0], Options{})
		fatal(err)
		fatal(s.View(func(r *Reader) error {
			if err := checkNodes(r, 0, 10, 400); err != nil {
				return err
			}
			fmt.Println("inside")
			_, err := io.Copy(io.Discard, os.Stdin)
			return err
		}))
		fatal(s.Close())
		return 0
	}
}

// insideChild is a process inside a View.
type insideChild struct {
	cmd  *exec.Cmd
	stop io.Closer
}

// startInside starts n processes, all of them inside a View when it returns.
func startInside(t *testing.T, dir string, n int) []insideChild {
	t.Helper()
	var running []insideChild
	var outs []io.Reader
	for range n {
		cmd := childCommand(t, "reader", dir)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		running = append(running, insideChild{cmd, in})
		outs = append(outs, out)
	}
	for _, out := range outs {
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "inside\n" {
			t.Fatalf("child says %q, %v", line, err)
		}
	}
	return running
}

func TestKilledReadersLeaveNoSlots(t *testing.T) {
	manyProcesses(t)
	s := newStore(t)
	update(t, s, putNodes(0, 10, 400))
	for range 6 {
		running := startInside(t, s.Dir(), 25)
		for _, c := range running {
			if err := c.cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		for _, c := range running {
			c.cmd.Wait()
		}
	}
	dir := s.Dir()
	if n := readersInUse(t, s); n > poolSize {
		t.Errorf("%d slots in use after 150 killed readers", n)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// Open clears them too.
	for _, c := range startInside(t, dir, 5) {
		c.cmd.Process.Kill()
		c.cmd.Wait()
	}
	s = openDir(t, dir)
	if info, err := s.Info(); err != nil || info.Readers > 2 {
		t.Errorf("%d slots after Open, %v", info.Readers, err)
	}
}

func TestManyProcessesAtOnce(t *testing.T) {
	manyProcesses(t)
	s := newStore(t)
	update(t, s, putNodes(0, 10, 400))
	n := 160
	if raceEnabled {
		n = 40
	}
	running := startInside(t, s.Dir(), n)
	if in := readersInUse(t, s); in < n {
		t.Errorf("%d slots for %d readers", in, n)
	}
	update(t, s, putNodes(10, 20, 400)) // readers do not hold up a writer
	for _, c := range running {
		c.stop.Close()
		if err := c.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// growth runs 200 Updates that each replace the same 50 records and returns
// by how many pages the database has grown.
func growth(t *testing.T, s *Store) uint64 {
	t.Helper()
	write := func(round int) {
		update(t, s, func(w *Writer) error {
			for i := range 50 {
				if err := w.Put(Stage, fmt.Appendf(nil, "key %d", i), make([]byte, 1000+round%10)); err != nil {
					return err
				}
			}
			return nil
		})
	}
	for round := range 5 {
		write(round)
	}
	before, err := s.Info()
	if err != nil {
		t.Fatal(err)
	}
	for round := range 200 {
		write(round)
	}
	after, err := s.Info()
	if err != nil {
		t.Fatal(err)
	}
	return after.LastPage - before.LastPage
}

func TestIdleReadersPinNothing(t *testing.T) {
	plain := growth(t, newStore(t))

	idle := newStore(t)
	h := merkle.Hash{}
	for range 10 {
		idle.View(func(r *Reader) error {
			return idle.View(func(r *Reader) error { _, err := r.Node(&h); return err })
		})
	}
	withIdle := growth(t, idle)

	pinned := newStore(t)
	var withReader uint64
	view(t, pinned, func(r *Reader) error {
		withReader = growth(t, pinned)
		return nil
	})
	t.Logf("growth in pages: alone %d, with idle readers %d, with a reader inside a View %d", plain, withIdle, withReader)
	if withIdle > plain+20 {
		t.Errorf("idle readers: %d pages, without %d", withIdle, plain)
	}
	if withReader < 10*(plain+20) {
		t.Errorf("a running reader pins nothing (%d pages): this test cannot fail", withReader)
	}
}

func TestSamePID(t *testing.T) {
	dir := newDir(t)
	// Another process holds the byte that stands for our PID in the lock file,
	// as a process with the same PID in another container would.
	cmd := childCommand(t, "lockpid", dir, fmt.Sprint(os.Getpid()))
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "locked\n" {
		t.Fatalf("child says %q", line)
	}
	_, err = Open(dir, Options{})
	mustFail(t, err, ErrSamePID, dir)
	// A child has another PID.
	if status, stdout, stderr := runChild(t, "open", dir, "write"); status != 0 {
		t.Errorf("child: %s%s", stdout, stderr)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	openDir(t, dir)
}

func TestErrorsNameTheDatabase(t *testing.T) {
	s := newStore(t)
	for _, err := range []error{
		s.wrap("read", errors.New("something")), s.unreadable("reading"),
	} {
		if !strings.Contains(err.Error(), s.dataFile()) {
			t.Errorf("%v", err)
		}
	}
	if s.wrap("read", nil) != nil {
		t.Error("no error became one")
	}
}
