//go:build bench

package integration

import (
	"context"
	"fmt"
	"iter"
	"path/filepath"
	"testing"

	"bole/internal/benchkit"
	"bole/internal/treegen"
	"bole/lmdbstore"
	"bole/merkle"
	"bole/snapshot"
)

// TestBenchMountReady times `bole mount` for a small and a large commit, and
// with 1 and 10,000 commits behind it.
func TestBenchMountReady(t *testing.T) {
	small, large := newRepo(t), committedBench(t)
	write(t, small.path("f"), "x")
	small.must("add", ".")
	small.must("commit", "-m", "one file")
	many := newFastRepo(t)
	manyCommits(t, many.dir, 10_000)
	for _, c := range []struct {
		name string
		r    *repo
	}{{"1 file, 1 commit", small}, {"57,420 entries, 1 commit", large}, {"1 file, 10,000 commits", many}} {
		v := c.r.view("HEAD")
		var times []float64
		for range rounds {
			v.m = &mnt{t: t, dir: v.dir}
			t.Cleanup(v.m.destroy)
			times = append(times, seconds(t, c.r.ofBole("mount", "HEAD", v.dir)))
			v.m.pid = daemonOf(t, v.dir)
			v.m.umount()
		}
		benchkit.AtMost(t, "mount ready: "+c.name, benchkit.Median(times)*1000, 100, "ms")
	}
}

// manyCommits grows a history through the library: starting the program
// 10,000 times would measure nothing else.
func manyCommits(t testing.TB, dir string, n int) {
	t.Helper()
	r, err := snapshot.Open(dir, snapshot.OpenOptions{})
	ok(t, err)
	defer func() { ok(t, r.Close()) }()
	var parent merkle.Hash
	for i := range n {
		parent, _, err = r.Commit(context.Background(), snapshot.Request{Branch: "main", Parent: parent,
			Changes: func(*lmdbstore.Reader) iter.Seq2[merkle.Change, error] {
				return func(yield func(merkle.Change, error) bool) {
					yield(merkle.Change{Path: []byte("f"), Op: merkle.OpSet, Entry: merkle.Entry{Kind: merkle.KindSymlink,
						Perm: 0o777, Mtime: int64(i), Size: 8, Target: fmt.Appendf(nil, "%08d", i)}}, nil)
				}
			}, Meta: snapshot.Meta{Message: "one of many"}})
		ok(t, err)
	}
}

// TestBenchBrowse compares listing and reading the benchmark tree with ext4,
// cold and warm.
func TestBenchBrowse(t *testing.T) {
	r := committedBench(t)
	img := image(t, 1<<30, treegen.Bench)
	v := r.view("HEAD")
	list := func(dir string) func() error { return program("find", dir, "-ls") }
	pack := func(dir string) func() error {
		return program("sh", "-c", `tar -C "$1" -cf - . | cat >/dev/null`, "sh", dir)
	}
	cold := func() error { return v.fresh(true) }
	for _, w := range []struct {
		name       string
		work       func(string) func() error
		cold, warm float64
	}{{"find -ls", list, 1.3, 1.0}, {"tar of all content", pack, 0.5, 1.1}} {
		c := alternate(t, rounds,
			benchkit.Arm{Name: w.name + ", bole cold", Prepare: cold, Run: w.work(v.dir)},
			benchkit.Arm{Name: w.name + ", ext4 cold", Prepare: img.Remount, Run: w.work(img.Dir)})
		ok(t, w.work(v.dir)())
		h := alternate(t, 2*rounds+1,
			benchkit.Arm{Name: w.name + ", bole warm", Run: w.work(v.dir)},
			benchkit.Arm{Name: w.name + ", ext4 warm", Run: w.work(img.Dir)})
		benchkit.AtMost(t, w.name+", cold", c[0]/c[1], w.cold, "x ext4")
		benchkit.AtMost(t, w.name+", warm", h[0]/h[1], w.warm, "x ext4")
	}
	rss, err := benchkit.RssAnon(v.m.pid)
	ok(t, err)
	benchkit.AtMost(t, "daemon's RssAnon after reading everything", float64(rss)/(1<<20), 64, "MiB")
}

// TestBenchLargeFile reads a file of 2 GiB through the mount and from the disk.
func TestBenchLargeFile(t *testing.T) {
	const size = 2 << 30
	r := newRepo(t)
	name := r.path("large")
	ok(t, treegen.Large(name, size, 1))
	r.must("add", ".")
	r.must("commit", "-m", "2 GiB")
	whole, err := filepath.Glob(r.path(".bole", "contents", "whole", "*", "*"))
	if err != nil || len(whole) != 1 {
		t.Fatalf("whole files %v, %v", whole, err)
	}
	for _, io := range []struct {
		mode  string
		least float64
	}{{"passthrough", 0.95}, {"stateless", 0.4}} {
		v := r.view("HEAD", "--io", io.mode)
		through := func() error { return readAll(filepath.Join(v.dir, "large")) }
		native := func() error { return readAll(name) }
		drop := func() error { _, err := benchkit.DropPages(name); return err }
		c := alternate(t, rounds,
			benchkit.Arm{Name: io.mode + ", cold", Prepare: func() error { return v.fresh(true) }, Run: through},
			benchkit.Arm{Name: "native, cold", Prepare: drop, Run: native})
		ok(t, native())
		ok(t, through())
		w := alternate(t, rounds,
			benchkit.Arm{Name: io.mode + ", warm", Run: through},
			benchkit.Arm{Name: "native, warm", Run: native})
		benchkit.AtLeast(t, "2 GiB read, "+io.mode+", cold", c[1]/c[0], io.least, "x native")
		benchkit.AtLeast(t, "2 GiB read, "+io.mode+", warm", w[1]/w[0], io.least, "x native")
		v.m.umount()
		v.m = nil
	}
}
