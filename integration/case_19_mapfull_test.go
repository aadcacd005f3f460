package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// withMap sets the size of the database map for the next commands.
func (r *repo) withMap(bytes int) *repo {
	other := *r
	other.env = append(append([]string(nil), r.env...), fmt.Sprintf("BOLE_TEST_MAP_SIZE=%d", bytes))
	return &other
}

func TestCase19MapFull(t *testing.T) {
	t.Parallel()
	r := newFastRepo(t)
	write(t, r.path("base"), "b")
	c1 := r.commit()
	m := r.mount(c1)
	long := strings.Repeat("n", 192)
	files := often(50_000)
	for i := range files {
		p := r.path(fmt.Sprintf("d%02d", i%50), fmt.Sprintf("%s-%06d", long, i))
		if i < 50 {
			write(t, p, "")
		} else {
			ok(t, os.WriteFile(p, nil, 0o644))
		}
	}
	// Each step doubles the map until both commands succeed.
	refused := map[string]int{}
	for size := 64 * kib; ; size *= 2 {
		if size > 4*gib {
			t.Fatal("no map is large enough")
		}
		small := r.withMap(size)
		add := small.measured("add", ".")
		if add.code == 0 {
			if c := small.run("commit", "-m", "many"); c.code == 0 {
				break
			} else {
				refused["commit"]++
				checkMapFull(t, r, m, c, c1)
			}
			continue
		}
		refused["add"]++
		checkMapFull(t, r, m, add, c1)
		if add.usage.MaxRSS > 300*mib && !underRace {
			t.Errorf("add takes %d MiB", add.usage.MaxRSS/mib)
		}
	}
	if refused["add"] == 0 {
		t.Error("the smallest map was never full: the knob does nothing")
	}
	t.Logf("refused: %v", refused)
	r.wantClean()
	if got := len(readTree(t, r.elsewhere("HEAD").dir)); got != files+52 {
		t.Errorf("%d entries in the commit, want %d", got, files+52)
	}
	r.fsck()
	m.umount()
}

// checkMapFull wants words that help, history as it was, and readers that go on.
func checkMapFull(t *testing.T, r *repo, m *mnt, res result, head string) {
	t.Helper()
	checkRefused(t, res)
	if !containsFold(res.stderr, "map") && !containsFold(res.stderr, "full") {
		t.Errorf("the message does not say what is full: %v", res)
	}
	if got := r.head(); got != head {
		t.Errorf("HEAD moved to %s by a failed command", got)
	}
	if read(t, m.path("base")) != "b" {
		t.Error("the mount does not go on")
	}
	if fs := r.run("fsck"); fs.code != 0 {
		t.Errorf("fsck after a full map: %v", fs)
	}
}

// With the map of the design the same work goes through.
func TestCase19ManyCommits(t *testing.T) {
	t.Parallel()
	r := newFastRepo(t)
	for i := range 1000 {
		write(t, r.path(fmt.Sprintf("d%d", i%10), fmt.Sprint(i)), "")
	}
	commits := often(200)
	for c := range commits {
		for i := range 1000 {
			ok(t, os.WriteFile(r.path(fmt.Sprintf("d%d", i%10), fmt.Sprint(i)), []byte(fmt.Sprint(c, i)), 0o644))
		}
		r.must("add", ".")
		r.must("commit", "-m", fmt.Sprint("round ", c))
	}
	if got := len(r.log()); got != commits {
		t.Errorf("%d commits, want %d", got, commits)
	}
	r.fsck()
	r.wantClean()
}
