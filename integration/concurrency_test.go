package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// waited says whether a refusal is the right answer of a busy repository: there
// was nothing to commit, or the holder of the lock is named.
func waited(res result) bool {
	return res.code == 1 && (containsFold(res.both(), "nothing") || containsFold(res.both(), "lock") || containsFold(res.both(), "process"))
}

func TestManyProcessesAtOnce(t *testing.T) {
	r := newRepo(t)
	write(t, r.path("base"), "base")
	r.commit()
	const writers, rounds = 4, 8
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			dir := fmt.Sprint("writer", w)
			for i := range rounds {
				write(t, r.path(dir, fmt.Sprint(i)), fmt.Sprint(w, i))
				if res := r.run("add", dir); res.code != 0 {
					t.Errorf("add: %v", res)
				}
				if res := r.run("commit", "-m", fmt.Sprint(w, " ", i)); res.code != 0 && !waited(res) {
					t.Errorf("commit: %v", res)
				}
			}
		})
	}
	group.Go(func() {
		for range rounds {
			if res := r.run("log"); res.code != 0 {
				t.Errorf("log: %v", res)
			}
			if res := r.run("fsck", "--contents"); res.code != 0 {
				t.Errorf("fsck beside writers: %v", res)
			}
			if res := r.run("status"); res.code != 0 && res.code != 1 {
				t.Errorf("status: %v", res)
			}
		}
	})
	mountDirs := []string{filepath.Join(scratch(t), "M1"), filepath.Join(scratch(t), "M2")}
	for _, dir := range mountDirs {
		mkdir(t, dir)
		m := &mnt{t: t, dir: dir}
		t.Cleanup(m.destroy)
		group.Go(func() {
			for range rounds {
				if res := r.run("mount", "HEAD", dir); res.code != 0 {
					t.Errorf("mount: %v", res)
					return
				}
				if b, err := os.ReadFile(dir + "/base"); err != nil || string(b) != "base" {
					t.Errorf("reading beside writers: %q, %v", b, err)
				}
				if res := umount(t, dir); res.code != 0 {
					t.Errorf("umount: %v", res)
				}
			}
		})
	}
	group.Wait()
	r.commitIfChanged()
	r.wantClean()
	got := readTree(t, r.elsewhere("HEAD").dir)
	for w := range writers {
		for i := range rounds {
			if got[fmt.Sprintf("writer%d/%d", w, i)].kind != "file" {
				t.Errorf("file %d of writer %d is lost", i, w)
			}
		}
	}
	// Nothing that a commit recorded was undone by another one.
	ids := r.log()
	for i := 1; i < len(ids); i++ {
		for _, line := range lines(r.must("diff", ids[i], ids[i-1])) {
			if strings.HasPrefix(line, "D ") || strings.HasPrefix(line, "- ") {
				t.Errorf("commit %s undoes %q", ids[i-1], line)
			}
		}
	}
	r.fsck()
}

func TestTwoCommittersAtOnce(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("f"), "0")
	r.commit()
	src := scratch(t)
	for i := range 15 {
		write(t, r.path("f"), fmt.Sprint("commit ", i))
		write(t, filepath.Join(src, "g"), fmt.Sprint("import ", i))
		r.must("add", "f")
		before := r.log()
		var results [2]result
		var group sync.WaitGroup
		group.Go(func() { results[0] = r.run("commit", "-m", "by commit") })
		group.Go(func() { results[1] = r.run("import", src, "imported", "-m", "by import") })
		group.Wait()
		done := 0
		for _, res := range results {
			if res.code == 0 {
				done++
			} else {
				checkRefused(t, res)
			}
		}
		if done == 0 {
			t.Errorf("round %d: neither committed: %v, %v", i, results[0], results[1])
		}
		if after := r.log(); len(after) != len(before)+done {
			t.Errorf("round %d: %d commits became %d, but %d succeeded", i, len(before), len(after), done)
		}
		if res := r.run("update"); res.code != 0 {
			t.Fatalf("update: %v", res)
		}
		r.commitIfChanged()
		checkKept(t, r, "f", fmt.Sprint("commit ", i))
		if results[1].code == 0 {
			checkKept(t, r, "imported/g", fmt.Sprint("import ", i))
		}
	}
	r.fsck()
}

// A branch that moved under a working directory is told, and not undone.
func TestMovedBranch(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, n := range []string{"same", "mine", "theirs/a"} {
		write(t, r.path(n), "first")
	}
	r.commit()
	src := scratch(t)
	write(t, filepath.Join(src, "a"), "moved on")
	write(t, filepath.Join(src, "b"), "new")
	write(t, r.path("mine"), "unsaved work")
	write(t, r.path("untracked"), "untracked")
	r.must("import", src, "theirs", "-m", "from elsewhere")
	moved := r.head()

	st := r.run("status")
	if !containsFold(st.both(), "moved") && !containsFold(st.both(), "behind") && !containsFold(st.both(), "update") {
		t.Errorf("status says nothing of the moved branch: %v", st)
	}
	r.must("add", ".")
	r.refused([]string{"update"}, "commit", "-m", "would undo")
	if r.head() != moved {
		t.Fatal("the refused commit moved the branch")
	}
	r.must("update")
	for path, want := range map[string]string{"same": "first", "mine": "unsaved work", "untracked": "untracked", "theirs/a": "moved on", "theirs/b": "new"} {
		if got := read(t, r.path(path)); got != want {
			t.Errorf("after update %s is %q, want %q", path, got, want)
		}
	}
	r.commit()
	for path, want := range map[string]string{"mine": "unsaved work", "theirs/a": "moved on", "theirs/b": "new"} {
		checkKept(t, r, path, want)
	}
	r.wantClean()

	// Work on the very file that moved is never overwritten without a word.
	write(t, filepath.Join(src, "a"), "moved again")
	r.must("import", src, "theirs", "-m", "again")
	write(t, r.path("theirs", "a"), "my own version")
	res := r.run("update")
	if res.code == 0 {
		t.Errorf("update over unsaved work: %v", res)
	}
	checkRefused(t, result{code: 1, stderr: res.both(), args: res.args}, "theirs/a")
	if got := read(t, r.path("theirs", "a")); !strings.Contains(got, "my own version") {
		t.Errorf("unsaved work is gone: %q", got)
	}
}
