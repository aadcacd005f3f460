package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
)

// Several commits of one stage at once: it is committed once.
func TestOneStageIsCommittedOnce(t *testing.T) {
	t.Parallel()
	r := newFastRepo(t)
	for i := range often(15) {
		write(t, r.path("f"), fmt.Sprint(i))
		r.must("add", "f")
		before := len(r.log())
		results := make([]result, 4)
		var group sync.WaitGroup
		for c := range results {
			group.Go(func() { results[c] = r.run("commit", "-m", fmt.Sprint(i, c)) })
		}
		group.Wait()
		done := 0
		for _, res := range results {
			if res.code == 0 {
				done++
			} else {
				checkRefused(t, res)
			}
		}
		if after := len(r.log()); done != 1 || after != before+1 {
			t.Fatalf("round %d: %d of 4 commits succeeded, %d commits became %d", i, done, before, after)
		}
		r.wantClean()
	}
}

// Every command at once in one working directory: none loses a file that no
// commit holds, none leaves half a state.
func TestCommandsAtOnceInOneWorkingDirectory(t *testing.T) {
	t.Parallel()
	r := newFastRepo(t)
	for i := range 50 {
		write(t, r.path("d", fmt.Sprint(i)), fmt.Sprint("first ", i))
	}
	c1 := r.commit()
	for i := range 50 {
		write(t, r.path("d", fmt.Sprint(i)), fmt.Sprint("second ", i))
	}
	c2 := r.commit()
	// The default rules keep this one out of every commit.
	write(t, r.path(".~lock.precious#"), "in no commit")
	commands := [][]string{
		{"add", "."}, {"status"}, {"commit", "-m", "x"}, {"checkout", c1}, {"checkout", c2}, {"checkout", "main"}, {"checkout", "--force", "main"},
		{"update"}, {"log"}, {"diff"}, {"fsck"}, {"add", "--dry-run", "."},
	}
	var group sync.WaitGroup
	for worker := range 4 {
		rng := rand.New(rand.NewPCG(uint64(worker), 1))
		group.Go(func() {
			for i := range often(25) {
				args := commands[rng.IntN(len(commands))]
				res := r.run(args...)
				if res.signal != 0 || res.code != 0 && res.code != 1 || res.code == 1 && strings.TrimSpace(res.both()) == "" {
					t.Errorf("worker %d, round %d: %v", worker, i, res)
				}
			}
		})
	}
	group.Wait()
	r.fsck()
	if got := read(t, r.path(".~lock.precious#")); got != "in no commit" {
		t.Errorf("the untracked file holds %q", got)
	}
	for i := range 50 {
		b, err := os.ReadFile(r.path("d", fmt.Sprint(i)))
		if got := string(b); err != nil || got != fmt.Sprint("first ", i) && got != fmt.Sprint("second ", i) {
			t.Errorf("d/%d holds %q, %v", i, got, err)
		}
	}
	r.must("checkout", "--force", "main")
	r.wantClean()
}
