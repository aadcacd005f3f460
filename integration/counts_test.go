package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"bole/internal/treegen"
)

// info returns `bole info --json`.
func (r *repo) info() map[string]any {
	r.t.Helper()
	return parseJSON[map[string]any](r.t, r.must("info", "--json"))
}

// memoryLimit holds for every command on the benchmark tree.
const memoryLimit = 100 * mib

// lean fails the test when a command took more memory than it may. The race
// detector multiplies memory and is not measured.
func lean(t testing.TB, res result, limit int64) {
	t.Helper()
	if underRace {
		return
	}
	if res.usage.MaxRSS > limit {
		t.Errorf("%v takes %.1f MiB, at most %d MiB wanted", res.args[1:], float64(res.usage.MaxRSS)/mib, limit/mib)
	}
	t.Logf("%v: %.1f MiB", res.args[3:], float64(res.usage.MaxRSS)/mib)
}

// benchRepo makes the benchmark tree in a new repository, not yet added.
func benchRepo(t testing.TB) *repo {
	t.Helper()
	dir := filepath.Join(scratch(t), "R")
	mkdir(t, dir)
	ok(t, treegen.Bench(dir))
	return initRepo(t, dir)
}

// The first commit of the benchmark tree, in counts: transactions, barriers,
// bytes, memory; then what reading it costs the daemon.
func TestTreeOfFiftyThousandFiles(t *testing.T) {
	r := benchRepo(t)
	contentsBefore := blocks(t, r.path(".bole"))
	add := r.measured("add", ".")
	if add.code != 0 {
		t.Fatalf("%v", add)
	}
	lean(t, add, memoryLimit)
	// strace would be measured with the commit: a copy of the stage is
	// committed for its memory.
	lean(t, r.copyTo(t).measured("commit", "-m", "first"), memoryLimit)
	before := r.info()
	syncs, calls, commit := countSyncs(t, command{args: []string{boleBin, "-C", r.dir, "commit", "-m", "first"}})
	if commit.code != 0 {
		t.Fatalf("%v", commit)
	}
	if syncs > 5 || syncs == 0 {
		t.Errorf("commit waits %d times for the disk, at most 5 wanted: %q", syncs, calls)
	}
	t.Logf("commit: %d fsync-like calls", syncs)
	after := r.info()
	if a, b := lastTxn(t, before), lastTxn(t, after); b != a+1 {
		t.Errorf("commit raised the transaction number from %d to %d, want exactly one", a, b)
	}
	if n := nodePages(t, after); n > 8*mib {
		t.Errorf("the node table takes %d bytes of pages, at most 8 MiB wanted", n)
	} else {
		t.Logf("node table: %.2f MiB", float64(n)/mib)
	}
	db := blocks(t, r.path(".bole", "db"))
	if n := blocks(t, r.path(".bole")) - db - contentsBefore; n > 60_000_000 {
		t.Errorf("contents take %d bytes on disk, at most 60 MB wanted", n)
	} else {
		t.Logf("contents: %.1f MB, database %.1f MB", float64(n)/1e6, float64(db)/1e6)
	}
	for _, args := range [][]string{{"status"}, {"log"}, {"add", "."}, {"fsck", "--contents"}} {
		res := r.measured(args...)
		if res.code != 0 {
			t.Errorf("%v", res)
		}
		lean(t, res, memoryLimit)
	}
	ok(t, os.WriteFile(r.path("class_00", "one more"), []byte("x"), 0o644))
	r.must("add", ".")
	second := r.measured("commit", "-m", "second")
	lean(t, second, memoryLimit)
	r.wantClean()
	t.Run("reading", func(t *testing.T) { readBenchmarkTree(t, r) })
}

func lastTxn(t testing.TB, info map[string]any) uint64 {
	t.Helper()
	return numberAt(t, info, "database", "last_txn")
}

// nodePages returns the bytes of all pages of the node table.
func nodePages(t testing.TB, info map[string]any) uint64 {
	t.Helper()
	return numberAt(t, info, "database", "tables", "nodes", "bytes")
}

