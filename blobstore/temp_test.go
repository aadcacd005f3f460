package blobstore

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestBeginSweepsTheDeadOnly: files of a living batch stay, those of dead owners and without an
// owner go, others are none of the store's business.
func TestBeginSweepsTheDeadOnly(t *testing.T) {
	s, tab := newStore(t), newTable()
	live := begin(t, s, tab)
	putLargeOnes(t, live, 1, 2)
	before := names(t, s, tmpDir)
	if len(before) != 3 {
		t.Fatalf("tmp holds %v, want two files and a lock", before)
	}
	dead, orphan := strings.Repeat("d", 32), strings.Repeat("0", 32)
	foreign := []string{"note", "x-1", "ab.lock", strings.Repeat("g", 32) + "-1"}
	for _, name := range append(foreign, dead+".lock", dead+"-1", dead+"-2", orphan+"-7") {
		check(t, os.WriteFile(filepath.Join(s.dir, tmpDir, name), []byte("x"), 0o600))
	}
	other := reopen(t, s.dir)
	begin(t, other, tab)
	got := names(t, s, tmpDir)
	want := append(before, foreign...)
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("after Begin tmp holds\n%v, want\n%v", got, want)
	}
	syncCommit(t, live, tab)
	verifyAll(t, s, tab)
}

// TestSweeperAgainstNewOwner: an owner whose lock file was swept away before it could lock it takes
// another name.
func TestSweeperAgainstNewOwner(t *testing.T) {
	s := newStore(t)
	stop, done := make(chan struct{}), make(chan error, 1)
	go func() {
		for {
			select {
			case <-stop:
				done <- nil
				return
			default:
			}
			if err := s.sweepTemps(); err != nil {
				done <- err
				return
			}
		}
	}()
	for range 100 {
		o := tempOwner{s: s}
		w, err := o.create("source")
		check(t, err)
		if ok, err := stillAt(o.lock, o.lock.Name()); !ok || err != nil {
			t.Fatalf("a living owner's lock file is gone: %v", err)
		}
		if ok, err := stillAt(w.f, w.temp); !ok || err != nil {
			t.Fatalf("a living owner's file is gone: %v", err)
		}
		check(t, w.discard())
		check(t, o.close())
	}
	close(stop)
	check(t, <-done)
	if left := names(t, s, tmpDir); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

func TestLockFileThatIsNone(t *testing.T) {
	s := newStore(t)
	path := filepath.Join(s.dir, tmpDir, strings.Repeat("a", 32)+lockSuffix)
	check(t, unix.Mkfifo(path, 0o600))
	if err := s.sweepTemps(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a FIFO as lock file: %v", err)
	}
}
