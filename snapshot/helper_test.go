package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

var ctx = context.Background()

// tb is what testing.T and rapid.T have in common here.
type tb interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
	Errorf(format string, args ...any)
	Logf(format string, args ...any)
}

func ok(t tb, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErr fails unless err matches target and, where given, names all of the texts.
func wantErr(t tb, err, target error, texts ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error %v, want one that is %v", err, target)
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Fatalf("error %q does not name %q", err, s)
		}
	}
}

// work is a repository with a working directory.
type work struct {
	t tb
	*Repo
}

func newWork(t testing.TB, o ...InitOptions) *work {
	t.Helper()
	return openWork(t, initWork(t, o...))
}

// initWork makes a repository and returns its root.
func initWork(t testing.TB, o ...InitOptions) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "r")
	var opts InitOptions
	if len(o) > 0 {
		opts = o[0]
	}
	ok(t, Init(dir, opts))
	return dir
}

func openWork(t testing.TB, root string) *work {
	t.Helper()
	r, err := Open(root, OpenOptions{})
	ok(t, err)
	t.Cleanup(func() { ok(t, r.Close()) })
	return &work{t, r}
}

// at is a path on disk.
func (w *work) at(path string) string { return filepath.Join(w.root, path) }

// write makes a file and the directories around it.
func (w *work) write(path, data string) {
	w.t.Helper()
	ok(w.t, os.MkdirAll(filepath.Dir(w.at(path)), 0o755))
	ok(w.t, os.WriteFile(w.at(path), []byte(data), 0o644))
}

func (w *work) mkdir(path string) {
	w.t.Helper()
	ok(w.t, os.MkdirAll(w.at(path), 0o755))
}

func (w *work) link(path, target string) {
	w.t.Helper()
	ok(w.t, os.Symlink(target, w.at(path)))
}

func (w *work) remove(path string) {
	w.t.Helper()
	ok(w.t, os.RemoveAll(w.at(path)))
}

func (w *work) chmod(path string, mode os.FileMode) {
	w.t.Helper()
	ok(w.t, os.Chmod(w.at(path), mode))
}

// touch sets a time, of a link itself too.
func (w *work) touch(path string, ns int64) {
	w.t.Helper()
	ok(w.t, unix.UtimesNanoAt(unix.AT_FDCWD, w.at(path), mtimeSpec(ns), unix.AT_SYMLINK_NOFOLLOW))
}

func (w *work) read(path string) string {
	w.t.Helper()
	b, err := os.ReadFile(w.at(path))
	ok(w.t, err)
	return string(b)
}

// tryAdd records paths; none: everything.
func (w *work) tryAdd(paths ...string) (AddResult, error) {
	return w.Add(ctx, AddOptions{Paths: paths})
}

func (w *work) add(paths ...string) AddResult {
	w.t.Helper()
	res, err := w.tryAdd(paths...)
	ok(w.t, err)
	return res
}

func (w *work) tryCommit(message string) (merkle.Hash, error) {
	id, _, err := w.CommitStaged(ctx, Meta{Message: message})
	return id, err
}

func (w *work) commit(message string) merkle.Hash {
	w.t.Helper()
	id, err := w.tryCommit(message)
	ok(w.t, err)
	return id
}

// save adds everything and commits.
func (w *work) save(message string) merkle.Hash {
	w.t.Helper()
	w.add()
	return w.commit(message)
}

func (w *work) status(paths ...string) *Status {
	w.t.Helper()
	st, err := w.Status(ctx, StatusOptions{Paths: paths})
	ok(w.t, err)
	return st
}

// wantClean fails unless there is nothing to add and nothing to commit.
func (w *work) wantClean() {
	w.t.Helper()
	if st := w.status(); !st.Clean() {
		w.t.Fatalf("status is not clean: staged %v, unstaged %v, untracked %q", letters(st.Staged), letters(st.Unstaged), st.Untracked)
	}
}

func (w *work) checkout(rev string, force ...bool) (CheckoutResult, error) {
	w.t.Helper()
	r, err := w.Resolve(rev)
	ok(w.t, err)
	return w.Checkout(ctx, r, CheckoutOptions{Force: len(force) > 0 && force[0]})
}

// mustCheckout checks out without a complaint.
func (w *work) mustCheckout(rev string, force ...bool) {
	w.t.Helper()
	_, err := w.checkout(rev, force...)
	ok(w.t, err)
}

func (w *work) lastTxn() uint64 {
	w.t.Helper()
	i, err := w.db.Info()
	ok(w.t, err)
	return i.LastTxnID
}

// wantSound fails when fsck finds damage.
func (w *work) wantSound() FsckResult {
	w.t.Helper()
	res, err := w.Fsck(ctx, FsckOptions{Contents: true, Damage: func(d Damage) { w.t.Errorf("fsck: %+v", d) }})
	ok(w.t, err)
	if res.Damaged != 0 {
		w.t.Fatalf("fsck found %d kinds of damage", res.Damaged)
	}
	return res
}

// letters lists changes as "A path".
func letters(list []PathChange) []string {
	var out []string
	for _, c := range list {
		out = append(out, c.Kind.String()+" "+c.Path)
	}
	return out
}

// settleClock waits until files written so far are not racily clean any more.
func settleClock() { time.Sleep(45 * time.Millisecond) }

// wantConflicts fails unless err lists exactly these paths.
func wantConflicts(t tb, err error, want ...string) {
	t.Helper()
	var c *ConflictError
	if !errors.As(err, &c) || !errors.Is(err, ErrConflict) {
		t.Fatalf("error %v, want conflicts %q", err, want)
	}
	wantList(t, "conflicts", c.Paths, want...)
}

func contextWithStop() (context.Context, context.CancelFunc) {
	return context.WithCancel(context.Background())
}
