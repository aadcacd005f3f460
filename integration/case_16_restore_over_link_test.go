package integration

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// restoreTraps are what may stand where checkout has to put the file f or the
// file d/f. Each returns nothing; victim lies outside the repository.
var restoreTraps = map[string]func(t *testing.T, r *repo, victim string){
	"link to a file": func(t *testing.T, r *repo, victim string) {
		ok(t, os.Remove(r.path("f")))
		ok(t, os.Symlink(victim, r.path("f")))
	},
	"relative link": func(t *testing.T, r *repo, victim string) {
		rel, err := filepath.Rel(r.dir, victim)
		ok(t, err)
		ok(t, os.Remove(r.path("f")))
		ok(t, os.Symlink(rel, r.path("f")))
	},
	"link to the database": func(t *testing.T, r *repo, _ string) {
		ok(t, os.Remove(r.path("f")))
		ok(t, os.Symlink(".bole/db/data.mdb", r.path("f")))
	},
	"dangling link": func(t *testing.T, r *repo, victim string) {
		ok(t, os.Remove(r.path("f")))
		ok(t, os.Symlink(victim+"-not-there", r.path("f")))
	},
	"link loop": func(t *testing.T, r *repo, _ string) {
		ok(t, os.Remove(r.path("f")))
		ok(t, os.Symlink("f", r.path("f")))
	},
	"hard link": func(t *testing.T, r *repo, victim string) {
		ok(t, os.Remove(r.path("f")))
		ok(t, os.Link(victim, r.path("f")))
	},
	"fifo": func(t *testing.T, r *repo, _ string) {
		ok(t, os.Remove(r.path("f")))
		ok(t, unix.Mkfifo(r.path("f"), 0o644))
	},
	"directory": func(t *testing.T, r *repo, _ string) {
		ok(t, os.Remove(r.path("f")))
		write(t, r.path("f", "inside"), "x")
	},
	"linked parent": func(t *testing.T, r *repo, victim string) {
		ok(t, os.RemoveAll(r.path("d")))
		ok(t, os.Symlink(filepath.Dir(victim), r.path("d")))
	},
	"parent linked to the database": func(t *testing.T, r *repo, _ string) {
		ok(t, os.RemoveAll(r.path("d")))
		ok(t, os.Symlink(".bole/db", r.path("d")))
	},
	"linked grandparent": func(t *testing.T, r *repo, victim string) {
		ok(t, os.RemoveAll(r.path("deep")))
		ok(t, os.Symlink(filepath.Dir(victim), r.path("deep")))
	},
	"file as parent": func(t *testing.T, r *repo, _ string) {
		ok(t, os.RemoveAll(r.path("d")))
		write(t, r.path("d"), "a file now")
	},
}

func TestCase16RestoreOverALink(t *testing.T) {
	t.Parallel()
	for name, trap := range restoreTraps {
		for _, force := range []bool{false, true} {
			t.Run(name+forceName(force), func(t *testing.T) {
				r := newRepo(t)
				for _, p := range []string{"f", "d/f", "deep/d/f"} {
					write(t, r.path(p), "first")
				}
				c1 := r.commit()
				want := readTree(t, r.dir)
				for _, p := range []string{"f", "d/f", "deep/d/f"} {
					write(t, r.path(p), "second")
				}
				r.commit()
				outside := filepath.Join(scratch(t), "outside")
				victim := filepath.Join(outside, "f")
				write(t, victim, "victim")
				before := readTree(t, outside)

				trap(t, r, victim)
				args := []string{"checkout", c1}
				if force {
					args = []string{"checkout", "--force", c1}
				}
				res := r.run(args...)
				if force && res.code != 0 {
					t.Errorf("forced: %v", res)
				}
				if res.code != 0 {
					checkRefused(t, res)
				} else {
					sameTree(t, "restored", want, readTree(t, r.dir), sameOpts{dirTimes: true})
				}
				sameTree(t, "outside", before, readTree(t, outside), sameOpts{})
				if len(r.log()) == 0 {
					t.Error("the history is gone")
				}
				r.fsck()
			})
		}
	}
}

func forceName(force bool) string {
	if force {
		return " forced"
	}
	return ""
}

// The same when the trap stands in the tree itself: C1 holds links where C2
// holds a file, and a path below a link.
func TestCase16LinksInTheHistory(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	outside := filepath.Join(scratch(t), "outside")
	write(t, filepath.Join(outside, "f"), "victim")
	before := readTree(t, outside)
	ok(t, os.Symlink(filepath.Join(outside, "f"), r.path("f")))
	ok(t, os.Symlink(outside, r.path("d")))
	links := readTree(t, r.dir)
	c1 := r.commit()
	ok(t, os.Remove(r.path("f")))
	ok(t, os.Remove(r.path("d")))
	write(t, r.path("f"), "file")
	write(t, r.path("d", "f"), "file")
	files := readTree(t, r.dir)
	c2 := r.commit()
	for range 2 {
		r.must("checkout", c1)
		sameTree(t, "links", links, readTree(t, r.dir), sameOpts{dirTimes: true})
		r.wantClean()
		r.must("checkout", c2)
		sameTree(t, "files", files, readTree(t, r.dir), sameOpts{dirTimes: true})
		r.wantClean()
	}
	sameTree(t, "outside", before, readTree(t, outside), sameOpts{})
}
