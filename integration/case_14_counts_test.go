package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// setTimes gives every entry below the working directory one fixed mtime.
func (r *repo) setTimes() {
	r.t.Helper()
	when := time.Unix(1_000_000_000, 123_456_789)
	for path, n := range readTree(r.t, r.dir) {
		if n.kind == "link" {
			ok(r.t, setTimeOfLink(r.path(path)))
			continue
		}
		ok(r.t, os.Chtimes(r.path(path), when, when))
	}
}

// rootHash returns the name of a commit's root directory.
func (r *repo) rootHash(rev string) string {
	r.t.Helper()
	m := r.mount(rev)
	defer m.umount()
	return getAttr(r.t, m.dir, "user.bole.hash")
}

func TestCase14RemoveAllAndAddAgain(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("d", "f"), "content")
	r.setTimes()
	c1 := r.commit()
	ok(t, os.Remove(r.path("d", "f")))
	r.wantStatusHas("d/f")
	c2 := r.commit()
	write(t, r.path("d", "f"), "content")
	r.setTimes()
	c3 := r.commit()
	if c1 == c2 || c2 == c3 {
		t.Error("a change made no commit")
	}
	if a, b := r.rootHash(c1), r.rootHash(c3); a != b {
		t.Errorf("the same tree has two names: %s and %s", a, b)
	}
	ok(t, os.RemoveAll(r.path("d")))
	c4 := r.commit()
	if got := r.must("ls", "HEAD:"); got != "" {
		t.Errorf("ls of an empty commit prints %q", got)
	}
	m := r.mount(c4)
	if got := readTree(t, m.dir); len(got) != 1 {
		t.Errorf("an empty commit shows %d entries", len(got))
	}
	m.umount()
	r.fsck()
}

func TestCase14AMoveIsListedOnce(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, n := range []string{"a", "c", "x/y/z"} {
		write(t, r.path("d", n), n)
	}
	r.commit()
	ok(t, os.Rename(r.path("d", "a"), r.path("d", "b")))
	ok(t, os.Rename(r.path("d", "x"), r.path("d", "w")))
	for _, staged := range []bool{false, true} {
		if staged {
			r.must("add", ".")
		}
		text := r.must("status")
		for _, p := range []string{"d/a", "d/b"} {
			n := 0
			for _, line := range lines(text) {
				if strings.HasSuffix(line, p) {
					n++
				}
			}
			if n != 1 {
				t.Errorf("staged %v: status names %s in %d lines:\n%s", staged, p, n, text)
			}
		}
		for p, word := range r.status() {
			if strings.Contains(word, " ") {
				t.Errorf("staged %v: status lists %s twice: %s", staged, p, word)
			}
		}
	}
	r.must("commit", "-m", "moved")
	r.wantClean()
}

func TestCase14CountsDoNotDrift(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for i := range 30 {
		write(t, r.path("top", fmt.Sprintf("sub%d", i%3), fmt.Sprint(i)), "x")
	}
	write(t, r.path("top", "f"), "0")
	r.commit()
	for i := range 20 {
		write(t, r.path("top", "f"), fmt.Sprint(i+1))
		r.commit()
		if n := len(lines(r.must("ls", "HEAD:top"))); n != 4 {
			t.Fatalf("commit %d: ls lists %d entries, want 4", i, n)
		}
	}
	// 31 files, 4 directories and the root itself.
	m := r.mount("HEAD")
	if n := len(readTree(t, m.dir)); n != 36 {
		t.Errorf("the mount shows %d entries, want 36", n)
	}
	m.umount()
	tree := r.must("tree", "HEAD:")
	for i := range 30 {
		if !strings.Contains(tree, fmt.Sprint(i)) {
			t.Errorf("tree leaves out %d", i)
		}
	}
	if !strings.Contains(tree, "31 files") && !strings.Contains(tree, "31 file") {
		t.Errorf("tree does not count 31 files:\n%s", tree)
	}
	if got := len(r.log()); got != 21 {
		t.Errorf("log lists %d commits, want 21", got)
	}
	r.fsck()
}

// The same final content, reached by different histories, has one name.
func TestCase14SameContentSameName(t *testing.T) {
	t.Parallel()
	build := func(t *testing.T, order func(r *repo)) string {
		r := newRepo(t)
		order(r)
		r.wipe()
		for i := range 300 {
			write(t, r.path("d", fmt.Sprint("file", i)), fmt.Sprint("content ", i))
		}
		ok(t, os.Symlink("d", r.path("l")))
		mkdir(t, r.path("empty"))
		r.setTimes()
		r.commit()
		r.fsck()
		return r.rootHash("HEAD")
	}
	straight := build(t, func(*repo) {})
	detour := build(t, func(r *repo) {
		for round := range 4 {
			for i := round; i < 1500; i += 4 {
				write(t, r.path("d", fmt.Sprint("file", i)), fmt.Sprint("other ", i))
			}
			write(t, r.path("empty", "not yet"), "x")
			r.setTimes()
			r.commit()
		}
	})
	if straight != detour {
		t.Errorf("two histories, two names: %s and %s", straight, detour)
	}
}
