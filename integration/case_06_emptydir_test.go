package integration

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCase06EmptyDirectories(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	mkdir(t, r.path("e1", "e2"))
	mkdir(t, r.path("only"))
	write(t, r.path("full", "f"), "1")
	want := readTree(t, r.dir)
	r.wantStatusHas("e1/e2", "only")
	c1 := r.commit()
	r.wantClean()
	r.views(c1, func(t testing.TB, how, dir string) {
		sameTree(t, how, want, readTree(t, dir), sameOpts{})
	})

	ok(t, os.Remove(r.path("e1", "e2")))
	r.wantStatusHas("e1/e2")
	c2 := r.commit()
	r.must("checkout", c1)
	sameTree(t, "back", want, readTree(t, r.dir), sameOpts{dirTimes: true})
	r.must("checkout", c2)
	if exists(r.path("e1", "e2")) || !exists(r.path("e1")) {
		t.Error("checkout of the second commit: e1 must stand, e1/e2 must not")
	}

	// A directory is left when its last file goes, and an added empty
	// directory alone is worth a commit.
	r.must("checkout", "main")
	ok(t, os.Remove(r.path("full", "f")))
	c3 := r.commit()
	mkdir(t, r.path("new"))
	r.wantStatusHas("new")
	c4 := r.commit()
	if c4 == c3 {
		t.Fatal("an added empty directory makes no commit")
	}
	m := r.mount(c4)
	got := readTree(t, m.dir)
	for _, p := range []string{"full", "new", "only", "e1"} {
		if got[p].kind != "dir" {
			t.Errorf("%s is %q in the mount", p, got[p].kind)
		}
	}
	if len(got) != 5 {
		t.Errorf("%d entries, want 5", len(got))
	}
	m.umount()
	// A whole tree of empty directories comes and goes.
	r.must("checkout", c1)
	r.must("checkout", c4)
	sameTree(t, "checkout", got, readTree(t, r.dir), sameOpts{dirTimes: true})
	r.fsck()
}

// wantStatusHas fails unless status names the paths, or a directory around
// them of which nothing is recorded (with a slash at its end).
func (r *repo) wantStatusHas(paths ...string) {
	r.t.Helper()
	got := r.status()
	for _, p := range paths {
		found := got[p] != ""
		for dir := p; dir != "." && !found; dir = filepath.Dir(dir) {
			found = got[dir+"/"] != ""
		}
		if !found {
			r.t.Errorf("status does not name %q: %v", p, got)
		}
	}
}
