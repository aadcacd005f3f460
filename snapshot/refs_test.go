package snapshot

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"bole/lmdbstore"
	"bole/merkle"
)

// gitAllows asks git about a branch name.
func gitAllows(t tb, name string) bool {
	cmd := exec.Command("git", "check-ref-format", "--branch", name)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR=/nonexistent"}
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return err == nil
}

func needGit(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
}

// TestRefNamesAgainstGit draws names of pieces that mean something to git's rules.
func TestRefNamesAgainstGit(t *testing.T) {
	needGit(t)
	piece := rapid.SampledFrom([]string{"a", "b", "main", "/", "/", ".", "..", ".lock", "lock", "@", "@{", "{", "}", "-", "HEAD", "heads", "refs/heads/",
		"~", "^", ":", "?", "*", "[", "]", "\\", " ", "\t", "\n", "\x7f", "\x01", "é", "\xff", "#", "!", "\"", "'", "$", "%", "&", "(", "+", ",", ";", "<", "=", "|"})
	check := func(t tb, name string) {
		if name == "" || strings.ContainsRune(name, 0) || len(name) > 200 {
			return
		}
		if name == "@" { // git makes such a branch, and nothing can name it: "@" is HEAD
			wantErr(t, CheckRefName(name), ErrRefName)
			return
		}
		if err, git := CheckRefName(name), gitAllows(t, name); (err == nil) != git {
			t.Fatalf("%q: we say %v, git allows it: %v", name, err, git)
		}
	}
	for _, name := range []string{"@", "HEAD", "HEAD/x", "x/HEAD", "@/x", "x/@", "-x", "x/-y", ".", "x.", "x/.y", "x.lock", "x.lock/y", "lock", ".lock",
		"a//b", "/a", "a/", "a..b", "a.b", "@{-1}", "x@{1}", "x@", "{x}", "refs/heads/main", "FETCH_HEAD"} {
		check(t, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		check(t, strings.Join(rapid.SliceOfN(piece, 1, 5).Draw(t, "name"), ""))
	})
}

func TestRefNameLength(t *testing.T) {
	longest := strings.Repeat("n", maxRefName-len(headsPrefix))
	ok(t, CheckRefName(longest))
	wantErr(t, CheckRefName(longest+"n"), ErrRefName)
	wantErr(t, CheckRefName(""), ErrRefName)
	w := newWork(t)
	w.write("f", "x")
	id := w.save("first")
	ok(t, w.CreateBranch(longest, id, false))
	rev, err := w.Resolve(longest + "~0")
	ok(t, err)
	if rev.Commit != id {
		t.Fatal(rev)
	}
	for _, n := range []int{300, 600, 100_000} {
		_, err := w.Resolve(strings.Repeat("n", n))
		wantErr(t, err, ErrUnknownRevision)
		wantErr(t, w.DeleteBranch(strings.Repeat("n", n)), ErrNoRef)
		wantErr(t, w.RenameBranch(strings.Repeat("n", n), "x"), ErrNoRef)
	}
}

// branches lists names and commits.
func (w *work) branches() map[string]merkle.Hash {
	w.t.Helper()
	list, err := w.Branches()
	ok(w.t, err)
	out := map[string]merkle.Hash{}
	for i, b := range list {
		if i > 0 && list[i-1].Name >= b.Name {
			w.t.Fatalf("branches are not sorted: %v", list)
		}
		out[b.Name] = b.Commit
	}
	return out
}

// wantBranches compares them by name.
func (w *work) wantBranches(want map[string]merkle.Hash) {
	w.t.Helper()
	if got := w.branches(); fmt.Sprint(got) != fmt.Sprint(want) {
		w.t.Fatalf("branches %v, want %v", got, want)
	}
}

type refMap = map[string]merkle.Hash

