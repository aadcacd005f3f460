package integration

import (
	"fmt"
	"testing"
)

// forgetRounds walks and reads a mount in a memory group that is too small to
// hold it, so that the kernel forgets between rounds, and returns the daemon's
// own memory after each.
func forgetRounds(t *testing.T, m *mnt, files, rounds int, limit int64) []int64 {
	t.Helper()
	g := newMemoryGroup(t, limit)
	script := `n=$(find "$1" -type f | wc -l) && find "$1" -type f -print0 | xargs -0 cat | wc -c >/dev/null && echo $n`
	var sizes []int64
	for range rounds {
		res := run(t, command{args: g.wrap("sh", "-c", script, "sh", m.dir)})
		if res.code != 0 || res.stdout != fmt.Sprintln(files) {
			t.Fatalf("%v", res)
		}
		g.force(t)
		sizes = append(sizes, rssAnon(t, m.pid))
	}
	return sizes
}

func checkMemory(t *testing.T, m *mnt, sizes []int64) {
	t.Helper()
	mibs := make([]string, len(sizes))
	for i, s := range sizes {
		mibs[i] = fmt.Sprintf("%.1f", float64(s)/mib)
	}
	t.Logf("RssAnon after each round, MiB: %v", mibs)
	// Close: within a quarter and 4 MiB for the collector's mood.
	if last, second := sizes[len(sizes)-1], sizes[1]; last > second+second/4+4*mib {
		t.Errorf("memory grew from %d MiB in round 2 to %d MiB in round %d", second/mib, last/mib, len(sizes))
	}
	forgets := m.requests()
	if forgets["FORGET"]+forgets["BATCH_FORGET"] == 0 {
		t.Errorf("the kernel forgot nothing, so the test shows nothing: %v", forgets)
	}
}

func TestCase38MemoryPerFile(t *testing.T) {
	files := often(20_000)
	r := newFastRepo(t)
	for i := range files {
		write(t, r.path(fmt.Sprintf("d%03d", i%200), fmt.Sprint(i)), fmt.Sprint("content ", i))
	}
	r.commit()
	m := r.mount("HEAD")
	checkMemory(t, m, forgetRounds(t, m, files, 6, 24*mib))
	m.umount()
}
