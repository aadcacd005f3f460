package snapshot

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"testing"
	"time"

	"bole/merkle"
)

// while runs fn again and again until the returned function is called.
func while(fn func(i int)) (stop func()) {
	var wg sync.WaitGroup
	quit := make(chan struct{})
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-quit:
				return
			default:
				fn(i)
			}
		}
	})
	return func() { close(quit); wg.Wait() }
}

// checkStored holds what was recorded of a path to its own hash.
func (w *work) checkStored(path string) {
	w.t.Helper()
	if h := w.indexHash(path); !h.IsZero() {
		ok(w.t, w.VerifyContent(h))
	}
}

// TestFileChangesWhileItIsAdded: what is stored always has its hash, or the file is named.
func TestFileChangesWhileItIsAdded(t *testing.T) {
	const size = 24 << 20
	for name, change := range map[string]func(f *os.File, i int){
		"rewritten": func(f *os.File, i int) {
			f.WriteAt(bytes.Repeat([]byte{byte(i)}, 1<<20), size/2+int64(rand.IntN(size/2-1<<20)))
		},
		"truncated": func(f *os.File, i int) { f.Truncate(int64(size - i%2*size/3)) },
		"appended":  func(f *os.File, i int) { f.WriteAt([]byte("line\n"), size+int64(i)*5) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			w.write("big", string(bytes.Repeat([]byte("0123456789abcdef"), size/16)))
			w.write("small", "x")
			f, err := os.OpenFile(w.at("big"), os.O_RDWR, 0)
			ok(t, err)
			defer f.Close()
			stop := while(func(i int) { change(f, i); time.Sleep(100 * time.Microsecond) })
			_, err = w.tryAdd()
			stop()
			if err != nil {
				wantErr(t, err, ErrUnreadable, `"big"`)
			}
			w.checkStored("big")
			if w.indexHash("small") != merkle.ContentHash([]byte("x")) {
				t.Fatal("the other file was not recorded")
			}
			w.add() // at rest it is as any other
			w.commit("at rest")
			w.wantClean()
			w.wantSound()
		})
	}
}

// TestLogIsAppendedTo adds a small file that never rests.
func TestLogIsAppendedTo(t *testing.T) {
	w := newWork(t)
	w.write("log", "")
	f, err := os.OpenFile(w.at("log"), os.O_WRONLY|os.O_APPEND, 0)
	ok(t, err)
	defer f.Close()
	stop := while(func(i int) { fmt.Fprintln(f, i) })
	for range 20 {
		if _, err := w.tryAdd(); err != nil {
			wantErr(t, err, ErrUnreadable, `"log"`)
		}
		w.checkStored("log")
	}
	stop()
	w.save("at rest")
	w.wantClean()
	w.wantSound()
}

// TestNamesComeAndGoWhileTheyAreAdded: nothing breaks, and what was recorded can be read.
func TestNamesComeAndGoWhileTheyAreAdded(t *testing.T) {
	w := newWork(t)
	for i := range 200 {
		w.write(fmt.Sprintf("d%d/f", i%20), "x")
	}
	kinds := []func(p string){
		func(p string) { os.WriteFile(p, []byte(p), 0o644) },
		func(p string) { os.Mkdir(p, 0o755); os.WriteFile(p+"/in", nil, 0o644) },
		func(p string) { os.Symlink("/etc/passwd", p) },
		func(p string) { os.Rename(p, p+"x"); os.RemoveAll(p + "x") },
	}
	stop := while(func(i int) {
		p := w.at(fmt.Sprintf("d%d/%d", rand.IntN(20), rand.IntN(10)))
		if rand.IntN(2) == 0 {
			os.RemoveAll(p)
		}
		kinds[rand.IntN(len(kinds))](p)
	})
	for range rounds(100) {
		if _, err := w.tryAdd(); err != nil {
			wantErr(t, err, ErrUnreadable)
		}
		if _, err := w.Status(ctx, StatusOptions{}); err != nil {
			wantErr(t, err, ErrUnreadable)
		}
		if _, err := w.tryCommit("meanwhile"); err != nil {
			wantErr(t, err, ErrNothing)
		}
	}
	stop()
	w.add()
	w.tryCommit("at rest")
	w.wantClean()
	w.wantSound()
	head, err := w.Head()
	ok(t, err)
	if left := readCommitTree(t, w.Repo, head.Commit).changesTo(readDisk(t, w.root), true); len(left) > 0 {
		t.Fatalf("at rest the commit differs from the disk: %q", left)
	}
}
