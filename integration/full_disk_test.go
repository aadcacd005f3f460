package integration

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// untilItFits runs a command in a tmpfs that first has one free page and then
// more, step by step, until the command succeeds; check runs after each failure.
// It returns how often the command failed.
func untilItFits(t *testing.T, disk string, cmd func() result, check func(result)) int {
	t.Helper()
	base, failed := usedPages(t, disk), 0
	for free := 1; free < 1<<16; free += 1 + free/6 {
		resizeTmpfs(t, disk, fmt.Sprintf("%dk", 4*(base+free)))
		res := cmd()
		if res.code == 0 {
			resizeTmpfs(t, disk, "512m")
			return failed
		}
		if res.signal != 0 {
			t.Fatalf("%d free pages: %v", free, res)
		}
		if !containsFold(res.stderr, "no space") && !containsFold(res.stderr, "full") {
			t.Errorf("%d free pages: the message does not say that the disk is full: %v", free, res)
		}
		failed++
		check(res)
	}
	t.Fatal("the command never succeeded")
	return failed
}

func TestFullDiskInit(t *testing.T) {
	t.Parallel()
	disk := scratch(t)
	mountTmpfs(t, disk, "4k")
	dir := filepath.Join(disk, "R")
	n := untilItFits(t, disk, func() result { return bole(t, "init", dir) }, func(res result) {
		// What a failed init leaves must not keep the next one from working.
		if st := bole(t, "-C", dir, "log"); st.code == 0 {
			t.Errorf("a repository stands after init failed: %v, then %v", res, st)
		}
	})
	if n == 0 {
		t.Error("init never failed")
	}
	r := &repo{t: t, dir: dir}
	write(t, r.path("f"), "f")
	r.commit()
	r.fsck()
}

// fullDiskRepo is a repository on a tmpfs, with one commit.
func fullDiskRepo(t *testing.T) (r *repo, disk, head string) {
	t.Helper()
	disk = scratch(t)
	mountTmpfs(t, disk, "512m")
	r = initRepo(t, filepath.Join(disk, "R"))
	write(t, r.path("kept"), "kept")
	return r, disk, r.commit()
}

func TestFullDiskAddAndCommit(t *testing.T) {
	t.Parallel()
	r, disk, head := fullDiskRepo(t)
	for i := range 400 {
		write(t, r.path(fmt.Sprintf("new%d", i%20), fmt.Sprint("file", i)), strings.Repeat(fmt.Sprintln("line", i), 100))
	}
	write(t, r.path("new0", "large"), strings.Repeat("more than a pack takes. ", 20_000))
	want := readTree(t, r.dir)
	still := func(res result) {
		if got := r.head(); got != head {
			t.Errorf("HEAD moved by a failed command: %v", res)
		}
		if fs := r.run("fsck", "--contents"); fs.code != 0 {
			t.Errorf("fsck after a full disk: %v, then %v", res, fs)
		}
	}
	named := 0
	adds := untilItFits(t, disk, func() result { return r.run("add", ".") }, func(res result) {
		still(res)
		if strings.Contains(res.stderr, "new") || strings.Contains(res.stderr, "data.mdb") || strings.Contains(res.stderr, ".bole") {
			named++
		} else {
			t.Errorf("no file is named: %v", res)
		}
	})
	commits := untilItFits(t, disk, func() result { return r.run("commit", "-m", "all") }, still)
	t.Logf("add failed %d times (%d named a file), commit %d times", adds, named, commits)
	if adds == 0 {
		t.Error("add never failed")
	}
	r.wantClean()
	r.fsck()
	m := r.mount("HEAD")
	sameTree(t, "mount", want, readTree(t, m.dir), sameOpts{})
	m.umount()
}

// A failed add must not leave entries whose contents are not there: a commit
// between the failures holds only whole files.
func TestFullDiskCommitBetween(t *testing.T) {
	t.Parallel()
	r, disk, _ := fullDiskRepo(t)
	for i := range 200 {
		write(t, r.path("new", fmt.Sprint("file", i)), strings.Repeat(fmt.Sprintln("line", i), 100))
	}
	want := readTree(t, r.dir)
	untilItFits(t, disk, func() result { return r.run("add", ".") }, func(result) {
		resizeTmpfs(t, disk, "512m")
		if res := r.run("commit", "-m", "whatever was recorded"); res.code != 0 && res.code != 1 {
			t.Errorf("%v", res)
		}
		r.fsck()
		m := r.mount("HEAD")
		got := readTree(t, m.dir)
		m.umount()
		for p, n := range got {
			if n.kind == "file" && n.differs(want[p], sameOpts{}) != "" {
				t.Errorf("%s was recorded half: %s", p, n.differs(want[p], sameOpts{}))
			}
		}
	})
	r.commitIfChanged()
	r.wantClean()
}

func TestFullDiskImport(t *testing.T) {
	t.Parallel()
	for _, move := range []bool{false, true} {
		disk := scratch(t)
		mountTmpfs(t, disk, "512m")
		r := initRepo(t, filepath.Join(disk, "R"), "--bare")
		src := filepath.Join(disk, "src")
		for i := range 200 {
			write(t, filepath.Join(src, fmt.Sprintf("d%d", i%7), fmt.Sprint("file", i)), strings.Repeat(fmt.Sprintln("line", i), 100))
		}
		write(t, filepath.Join(src, "large"), strings.Repeat("more than a pack takes. ", 20_000))
		want := readTree(t, src)
		args := []string{"import", src, "-m", "all"}
		if move {
			args = []string{"import", "--move", src, "-m", "all"}
		}
		n := untilItFits(t, disk, func() result { return r.run(args...) }, func(res result) {
			sameTree(t, "the source after a failed import", want, readTree(t, src), sameOpts{})
			if fs := r.run("fsck", "--contents"); fs.code != 0 {
				t.Errorf("fsck after a full disk: %v, then %v", res, fs)
			}
		})
		if n == 0 {
			t.Error("import never failed")
		}
		m := r.mount("HEAD")
		sameTree(t, "mount", want, readTree(t, m.dir), sameOpts{})
		m.umount()
	}
}

func TestFullDiskCheckout(t *testing.T) {
	t.Parallel()
	r, disk, head := fullDiskRepo(t)
	for i := range 100 {
		write(t, r.path("new", fmt.Sprint("file", i)), strings.Repeat(fmt.Sprintln("line", i), 100))
	}
	want := readTree(t, r.dir)
	second := r.commit()
	r.must("checkout", head)
	n := untilItFits(t, disk, func() result { return r.run("checkout", second) }, func(res result) {
		if !strings.Contains(res.stderr, "file") && !strings.Contains(res.stderr, "new") && !strings.Contains(res.stderr, ".bole") {
			t.Errorf("no file is named: %v", res)
		}
		for p, got := range readTree(t, r.dir) {
			if got.kind == "file" && got.differs(want[p], sameOpts{}) != "" {
				t.Errorf("%s was left half written", p)
			}
		}
	})
	if n == 0 {
		t.Error("checkout never failed")
	}
	sameTree(t, "checkout", want, readTree(t, r.dir), sameOpts{dirTimes: true})
	r.wantClean()
}
