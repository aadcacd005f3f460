package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// killAt starts a command on the repository, kills it by SIGKILL after d and
// says whether it had ended by itself before.
func (r *repo) killAt(d time.Duration, args ...string) (ended bool, code int) {
	r.t.Helper()
	p := startCommand(r.t, command{args: append([]string{boleBin, "-C", r.dir}, args...), env: r.env})
	select {
	case <-p.waited:
	case <-time.After(d):
	}
	p.kill()
	<-p.waited
	code = p.cmd.ProcessState.ExitCode()
	return code >= 0, code
}

// took measures one run, to spread the kills over it.
func (r *repo) took(args ...string) time.Duration {
	r.t.Helper()
	start := time.Now()
	r.must(args...)
	return time.Since(start)
}

// fill writes n small files and one large one, new in each round.
func fill(t testing.TB, dir string, n, round int) {
	t.Helper()
	for i := range n {
		write(t, filepath.Join(dir, fmt.Sprintf("d%d", i%9), fmt.Sprint("file", i)), strings.Repeat(fmt.Sprintln(round, i), 50))
	}
	write(t, filepath.Join(dir, "large"), strings.Repeat(fmt.Sprintln("large in round", round), 30_000))
}

func TestKilledAddAndCommit(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	fill(t, r.dir, 300, 0)
	adding := r.took("add", ".")
	committing := r.took("commit", "-m", "x")
	killed := map[string]int{}
	for round := 1; round <= often(killRounds); round++ {
		fill(t, r.dir, 300, round)
		before := r.head()
		if ended, _ := r.killAt(rand.N(adding), "add", "."); !ended {
			killed["add"]++
		}
		if r.head() != before {
			t.Fatalf("round %d: a killed add moved HEAD", round)
		}
		r.fsck()
		r.must("add", ".")
		ended, _ := r.killAt(rand.N(committing+committing/2), "commit", "-m", fmt.Sprint("round ", round))
		if !ended {
			killed["commit"]++
		}
		r.fsck()
		// Either all of it happened or nothing.
		if r.head() == before {
			r.must("commit", "-m", fmt.Sprint("round ", round))
		}
		r.wantClean()
		if got := r.must("cat", "HEAD:d1/file1"); !strings.HasPrefix(got, fmt.Sprintln(round, 1)) {
			t.Fatalf("round %d: the commit holds %q", round, clip(got))
		}
	}
	t.Logf("killed before the end: %v of %d rounds", killed, often(killRounds))
	if got := len(r.log()); got != often(killRounds)+1 {
		t.Errorf("%d commits, want %d", got, often(killRounds)+1)
	}
	want := readTree(t, r.dir)
	m := r.mount("HEAD")
	sameTree(t, "mount", want, readTree(t, m.dir), sameOpts{dirTimes: true})
	m.umount()
	noTempFiles(t, r)
}

// noTempFiles: what killed commands left under temporary names goes when the
// next ones run; it must not pile up.
func noTempFiles(t *testing.T, r *repo) {
	t.Helper()
	var left []string
	base := r.path(".bole")
	ok(t, filepath.WalkDir(base, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.Contains(strings.TrimPrefix(path, base), "/tmp/") {
			left = append(left, path)
		}
		return err
	}))
	if len(left) > 5 {
		t.Errorf("%d temporary files are left: %v …", len(left), left[:5])
	}
}

func TestKilledImport(t *testing.T) {
	t.Parallel()
	for _, move := range []bool{false, true} {
		t.Run(fmt.Sprint("move ", move), func(t *testing.T) {
			base := fast(t)
			r := initRepo(t, filepath.Join(base, "bare"), "--bare")
			src, kept := filepath.Join(base, "src"), filepath.Join(base, "kept")
			args := []string{"import", src, "-m", "x"}
			if move {
				args = []string{"import", "--move", src, "-m", "x"}
			}
			fill(t, src, 300, 0)
			importing := r.took(args...)
			killed := 0
			for round := 1; round <= often(killRounds); round++ {
				ok(t, os.RemoveAll(src))
				ok(t, os.RemoveAll(kept))
				fill(t, src, 300, round)
				tool(t, "cp", "-a", src, kept)
				want := readTree(t, kept)
				before := r.head()
				if ended, _ := r.killAt(rand.N(importing), args...); !ended {
					killed++
				}
				r.fsck()
				if r.head() == before {
					// Nothing is taken away before the commit is durable.
					sameTree(t, "the source after a kill", want, readTree(t, src), sameOpts{})
					r.must(args...)
				}
				m := r.mount("HEAD")
				sameTree(t, "mount", want, readTree(t, m.dir), sameOpts{dirTimes: true})
				m.umount()
			}
			t.Logf("killed before the end: %d of %d rounds", killed, often(killRounds))
			r.fsck()
		})
	}
}

// A killed process leaves no lock behind, whatever it was doing.
func TestKilledProcessHoldsNoLock(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	fill(t, r.dir, 300, 0)
	for i := range often(killRounds) {
		r.killAt(rand.N(60*time.Millisecond), "add", ".")
		start := time.Now()
		if res := r.run("status"); res.code != 0 && res.code != 1 {
			t.Fatalf("round %d: %v", i, res)
		}
		// No limit on time here, only on waiting for somebody who is dead.
		if d := time.Since(start); d > 20*time.Second {
			t.Errorf("status waited %v for a dead process", d)
		}
	}
	r.commit()
	r.wantClean()
}
