package snapshot

import (
	"os"
	"path/filepath"
	"testing"

	"bole/merkle"
)

// TestForceSparesRepositories: not even force removes another repository, or
// what is mounted, to put a file there.
func TestForceSparesRepositories(t *testing.T) {
	for name, c := range map[string]struct {
		fill func(t *testing.T, w *work)
		safe string
	}{
		"itself": {func(t *testing.T, w *work) { ok(t, Init(w.at("f"), InitOptions{})) }, "f/.bole/config.toml"},
		"deep":   {func(t *testing.T, w *work) { ok(t, Init(w.at("f/a/b"), InitOptions{})) }, "f/a/b/.bole/config.toml"},
		"mount": {func(t *testing.T, w *work) {
			other := t.TempDir()
			ok(t, os.WriteFile(filepath.Join(other, "theirs"), nil, 0o644))
			w.mkdir("f/a")
			bind(t, other, w.at("f/a"))
		}, "f/a/theirs"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			w.write("f", "1")
			w.write("g", "1")
			one := w.save("one")
			w.write("g", "2")
			w.save("two")
			w.remove("f")
			c.fill(t, w)
			w.write("g", "mine")
			for _, rev := range []string{one.String(), "main"} {
				_, err := w.checkout(rev, true)
				wantConflicts(t, err, "f")
			}
			if _, err := os.Lstat(w.at(c.safe)); err != nil || w.read("g") != "mine" {
				t.Fatalf("something was changed: %v, g is %q", err, w.read("g"))
			}
		})
	}
}

// TestForceRemovesFoldersInTheWay, with modes that keep their owner out, and follows no link in them.
func TestForceRemovesFoldersInTheWay(t *testing.T) {
	w := newWork(t)
	w.write("f", "1")
	one := w.save("one")
	w.write("f", "2")
	w.save("two")
	outside := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(outside, "victim"), nil, 0o644))
	w.remove("f")
	w.write("f/a/b/c", "x")
	w.link("f/a/link", outside)
	w.mkdir("f/closed")
	w.chmod("f/closed", 0)
	w.mustCheckout(one.String(), true)
	if w.read("f") != "1" {
		t.Fatal("f is not restored")
	}
	if _, err := os.Lstat(filepath.Join(outside, "victim")); err != nil {
		t.Fatal(err)
	}
	w.wantClean()
}

// TestForceDropsWhatWasAdded, and leaves what was not.
func TestForceDropsWhatWasAdded(t *testing.T) {
	w := newWork(t)
	w.write("f", "1")
	w.save("one")
	w.write("added/deep/f", "x")
	w.write("added too", "x")
	w.write("mixed/added", "x")
	w.add()
	w.write("mixed/untracked", "x")
	w.write("untracked", "x")
	w.mustCheckout("main", true)
	w.wantStaged()
	w.wantUnstaged("? mixed/", "? untracked")
	for _, p := range []string{"added", "added too", "mixed/added"} {
		if _, err := os.Lstat(w.at(p)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", p, err)
		}
	}
}

// TestBranchMovesDuringCheckout: the working directory is where it was told to
// go, and behind its branch; without the branch it is on none.
func TestBranchMovesDuringCheckout(t *testing.T) {
	w := newWork(t)
	w.write("f", "1")
	one := w.save("one")
	w.write("f", "2")
	two := w.save("two")
	for name, c := range map[string]struct {
		meanwhile func() error
		want      Head
		moved     bool
	}{
		"moved":   {func() error { return w.CreateBranch("b", two, true) }, Head{Branch: "b", Commit: two}, true},
		"deleted": {func() error { return w.DeleteBranch("b") }, Head{Commit: one}, false},
	} {
		w.mustCheckout("main")
		ok(t, w.CreateBranch("b", one, true))
		rev, err := w.Resolve("b")
		ok(t, err)
		_, err = w.Checkout(ctx, rev, CheckoutOptions{Progress: func(Progress) { ok(t, c.meanwhile()) }})
		ok(t, err)
		st := w.status()
		if st.Head != c.want || st.Base != one || st.Moved != c.moved || !st.Clean() {
			t.Fatalf("%s: %+v", name, st)
		}
	}
}

// TestImportOnNoBranch moves HEAD itself.
func TestImportOnNoBranch(t *testing.T) {
	w := newWork(t)
	w.write("f", "1")
	one := w.save("one")
	w.mustCheckout(one.String())
	src, put := source(t)
	put("g", "x")
	res := w.mustImport(ImportOptions{Source: src})
	st := w.status()
	if st.Head != (Head{Commit: res.ID}) || st.Base != one || !st.Moved {
		t.Fatalf("%+v", st)
	}
	w.wantBranches(refMap{"main": one})
	_, err := w.Update(ctx, CheckoutOptions{})
	ok(t, err)
	w.wantClean()
	// HEAD got onto a branch meanwhile: it is not torn off.
	put("h", "x")
	_, err = w.tryImport(ImportOptions{Source: src, Plan: func(Plan) { w.mustCheckout("main") }})
	wantErr(t, err, ErrRefMoved)
	head, err := w.Head()
	ok(t, err)
	if head != (Head{Branch: "main", Commit: one}) {
		t.Fatalf("HEAD is %+v", head)
	}
}

// TestDiffOfCommits lists what differs, in path order, below a path.
func TestDiffOfCommits(t *testing.T) {
	w, one, two := twoStates(t)
	var got []string
	list := func(a, b merkle.Hash, path string) []string {
		t.Helper()
		got = nil
		ok(t, w.Diff(a, b, path, func(c PathChange) error { got = append(got, c.Kind.String()+" "+c.Path); return nil }))
		return got
	}
	wantList(t, "of one folder", list(one, two, "dir"), "M dir", "M dir/changed")
	wantList(t, "of one file", list(two, one, "changed"), "M changed")
	wantList(t, "of what went", list(one, two, "gone"), "D gone", "D gone/a", "D gone/a/b")
	wantList(t, "with nothing", list(merkle.Hash{}, two, "toDir"), "A toDir", "A toDir/in")
	wantList(t, "with itself", list(two, two, ""))
	all := list(one, two, "")
	for i, c := range all {
		if i > 0 && merkle.ComparePaths([]byte(all[i-1][2:]), []byte(c[2:])) >= 0 {
			t.Errorf("%q comes after %q", c, all[i-1])
		}
	}
	wantErr(t, w.Diff(one, two, "never", nil), ErrNoPath, "never")
	wantErr(t, w.Diff(merkle.Hash{1}, two, "", nil), merkle.ErrMissing)
}
