package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bole/internal/treegen"

	"golang.org/x/sys/unix"
)

// inode returns a file's number on its disk.
func inode(t testing.TB, path string) uint64 {
	t.Helper()
	var st unix.Stat_t
	ok(t, unix.Lstat(path, &st))
	return st.Ino
}

// wholeFiles returns the numbers of the files that the repository stores whole.
func wholeFiles(t testing.TB, contents string) map[uint64]bool {
	t.Helper()
	found := make(map[uint64]bool)
	ok(t, filepath.WalkDir(contents, func(path string, d os.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			found[inode(t, path)] = true
		}
		return err
	}))
	return found
}

func TestImportMoveLinksTheFiles(t *testing.T) {
	t.Parallel()
	base := scratch(t)
	src := filepath.Join(base, "src")
	mkdir(t, filepath.Join(src, "d"))
	paths := []string{"a", "b", "d/c"}
	before := make(map[string]uint64)
	for i, p := range paths {
		ok(t, treegen.Large(filepath.Join(src, p), 3*mib, uint64(i)))
		before[p] = inode(t, filepath.Join(src, p))
	}
	write(t, filepath.Join(src, "small"), "small")
	// What somebody has open for writing, or knows by a second name, is copied.
	ok(t, treegen.Large(filepath.Join(src, "open"), 3*mib, 10))
	ok(t, treegen.Large(filepath.Join(src, "linked"), 3*mib, 11))
	ok(t, os.Link(filepath.Join(src, "linked"), filepath.Join(base, "other name")))
	writer, err := os.OpenFile(filepath.Join(src, "open"), os.O_WRONLY, 0)
	ok(t, err)
	defer writer.Close()
	copied := []uint64{inode(t, filepath.Join(src, "open")), inode(t, filepath.Join(src, "linked"))}
	want := readTree(t, src)

	r := initRepo(t, filepath.Join(base, "bare"), "--bare")
	res := r.run("import", "--move", src, "-m", "moved")
	if res.code != 0 {
		t.Fatalf("%v", res)
	}
	stored := wholeFiles(t, filepath.Join(base, "bare"))
	for _, p := range paths {
		if !stored[before[p]] {
			t.Errorf("%s was copied, not linked", p)
		}
		if exists(filepath.Join(src, p)) {
			t.Errorf("%s is still at its old place", p)
		}
	}
	for _, ino := range copied {
		if stored[ino] {
			t.Error("a file that others may write to was linked into the store")
		}
	}
	// A late write through the old descriptor must not reach the store.
	_, err = writer.WriteAt([]byte("late write"), 0)
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(base, "other name"), []byte("late"), 0o644))
	r.fsck()
	m := r.mount("HEAD")
	sameTree(t, "mount", want, readTree(t, m.dir), sameOpts{})
	m.umount()
}

// Both commands say before they start how much is copied and whether it fits.
func TestImportSaysWhatItWillCopy(t *testing.T) {
	t.Parallel()
	base := scratch(t)
	src := filepath.Join(base, "src")
	mkdir(t, src)
	ok(t, treegen.Large(filepath.Join(src, "a"), 4*mib, 1))
	disk := filepath.Join(base, "disk")
	mkdir(t, disk)
	mountTmpfs(t, disk, "2m")
	r := initRepo(t, filepath.Join(disk, "R"), "--bare")
	res := r.run("import", src, "-m", "too much")
	checkRefused(t, res)
	if !strings.Contains(res.both(), "4") || (!containsFold(res.both(), "fit") && !containsFold(res.both(), "space") && !containsFold(res.both(), "free")) {
		t.Errorf("the message does not say how much there is and that it does not fit: %v", res)
	}
	if !exists(filepath.Join(src, "a")) {
		t.Error("the source is gone")
	}
	resizeTmpfs(t, disk, "64m")
	r.must("import", src, "-m", "fits")
	r.fsck()
}

func TestImportIntoAFolder(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("f"), "f")
	r.commit()
	src := scratch(t)
	write(t, filepath.Join(src, "x", "y"), "y")
	want := readTree(t, src)
	r.must("import", src, "deep/in", "-m", "below")
	m := r.mount("HEAD:deep/in")
	sameTree(t, "mount of the folder", want, readTree(t, m.dir), sameOpts{})
	m.umount()
	checkKept(t, r, "f", "f")
	for _, dest := range []string{"..", "../x", ".bole", "a/.BOLE/b", "f", "f/x"} {
		checkRefused(t, r.run("import", src, dest, "-m", "bad"))
	}
	checkRefused(t, r.run("import", filepath.Join(src, "none"), "-m", "bad"), "none")
	r.fsck()
}

// Large contents, killed at random points and run again: the same tree in the
// end, and no source is missing before the commit.
func killedMove(t *testing.T, files int, size int64, kills int) {
	base := scratch(t)
	src := filepath.Join(base, "src")
	mkdir(t, src)
	for i := range files {
		ok(t, treegen.Large(filepath.Join(src, fmt.Sprintf("file%03d", i)), size, uint64(i)))
	}
	want := readTree(t, src)
	r := initRepo(t, filepath.Join(base, "bare"), "--bare")
	args := []string{"import", "--move", src, "-m", "x"}
	// One run on links measures how long it takes.
	trial := filepath.Join(base, "trial")
	tool(t, "cp", "-a", "--reflink=auto", src, trial)
	other := initRepo(t, filepath.Join(base, "other"), "--bare")
	d := other.took("import", "--move", trial, "-m", "x")
	ok(t, os.RemoveAll(other.dir))

	killed := 0
	for range kills {
		if ended, code := r.killAt(rand.N(d), args...); ended && code == 0 {
			break
		}
		killed++
		if len(r.log()) != 0 {
			break // killed between the commit and its end
		}
		for p, n := range want {
			if n.kind == "file" && inode(t, filepath.Join(src, p)) == 0 {
				t.Fatalf("%s is missing before the commit", p)
			}
		}
	}
	if len(r.log()) == 0 || len(readTree(t, src)) > 1 {
		r.run(args...)
	}
	t.Logf("killed %d times", killed)
	r.fsck()
	if got := len(r.log()); got != 1 {
		t.Errorf("%d commits, want 1", got)
	}
	m := r.mount("HEAD")
	sameTree(t, "mount", want, readTree(t, m.dir), sameOpts{dirTimes: true})
	m.umount()
}

func TestKilledImportMove(t *testing.T) {
	t.Parallel()
	killedMove(t, 24, 2*mib, 12)
}

// Contents may lie on another disk.
func TestContentsElsewhere(t *testing.T) {
	t.Parallel()
	base := scratch(t)
	contents := filepath.Join(base, "contents")
	mkdir(t, contents)
	mountTmpfs(t, contents, "64m")
	r := initRepo(t, filepath.Join(base, "R"), "--contents", filepath.Join(contents, "store"))
	write(t, r.path("small"), "small")
	ok(t, treegen.Large(r.path("large"), 2*mib, 1))
	id := r.commit()
	want := readTree(t, r.dir)
	m := r.mount(id)
	sameTree(t, "mount", want, readTree(t, m.dir), sameOpts{})
	m.umount()
	r.fsck()
	if blocks(t, contents) < 2*mib {
		t.Error("the contents do not lie where --contents says")
	}
	if n := blocks(t, r.path(".bole")); n > mib {
		t.Errorf(".bole takes %d bytes although the contents lie elsewhere", n)
	}
	ok(t, os.Remove(r.path("large")))
	r.must("checkout", "--force", id)
	sameTree(t, "checkout", want, readTree(t, r.dir), sameOpts{dirTimes: true})
}