func readBenchmarkTree(t *testing.T, r *repo) {
	rr := *r
	rr.t = t
	m := rr.mount("HEAD", "--io", "stateless")
	list := func() { tool(t, "find", m.dir, "-ls") }
	content := func() { tool(t, "sh", "-c", `tar -C "$1" -cf - . | cat >/dev/null`, "sh", m.dir) }
	cold := m.during(list)
	t.Logf("find -ls cold: %v", cold)
	if warm := m.quietest(5, list); warm.total() != 0 {
		t.Errorf("find -ls warm reaches the daemon: %v", warm)
	}
	cold = m.during(content)
	t.Logf("tar cold: %v", cold)
	// Push ahead: fewer reads than files.
	if cold["READ"] > treegen.BenchFiles/3 {
		t.Errorf("tar of %d files sends %d READ requests: nothing is pushed ahead", treegen.BenchFiles, cold["READ"])
	}
	if warm := m.quietest(5, content); warm.total() != 0 {
		t.Errorf("tar warm reaches the daemon: %v", warm)
	}
	if n := rssAnon(t, m.pid); n > 64*mib && !underRace {
		t.Errorf("the daemon's RssAnon is %d MiB, at most 64 wanted", n/mib)
	}
	m.umount()

	fresh := rr.mount("HEAD", "--io", "stateless")
	if res := bole(t, "warm", fresh.dir); res.code != 0 {
		t.Fatalf("%v", res)
	}
	paths := lines(tool(t, "find", fresh.dir, "-type", "f"))
	rand.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
	shuffled := fresh.quietest(5, func() {
		for _, p := range paths {
			if b, err := os.ReadFile(p); err != nil || len(b) == 0 {
				t.Fatalf("%s: %d bytes, %v", p, len(b), err)
			}
		}
	})
	if shuffled.total() != 0 {
		t.Errorf("after warm, a shuffled read of %d files reaches the daemon: %v", len(paths), shuffled)
	}
	if n := rssAnon(t, fresh.pid); n > 64*mib && !underRace {
		t.Errorf("the daemon's RssAnon after warm is %d MiB, at most 64 wanted", n/mib)
	} else {
		t.Logf("RssAnon after warm: %.1f MiB", float64(n)/mib)
	}
	fresh.umount()
}

// ls -l asks for attributes it already has, and for ACLs that are not there.
func TestListingOfTenThousandFiles(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	mkdir(t, r.path("flat"))
	ok(t, treegen.Flat(r.path("flat"), 10_000, 100))
	r.commit()
	for _, io := range []string{"stateless", "passthrough", "handles"} {
		m := r.mount("HEAD", "--io", io)
		got := m.during(func() {
			if n := len(lines(tool(t, "ls", "-l", m.path("flat")))); n != 10_001 {
				t.Errorf("ls -l prints %d lines", n)
			}
		})
		if n := got["GETATTR"] + got["GETXATTR"] + got["LISTXATTR"] + got["STATX"]; n >= 10 {
			t.Errorf("--io %s: ls -l sends %d attribute requests: %v", io, n, got)
		}
		t.Logf("--io %s: ls -l cold: %v", io, got)
		// The kernel remembers no refused attribute: ls asks for those of the
		// directory or of one file, learns that there are none, and stops.
		warm := m.quietest(5, func() { tool(t, "ls", "-l", m.path("flat")) })
		if warm.total() != warm["GETXATTR"] || warm["GETXATTR"] > 2 {
			t.Errorf("--io %s: ls -l warm reaches the daemon: %v", io, warm)
		}
		m.umount()
	}
}

// A flat directory that is edited changes few bytes of nodes.
func TestEditInALargeDirectoryWritesLittle(t *testing.T) {
	t.Parallel()
	r := newFastRepo(t)
	ok(t, treegen.Flat(r.dir, 50_000, 0))
	r.commit()
	for i := range 5 {
		before := nodePages(t, r.info())
		name := fmt.Sprint("edited ", i)
		write(t, r.path(name), "x")
		r.must("add", name)
		r.must("commit", "-m", name)
		if grown := int64(nodePages(t, r.info())) - int64(before); grown > 64*kib {
			t.Errorf("one file in 50,000 grew the node table by %d bytes", grown)
		}
	}
}
