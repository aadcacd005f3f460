//go:build scale

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"bole/internal/benchkit"
	"bole/internal/treegen"
	"bole/merkle"
	"bole/snapshot"
)

const million = 1_000_000

// TestScaleDirectory looks at one directory of 1,000,000 files.
func TestScaleDirectory(t *testing.T) {
	r := newRepo(t)
	ok(t, treegen.Flat(r.path("flat"), million, 0))
	for i := range 200 { // directories of ten, for comparison
		ok(t, treegen.Flat(r.path("tens", fmt.Sprintf("%03d", i)), 10, 0))
	}
	r.must("add", ".")
	r.must("commit", "-m", "a million names")
	t.Run("lookup", func(t *testing.T) { scaleLookup(t, r) })
	t.Run("library", func(t *testing.T) { scaleLibrary(t, r) })
	t.Run("listing", func(t *testing.T) { scaleListing(t, r) })
	t.Run("edit", func(t *testing.T) { scaleEdit(t, r) })
}

// entriesOf returns the names in a folder, through a listing without attributes.
func entriesOf(t testing.TB, dir string) []string {
	t.Helper()
	f, err := os.Open(dir)
	ok(t, err)
	defer f.Close()
	names, err := f.Readdirnames(-1)
	ok(t, err)
	return names
}

// scaleLookup compares lookups of names that the kernel does not know yet, in
// a directory of a million and in directories of ten.
func scaleLookup(t *testing.T, r *repo) {
	const lookups = 2000
	v := r.within(t).view("HEAD")
	flat := entriesOf(t, r.path("flat"))
	tens := entriesOf(t, r.path("tens", "000"))
	stat := func(paths []string) func() error {
		return func() error {
			for _, p := range paths {
				var st unix.Stat_t
				if err := unix.Lstat(p, &st); err != nil {
					return fmt.Errorf("%s: %w", p, err)
				}
			}
			return nil
		}
	}
	var large, small []string
	prepare := func() error {
		if err := v.fresh(false); err != nil {
			return err
		}
		large, small = large[:0], small[:0]
		for range lookups {
			large = append(large, filepath.Join(v.dir, "flat", flat[rand.IntN(len(flat))]))
		}
		var dirs []string
		for i := range 200 {
			dir := filepath.Join(v.dir, "tens", fmt.Sprintf("%03d", i))
			dirs = append(dirs, dir)
			for _, n := range tens {
				small = append(small, filepath.Join(dir, n))
			}
		}
		return stat(append(dirs, filepath.Join(v.dir, "flat")))()
	}
	got := alternate(t, rounds,
		benchkit.Arm{Name: "2,000 lookups among 1,000,000", Prepare: prepare, Run: func() error { return stat(large)() }},
		benchkit.Arm{Name: "2,000 lookups among ten", Prepare: prepare, Run: func() error { return stat(small)() }})
	benchkit.AtMost(t, "lookup through a fresh mount among 1,000,000", got[0]/got[1], 1.5, "x ten")
}

// within is the repository in a part of a test.
func (r *repo) within(t testing.TB) *repo {
	c := *r
	c.t = t
	return &c
}

// scaleLibrary measures a lookup without FUSE, once each node was checked.
func scaleLibrary(t *testing.T, r *repo) {
	repo, err := snapshot.Open(r.dir, snapshot.OpenOptions{})
	ok(t, err)
	defer func() { ok(t, repo.Close()) }()
	rev, err := repo.Resolve("HEAD")
	ok(t, err)
	root, err := repo.Lookup(rev.Commit, "flat")
	ok(t, err)
	names := entriesOf(t, r.path("flat"))
	rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var e merkle.Entry
	i := 0
	look := func(rd merkle.Reader) error {
		d, err := merkle.OpenDir(rd, &root.Hash)
		if err != nil {
			return err
		}
		_, err = d.Lookup([]byte(names[i%len(names)]), &e)
		i++
		return err
	}
	once := func() { ok(t, repo.View(look)) }
	for range 200_000 {
		once()
	}
	benchkit.AtMost(t, "allocations of a lookup among 1,000,000", testing.AllocsPerRun(20_000, once), 0, "")
	const n = 200_000
	var times []float64
	for range rounds {
		times = append(times, seconds(t, func() error {
			for range n {
				once()
			}
			return nil
		})/n*1e6)
	}
	benchkit.AtMost(t, "lookup in the library among 1,000,000", benchkit.Median(times), 6, "us")
}

// scaleListing compares `ls -f` with ext4 and looks at the daemon afterwards.
func scaleListing(t *testing.T, r *repo) {
	img := image(t, 8<<30, func(dir string) error { return treegen.Flat(filepath.Join(dir, "flat"), million, 0) })
	v := r.within(t).view("HEAD")
	got := alternate(t, rounds,
		benchkit.Arm{Name: "ls -f, bole cold", Prepare: func() error { return v.fresh(true) }, Run: program("ls", "-f", filepath.Join(v.dir, "flat"))},
		benchkit.Arm{Name: "ls -f, ext4 cold", Prepare: img.Remount, Run: program("ls", "-f", filepath.Join(img.Dir, "flat"))})
	benchkit.AtMost(t, "ls -f of 1,000,000 names, cold", got[0]/got[1], 3, "x ext4")
	warm := alternate(t, rounds,
		benchkit.Arm{Name: "ls -f, bole warm", Run: program("ls", "-f", filepath.Join(v.dir, "flat"))},
		benchkit.Arm{Name: "ls -f, ext4 warm", Run: program("ls", "-f", filepath.Join(img.Dir, "flat"))})
	benchkit.AtMost(t, "ls -f of 1,000,000 names, warm", warm[0]/warm[1], 3, "x ext4")
	ok(t, program("ls", "-l", filepath.Join(v.dir, "flat"))())
	rss, err := benchkit.RssAnon(v.m.pid)
	ok(t, err)
	benchkit.AtMost(t, "daemon's RssAnon after ls -l of 1,000,000 files", float64(rss)/(1<<20), 128, "MiB")
}

// scaleEdit counts the bytes of the nodes that one edit adds.
func scaleEdit(t *testing.T, r *repo) {
	names := entriesOf(t, r.path("flat"))
	before := nodeBytes(t, r)
	write(t, r.path("flat", names[rand.IntN(len(names))]), "edited")
	r.must("add", ".")
	r.must("commit", "-m", "one edit")
	benchkit.AtMost(t, "nodes written by one edit among 1,000,000", float64(nodeBytes(t, r)-before)/1024, 32, "KiB")
}

// nodeBytes sums the sizes of all nodes in the database.
func nodeBytes(t testing.TB, r *repo) uint64 {
	t.Helper()
	repo, err := snapshot.Open(r.dir, snapshot.OpenOptions{})
	ok(t, err)
	defer func() { ok(t, repo.Close()) }()
	res, err := repo.Fsck(context.Background(), snapshot.FsckOptions{})
	ok(t, err)
	return res.NodeBytes
}