func TestBranches(t *testing.T) {
	w := newWork(t)
	w.wantBranches(refMap{})
	wantErr(t, w.CreateBranch("x", merkle.Hash{1}, false), merkle.ErrMissing)
	w.write("f", "1")
	one := w.save("one")
	w.write("f", "2")
	two := w.save("two")

	ok(t, w.CreateBranch("a", one, false))
	wantErr(t, w.CreateBranch("a", two, false), ErrRefExists, "a")
	ok(t, w.CreateBranch("a", two, true))
	wantErr(t, w.CreateBranch("main", one, true), ErrCurrentBranch)
	wantErr(t, w.CreateBranch("a/b", one, false), ErrRefExists, "a is in its way")
	ok(t, w.CreateBranch("x/y/z", one, false))
	wantErr(t, w.CreateBranch("x", one, false), ErrRefExists, "x/y/z is in its way")
	wantErr(t, w.CreateBranch("x/y", one, true), ErrRefExists, "x/y/z is in its way")
	wantErr(t, w.CreateBranch("bad name", one, false), ErrRefName)
	w.wantBranches(refMap{"a": two, "main": two, "x/y/z": one})

	wantErr(t, w.DeleteBranch("main"), ErrCurrentBranch)
	wantErr(t, w.DeleteBranch("nope"), ErrNoRef)
	wantErr(t, w.DeleteBranch(""), ErrNoRef)
	ok(t, w.DeleteBranch("a"))
	w.wantBranches(refMap{"main": two, "x/y/z": one})

	wantErr(t, w.RenameBranch("nope", "b"), ErrNoRef)
	wantErr(t, w.RenameBranch("main", "x/y/z"), ErrRefExists)
	wantErr(t, w.RenameBranch("main", "x/y"), ErrRefExists)
	wantErr(t, w.RenameBranch("main", "x..y"), ErrRefName)
	ok(t, w.RenameBranch("x/y/z", "x")) // into its own folder's place
	ok(t, w.RenameBranch("main", "trunk"))
	w.wantBranches(refMap{"trunk": two, "x": one})
	head, err := w.Head()
	ok(t, err)
	if head != (Head{Branch: "trunk", Commit: two}) {
		t.Fatalf("HEAD is %+v", head)
	}
	w.wantClean()
}

// TestUnbornBranch renames a branch that has no commit, and makes its first
// commit where another name would be in the way.
func TestUnbornBranch(t *testing.T) {
	w := newWork(t, InitOptions{Branch: "dev"})
	ok(t, w.RenameBranch("dev", "work"))
	head, err := w.Head()
	ok(t, err)
	if head != (Head{Branch: "work"}) {
		t.Fatalf("HEAD is %+v", head)
	}
	other := newWork(t)
	other.write("f", "x")
	id := w.putCommit(merkle.Commit{Tree: w.emptyTree(), RootPerm: 0o755}, nil)
	ok(t, w.CreateBranch("work/sub", id, false))
	w.write("f", "x")
	w.add()
	_, err = w.tryCommit("first")
	wantErr(t, err, ErrRefExists, "work/sub")
	wantErr(t, w.RenameBranch("work", "work/sub"), ErrRefExists)
	ok(t, w.RenameBranch("work", "free"))
	w.commit("first")
	w.wantBranches(refMap{"free": w.head(), "work/sub": id})
}

func (w *work) head() merkle.Hash {
	w.t.Helper()
	h, err := w.Head()
	ok(w.t, err)
	return h.Commit
}

// emptyTree stores the empty directory.
func (w *work) emptyTree() merkle.Hash {
	w.t.Helper()
	h, b := merkle.EmptyDir()
	ok(w.t, w.db.Update(func(tx *lmdbstore.Writer) error { return tx.PutNode(h, b) }))
	return h
}

// TestDetachedHead commits on no branch.
func TestDetachedHead(t *testing.T) {
	w := newWork(t)
	w.write("f", "1")
	one := w.save("one")
	w.mustCheckout(one.String())
	w.write("f", "2")
	two := w.save("two")
	head, err := w.Head()
	ok(t, err)
	if head != (Head{Commit: two}) {
		t.Fatalf("HEAD is %+v", head)
	}
	w.wantBranches(refMap{"main": one})
	ok(t, w.DeleteBranch("main")) // nobody is on it
	w.wantBranches(refMap{})
	wantErr(t, w.RenameBranch("main", "x"), ErrNoRef)
}

