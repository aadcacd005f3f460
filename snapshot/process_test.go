package snapshot

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"bole/merkle"
)

// holder is a child that holds something until it is let go or killed.
type holder struct {
	t   testing.TB
	cmd *exec.Cmd
	in  interface{ Close() error }
}

// startHolder waits until the child says that it holds it.
func startHolder(t testing.TB, name string, args ...string) *holder {
	t.Helper()
	cmd := child(t, name, args...)
	in, err := cmd.StdinPipe()
	ok(t, err)
	out, err := cmd.StdoutPipe()
	ok(t, err)
	cmd.Stderr = os.Stderr
	ok(t, cmd.Start())
	h := &holder{t, cmd, in}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "held\n" {
		t.Fatalf("the child says %q, %v", line, err)
	}
	return h
}

func (h *holder) letGo() {
	h.t.Helper()
	ok(h.t, h.in.Close())
	ok(h.t, h.cmd.Wait())
}

func (h *holder) kill() {
	h.t.Helper()
	ok(h.t, h.cmd.Process.Kill())
	h.cmd.Wait()
}

// TestLockNamesItsHolder: who waits is told for whom, and who stops waiting
// gets an error that says so; the holder's death ends it.
func TestLockNamesItsHolder(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	h := startHolder(t, "hold", w.root, "worktree.lock")
	want := fmt.Sprintf("process %d, bole ", h.cmd.Process.Pid)
	var told []string
	w.waiting = func(m string) { told = append(told, m) }
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	_, err := w.Add(short, AddOptions{})
	wantErr(t, err, ErrLocked, "worktree.lock", want)
	wantErr(t, err, context.DeadlineExceeded)
	if len(told) != 1 || !strings.Contains(told[0], want) {
		t.Fatalf("told %q", told)
	}
	for _, try := range []func() error{
		func() error { _, _, err := w.CommitStaged(short, Meta{}); return err },
		func() error { _, err := w.Update(short, CheckoutOptions{}); return err },
		func() error { _, err := w.Checkout(short, Revision{}, CheckoutOptions{}); return err },
	} {
		wantErr(t, try(), ErrLocked)
	}
	w.status() // readers wait for nobody
	_, err = w.Fsck(ctx, FsckOptions{Contents: true})
	ok(t, err)

	done := make(chan error)
	go func() { _, err := w.tryAdd(); done <- err }()
	time.Sleep(50 * time.Millisecond)
	h.kill() // leaves no lock
	ok(t, <-done)
	w.wantStaged("A f")

	again := startHolder(t, "hold", w.root, "worktree.lock")
	go func() { _, err := w.tryCommit("x"); done <- err }()
	time.Sleep(50 * time.Millisecond)
	again.letGo()
	ok(t, <-done)
}

// TestImportLock lets one import at a time go on from a record.
func TestImportLock(t *testing.T) {
	w := newWork(t)
	h := startHolder(t, "hold", w.root, "import.lock")
	short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
	defer cancel()
	_, err := w.Import(short, ImportOptions{Source: t.TempDir()})
	wantErr(t, err, ErrLocked, "import.lock", fmt.Sprint("process ", h.cmd.Process.Pid))
	w.write("f", "x")
	w.save("add and commit do not wait for imports")
}

// TestManyProcesses has several of them add, commit, look and check at once.
func TestManyProcesses(t *testing.T) {
	w := newWork(t)
	w.write("base", "x")
	w.save("base")
	var wg sync.WaitGroup
	run := func(name string, args ...string) {
		wg.Go(func() {
			if out, err := runChild(t, name, append([]string{w.root}, args...)...); err != nil {
				t.Errorf("%s %v: %v\n%s", name, args, err, out)
			}
		})
	}
	for i := range 3 {
		run("saves", fmt.Sprint("file", i))
	}
	for range 2 {
		run("status")
		run("fsck")
	}
	for range 10 {
		w.status()
		w.wantSound()
	}
	wg.Wait()
	w.wantClean()
	got := readCommitTree(t, w.Repo, w.head())
	for i := range 3 {
		p := fmt.Sprint("file", i)
		if got[p].Data != p+" 9" {
			t.Errorf("%s holds %q", p, got[p].Data)
		}
	}
	n := 0
	ok(t, w.Log(w.head(), func(merkle.Hash, *merkle.Commit) (bool, error) { n++; return true, nil }))
	if n < 11 || n > 31 {
		t.Errorf("%d commits", n)
	}
	w.wantSound()
}

// TestStatusBesideCommits never shows a file as changed that is not.
func TestStatusBesideCommits(t *testing.T) {
	w := newWork(t)
	for i := range 300 {
		w.write(fmt.Sprintf("d%d/f", i), "x")
	}
	w.save("first")
	stop := while(func(i int) {
		// Only this one file ever changes.
		if err := os.WriteFile(w.at("moving"), fmt.Append(nil, i), 0o644); err != nil {
			t.Error(err)
		}
		w.tryAdd("moving")
		w.tryCommit(fmt.Sprint(i))
	})
	for range rounds(40) {
		st, err := w.Status(ctx, StatusOptions{})
		if errors.Is(err, errBusy) {
			continue
		}
		ok(t, err)
		for _, c := range append(letters(st.Staged), append(letters(st.Unstaged), st.Untracked...)...) {
			if !strings.HasSuffix(c, "moving") {
				t.Fatalf("status lists %s", c)
			}
		}
	}
	stop()
}

// TestSharedRepository: a second user of the group goes on where the first was.
func TestSharedRepository(t *testing.T) {
	needRoot(t)
	dir := filepath.Join(t.TempDir(), "r")
	openUp(t, dir)
	ok(t, os.Mkdir(dir, 0o2775))
	ok(t, os.Chmod(dir, os.ModeSetgid|0o775))
	ok(t, os.Chown(dir, 0, nobody))
	ok(t, Init(dir, InitOptions{Shared: true}))
	w := openWork(t, dir)
	w.write("f", "1")
	w.save("as root") // makes every lock with root's umask
	ok(t, os.WriteFile(w.at("g"), []byte("2"), 0o664))
	for _, args := range [][]string{{"add"}, {"commit", "as nobody"}, {"status"}, {"fsck"}} {
		out, err := asNobody(child(t, args[0], append([]string{w.root}, args[1:]...)...)).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	w.wantClean()
	w.write("h", "3")
	w.save("as root again")
}
