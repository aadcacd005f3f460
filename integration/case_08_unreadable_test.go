package integration

import (
	"os"
	"path/filepath"
	"testing"
)

// nobodyRepo makes a repository that belongs to nobody and is used as nobody:
// root may read everything, so these faults do not show as root.
func nobodyRepo(t testing.TB) *repo {
	t.Helper()
	user := asNobody(t)
	dir := filepath.Join(scratch(t), "R")
	mkdir(t, dir)
	home := filepath.Join(scratch(t), "home")
	mkdir(t, home)
	user.own(t, dir)
	user.own(t, home)
	r := &repo{t: t, dir: dir, as: user, env: []string{"HOME=" + home}}
	if res := user.run(t, boleBin, "init", dir); res.code != 0 {
		t.Fatalf("init as nobody: %v", res)
	}
	return r
}

func TestCase08UnreadableFile(t *testing.T) {
	t.Parallel()
	r := nobodyRepo(t)
	for _, name := range []string{"a", "b", "sub/c", "sub/d"} {
		write(t, r.path(name), "one")
	}
	for _, p := range []string{"a", "b", "sub", "sub/c", "sub/d"} {
		r.as.own(t, r.path(p))
	}
	id := r.commit()
	r.wantClean()

	t.Run("file", func(t *testing.T) {
		write(t, r.path("a"), "two!")
		write(t, r.path("b"), "two!")
		ok(t, os.Chmod(r.path("b"), 0))
		r.refused([]string{"b"}, "add", ".")
		// b is changed and cannot be read; it is not deleted.
		res := r.run("status", "--json")
		if res.code == 0 || res.code == 1 {
			if word := parseStatus(t, res.stdout)["b"]; hasDeleted(word) {
				t.Errorf("status calls b %q", word)
			}
		}
		r.run("commit", "-m", "after the failed add")
		checkKept(t, r, "b", "one")
		ok(t, os.Chmod(r.path("b"), 0o644))
		second := r.commit()
		if second == id {
			t.Fatal("nothing was committed once the file could be read")
		}
		checkKept(t, r, "b", "two!")
		checkKept(t, r, "a", "two!")
	})
	t.Run("directory", func(t *testing.T) {
		for _, mode := range []os.FileMode{0, 0o111, 0o444} {
			write(t, r.path("a"), "with sub "+mode.String())
			ok(t, os.Chmod(r.path("sub"), mode))
			r.refused([]string{"sub"}, "add", ".")
			r.run("commit", "-m", "after the failed add")
			checkKept(t, r, "sub/c", "one")
			checkKept(t, r, "sub/d", "one")
			ok(t, os.Chmod(r.path("sub"), 0o755))
		}
		r.commit()
		r.wantClean()
	})
	r.fsck()
}

func hasDeleted(word string) bool {
	return word == "D" || containsFold(word, "delete") || containsFold(word, "remove")
}

func checkKept(t testing.TB, r *repo, path, content string) {
	t.Helper()
	if got := r.run("cat", "HEAD:"+path); got.code != 0 || got.stdout != content {
		t.Errorf("HEAD:%s is not %q: %v", path, content, got)
	}
}
