package integration

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCase40PathsThroughLinks(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("real", "f"), "f")
	write(t, r.path("real", "sub", "g"), "g")
	ok(t, os.Symlink("real", r.path("link")))
	ok(t, os.Symlink("../real/sub", r.path("real", "up")))
	outside := filepath.Join(scratch(t), "outside")
	write(t, filepath.Join(outside, "secret"), "s")
	ok(t, os.Symlink(outside, r.path("out")))

	for _, p := range []string{"link/f", "link/sub", "link/sub/g", "real/up/g", "out/secret", "link/nothing"} {
		r.refused([]string{p}, "add", p)
	}
	for _, p := range []string{"..", outside, filepath.Join(outside, "secret"), "../outside", "/"} {
		r.refused(nil, "add", p)
	}
	for _, p := range []string{".bole", ".bole/db", ".bole/db/data.mdb", "real/../.bole"} {
		if res := r.run("add", p); res.code == 0 {
			if st := r.run("commit", "-m", "x"); st.code == 0 {
				t.Errorf("add %s gave something to commit: %v", p, st)
			}
		}
	}
	if res := r.run("commit", "-m", "nothing"); res.code == 0 {
		t.Fatalf("the refused paths were recorded: %v", res)
	}

	// Every other spelling names the one entry.
	through := filepath.Join(scratch(t), "toR")
	ok(t, os.Symlink(r.dir, through))
	spellings := []struct{ dir, arg string }{
		{r.dir, "real/f"}, {r.dir, "./real/../real/f"}, {r.dir, r.path("real", "f")}, {r.path("real"), "f"},
		{r.path("real", "sub"), "../f"}, {through, "real/f"}, {r.dir, filepath.Join(through, "real", "f")}, {r.dir, "real//f"},
	}
	for i, s := range spellings {
		write(t, r.path("real", "f"), string(rune('a'+i)))
		res := run(t, command{args: []string{boleBin, "add", s.arg}, dir: s.dir})
		if res.code != 0 {
			t.Errorf("add %s in %s: %v", s.arg, s.dir, res)
			continue
		}
		r.must("commit", "-m", s.arg)
		checkKept(t, r, "real/f", string(rune('a'+i)))
		if got := lines(r.must("ls", "HEAD:")); len(got) != 1 {
			t.Errorf("add %s in %s: the root lists %q", s.arg, s.dir, got)
		}
	}

	// The link itself is an entry, with or without a slash behind it.
	r.must("add", "link")
	if res := r.run("add", "link/"); res.code != 0 {
		checkRefused(t, res, "link")
	}
	r.must("commit", "-m", "link")
	got := readTree(t, r.elsewhere("HEAD").dir)
	if got["link"].target != "real" || got["link/f"].kind != "" {
		t.Errorf("link is %+v", got["link"])
	}
	r.commit()
	want := readTree(t, r.dir)
	r.views("HEAD", func(t testing.TB, how, dir string) {
		sameTree(t, how, want, readTree(t, dir), sameOpts{dirTimes: true})
	})
	if res := run(t, command{args: []string{boleBin, "-C", through, "status", "--json"}}); res.code != 0 || len(parseStatus(t, res.stdout)) != 0 {
		t.Errorf("status through a link: %v", res)
	}
	if read(t, filepath.Join(outside, "secret")) != "s" {
		t.Error("something outside changed")
	}
}