// TestMoveRef is compare-and-swap.
func TestMoveRef(t *testing.T) {
	w := newWork(t)
	a, b := merkle.Hash{1}, merkle.Hash{2}
	move := func(name string, from, to merkle.Hash) error {
		return w.db.Update(func(tx *lmdbstore.Writer) error { return moveRef(tx, name, from, to, "who", "why") })
	}
	ref := headsPrefix + "x"
	wantErr(t, move(ref, a, b), ErrRefMoved)
	ok(t, move(ref, merkle.Hash{}, a))
	wantErr(t, move(ref, merkle.Hash{}, b), ErrRefMoved, "x")
	wantErr(t, move(ref, b, a), ErrRefMoved)
	ok(t, move(ref, a, b))
	ok(t, move(ref, b, merkle.Hash{}))
	wantErr(t, move(ref, b, a), ErrRefMoved)
	// HEAD is on a branch: whoever took it for a commit must not make it one.
	ok(t, move(headsPrefix+"main", merkle.Hash{}, a))
	wantErr(t, move(headRef, a, b), ErrRefMoved)
	head, err := w.Head()
	ok(t, err)
	if head != (Head{Branch: "main", Commit: a}) {
		t.Fatalf("HEAD is %+v", head)
	}
}

// TestTwoCommitters: of two commits onto one parent one is refused, and nothing is lost.
func TestTwoCommitters(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	first := w.save("first")
	src := t.TempDir()
	var wg sync.WaitGroup
	var mu sync.Mutex
	won, lost := 0, 0
	for i := range 8 {
		wg.Go(func() {
			_, _, err := w.Commit(ctx, Request{Branch: "main", Parent: first, Meta: Meta{Message: fmt.Sprint(i), AllowEmpty: true},
				Changes: stagedChanges(ledger{stage: lmdbstore.Cache, stat: lmdbstore.Cache, salt: src})})
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.Is(err, ErrRefMoved):
				lost++
			default:
				t.Errorf("commit: %v", err)
			}
		})
	}
	wg.Wait()
	if won != 1 || lost != 7 {
		t.Fatalf("%d commits won, %d were refused", won, lost)
	}
	c, err := w.ReadCommit(w.head())
	ok(t, err)
	if c.Parents[0] != first {
		t.Fatal("the winner has another parent")
	}
}

func TestDecodeRef(t *testing.T) {
	h := merkle.NodeHash([]byte("x"))
	got, sym, err := decodeRef("x", encodeDirect(h))
	if got != h || sym != "" || err != nil {
		t.Error(got, sym, err)
	}
	got, sym, err = decodeRef("x", encodeSymbolic("refs/heads/main"))
	if !got.IsZero() || sym != "refs/heads/main" || err != nil {
		t.Error(got, sym, err)
	}
	for _, bad := range []string{"", "h", "s", "x", "h" + strings.Repeat("1", 31), "h" + strings.Repeat("1", 33), "q" + strings.Repeat("1", 32), "s" + strings.Repeat("n", 256)} {
		if _, _, err := decodeRef("x", []byte(bad)); !errors.Is(err, merkle.ErrCorrupt) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestNestedSymbolicRefs are refused, not followed for ever.
func TestNestedSymbolicRefs(t *testing.T) {
	w := newWork(t)
	w.rewrite(lmdbstore.Refs, []byte("HEAD"), encodeSymbolic("HEAD"))
	_, err := w.Head()
	wantErr(t, err, merkle.ErrCorrupt)
	w.rewrite(lmdbstore.Refs, []byte("HEAD"), encodeSymbolic("refs/other/x"))
	_, err = w.Head()
	wantErr(t, err, merkle.ErrCorrupt, "refs/other/x")
	w.rewrite(lmdbstore.Refs, []byte("HEAD"), []byte("?"))
	_, err = w.Status(ctx, StatusOptions{})
	wantErr(t, err, merkle.ErrCorrupt, "HEAD")
}
