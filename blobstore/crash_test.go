package blobstore

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bole/merkle"
)

const childEnv = "BLOBSTORE_CRASH_CHILD"

// journalName is the child's database: a line "begin", one line for each record and pack end, a
// line "commit". What is not followed by its "commit" does not count.
const journalName = "journal"

func loadJournal(path string) (*table, error) {
	tab := newTable()
	b, err := os.ReadFile(path)
	if os.IsNotExist(err) {
		return tab, nil
	} else if err != nil {
		return nil, err
	}
	var recs []Record
	var ends []PackEnd
	for line := range strings.Lines(string(b)) {
		var hex string
		var l Location
		var e PackEnd
		if n, _ := fmt.Sscanf(line, "record %s %d %d %d\n", &hex, &l.Pack, &l.Offset, &l.Length); n == 4 {
			h, err := merkle.ParseHash(hex)
			if err != nil {
				return nil, err
			}
			recs = append(recs, Record{h, l})
		} else if n, _ := fmt.Sscanf(line, "end %d %d\n", &e.Pack, &e.End); n == 2 {
			ends = append(ends, e)
		} else if line == "begin\n" {
			recs, ends = nil, nil
		} else if line == "commit\n" {
			tab.commit(recs, ends)
			recs, ends = nil, nil
		}
	}
	return tab, nil
}

func appendJournal(path string, recs []Record, ends []PackEnd) error {
	var b strings.Builder
	b.WriteString("\nbegin\n") // the last line may be torn
	for _, r := range recs {
		fmt.Fprintf(&b, "record %s %d %d %d\n", r.Hash, r.Location.Pack, r.Location.Offset, r.Location.Length)
	}
	for _, e := range ends {
		fmt.Fprintf(&b, "end %d %d\n", e.Pack, e.End)
	}
	b.WriteString("commit\n")
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(b.String()); err != nil {
		return err
	}
	return f.Close()
}

// crashChild stores random contents, from several goroutines, until it is killed. It says when it
// has begun.
func crashChild(dir string) {
	if err := crashWork(dir); err != nil {
		fmt.Println("failed:", err)
		os.Exit(3)
	}
	os.Exit(0)
}

func crashWork(dir string) error {
	tab, err := loadJournal(filepath.Join(dir, journalName))
	if err != nil {
		return err
	}
	s, err := Open(filepath.Join(dir, "contents"), Options{})
	if err != nil {
		return err
	}
	s.packSize = 4 << 20
	b, err := s.Begin(tab.index, tab.packEnd)
	if err != nil {
		return err
	}
	fmt.Println("begun")
	failed := make(chan error, 3)
	var once sync.Once
	for range 2 {
		go func() { failed <- crashPut(b, dir) }()
	}
	go func() {
		for {
			recs, ends, err := b.Sync()
			if err == nil {
				err = appendJournal(filepath.Join(dir, journalName), recs, ends)
			}
			if err != nil {
				failed <- err
				return
			}
			tab.commit(recs, ends)
			if len(recs) > 0 {
				once.Do(func() { fmt.Println("committed") })
			}
			time.Sleep(time.Millisecond)
		}
	}()
	return <-failed
}

// crashPut puts small contents, and now and then a whole file, copied or linked.
func crashPut(b *Batch, dir string) error {
	for {
		switch n := rand.IntN(20); n {
		case 0, 1:
			f, err := os.CreateTemp(dir, "source")
			if err != nil {
				return err
			}
			if _, err := f.Write(content(rand.Uint64N(1000), DefaultLimit+rand.IntN(100<<10))); err != nil {
				return err
			}
			f.Close()
			if f, err = os.Open(f.Name()); err != nil {
				return err
			}
			if n == 0 {
				_, _, err = b.PutFile(f, f.Name())
			} else {
				_, _, _, err = b.LinkFile(f, f.Name())
			}
			if err != nil {
				return err
			}
			f.Close()
			if err := os.Remove(f.Name()); err != nil {
				return err
			}
		default:
			if _, err := b.PutBytes(content(rand.Uint64N(100000), rand.IntN(20000))); err != nil {
				return err
			}
		}
	}
}

// TestKilledWriterLosesNothing kills a writer at random points, again and again on one store:
// everything that a committed journal names is there and right, and the next writer goes on.
func TestKilledWriterLosesNothing(t *testing.T) {
	dir := t.TempDir()
	s := createAt(t, filepath.Join(dir, "contents"))
	committed := 0
	for round := range 12 {
		// Every other time the writer gets as far as a commit first, so that slow machines test
		// something too.
		line := []string{"begun\n", "committed\n"}[round%2]
		runAndKill(t, dir, line, time.Duration(rand.IntN(60))*time.Millisecond)
		tab, err := loadJournal(filepath.Join(dir, journalName))
		check(t, err)
		if n := len(tab.all()); n < committed {
			t.Fatalf("round %d: %d contents, before there were %d", round, n, committed)
		} else {
			committed = n
		}
		b, err := s.Begin(tab.index, tab.packEnd)
		check(t, err)
		if left := names(t, s, tmpDir); len(left) != 0 {
			t.Errorf("round %d: Begin left %v", round, left)
		}
		h := putOne(t, b, 1<<40+uint64(round), 3000)
		recs, ends, err := b.Sync()
		check(t, err)
		check(t, appendJournal(filepath.Join(dir, journalName), recs, ends))
		tab.commit(recs, ends)
		check(t, b.Close())
		verifyAll(t, s, tab)
		wantContent(t, s, tab, h, content(1<<40+uint64(round), 3000))
		check(t, s.Scan(ScanOptions{Contents: true, PackEnd: tab.packEnd}, func(f Found) error { return f.Err }))
	}
	if committed < 12 {
		t.Errorf("only %d contents were committed: the test shows nothing", committed)
	}
}

// runAndKill starts a child and kills it some time after it said the line.
func runAndKill(t *testing.T, dir, line string, after time.Duration) {
	t.Helper()
	exe, err := os.Executable()
	check(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), childEnv+"="+dir)
	out, err := cmd.StdoutPipe()
	check(t, err)
	check(t, cmd.Start())
	r := bufio.NewReader(out)
	for got := ""; got != line; {
		if got, err = r.ReadString('\n'); err != nil {
			t.Fatalf("child ended: %q, %v", got, err)
		}
	}
	time.Sleep(after)
	check(t, cmd.Process.Kill())
	rest, err := io.ReadAll(r)
	check(t, err)
	cmd.Wait() // killed: its error says so
	if strings.Contains(string(rest), "failed") {
		t.Errorf("child says %q", rest)
	}
}
