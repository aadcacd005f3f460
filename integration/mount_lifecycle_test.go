package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func smallRepo(t testing.TB) *repo {
	t.Helper()
	r := newRepo(t)
	write(t, r.path("f"), "content of f")
	write(t, r.path("d", "g"), "content of g")
	r.commit()
	return r
}

func TestBusyUmountNamesTheHolder(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	holders := map[string]string{
		"an open file":      `exec 3<"$1/f" && echo in && exec sleep 60`,
		"a current folder":  `cd "$1/d" && echo in && exec sleep 60`,
		"a running program": `cd / && exec 3<"$1/d/g" && echo in && exec sleep 60`,
	}
	for name, script := range holders {
		t.Run(name, func(t *testing.T) {
			r := *r
			r.t = t
			m := r.mount("HEAD")
			p := start(t, "sh", "-c", script, "sh", m.dir)
			if p.line(t) != "in" {
				t.Fatal(p.stderr.String())
			}
			res := bole(t, "umount", m.dir)
			checkRefused(t, res, fmt.Sprint(p.pid()), "sleep")
			if !isMount(m.dir) || read(t, m.path("f")) != "content of f" {
				t.Error("the mount does not go on serving")
			}
			p.kill()
			<-p.waited
			m.umount()
		})
	}
}

func TestMountPointsThatAreRefused(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	m := &mnt{t: t, dir: r.dir}
	t.Cleanup(m.destroy)
	mkdir(t, r.path(".bole", "new"))
	ok(t, os.Symlink(r.dir, filepath.Join(filepath.Dir(r.dir), "link")))
	for _, at := range []string{r.dir, r.path(".bole"), r.path(".bole", "db"), r.path(".bole", "new"), filepath.Dir(r.dir), filepath.Join(filepath.Dir(r.dir), "link"), "/"} {
		checkRefused(t, r.run("mount", "HEAD", at))
		if isMount(at) && at != "/" {
			t.Fatalf("%s was mounted over", at)
		}
	}
	r.refused([]string{r.path("f")}, "mount", "HEAD", r.path("f"))
	r.refused([]string{r.path("not there")}, "mount", "HEAD", r.path("not there", "at all"))
	for _, rev := range []string{"nonsense", "HEAD~99", "HEAD:f", "HEAD:none", "0000000000", ""} {
		dir := filepath.Join(scratch(t), "M")
		mkdir(t, dir)
		checkRefused(t, r.run("mount", rev, dir))
		if isMount(dir) {
			t.Errorf("%q was mounted", rev)
		}
	}
	for _, io := range []string{"nonsense", ""} {
		dir := filepath.Join(scratch(t), "M")
		mkdir(t, dir)
		if res := r.run("mount", "--io", io, "HEAD", dir); res.code != 2 {
			t.Errorf("--io %q: %v", io, res)
		}
	}
	r.wantClean()
}

// A mount on a place that is mounted already would hide the first one.
func TestMountOnAMount(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	m := r.mount("HEAD")
	checkRefused(t, r.run("mount", "HEAD", m.dir))
	if read(t, m.path("f")) != "content of f" {
		t.Error("the first mount does not go on")
	}
	m.umount()
	if isMount(m.dir) {
		t.Error("a second mount lay below")
	}
}

func TestMountFlagsAndNames(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	m := r.mount("HEAD")
	line := mountLine(t, m.dir)
	if !mountOptions(line, "ro", "nosuid", "nodev") {
		t.Errorf("not ro, nosuid, nodev: %s", line)
	}
	_, super, _ := strings.Cut(line, " - ")
	fields := strings.Fields(super)
	if len(fields) < 3 || fields[0] != "fuse.bole" {
		t.Fatalf("the type is not fuse.bole: %s", line)
	}
	if !strings.Contains(fields[1], "@") || strings.Contains(fields[1], ":") {
		t.Errorf("the source %q is not REPO@REV", fields[1])
	}
	opts := "," + fields[2] + ","
	if !strings.Contains(opts, ",ro,") || !strings.Contains(opts, ",default_permissions,") {
		t.Errorf("not ro with default_permissions: %s", line)
	}
	if strings.Contains(opts, ",allow_other,") {
		t.Errorf("allow_other without being asked: %s", line)
	}
	m.umount()
	m = r.mount("HEAD", "--allow-other")
	if !strings.Contains(mountLine(t, m.dir), "allow_other") {
		t.Errorf("no allow_other although asked: %s", mountLine(t, m.dir))
	}
	m.umount()
}

func TestForegroundMount(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		dir := filepath.Join(scratch(t), "M")
		mkdir(t, dir)
		m := &mnt{t: t, dir: dir}
		t.Cleanup(m.destroy)
		p := start(t, boleBin, "-C", r.dir, "mount", "--foreground", "HEAD", dir)
		waitMounted(t, dir, p)
		if read(t, m.path("f")) != "content of f" {
			t.Error("the mount reads wrong")
		}
		ok(t, syscall.Kill(p.pid(), sig))
		if code := p.wait(t, 20*time.Second); code > 1 && code != 128+int(sig) {
			t.Errorf("exit %d after signal %d: %s", code, sig, p.stderr.String())
		}
		if isMount(dir) {
			t.Errorf("signal %d leaves the mount", sig)
		}
		if left := r.leases(); len(left) != 0 {
			t.Errorf("signal %d leaves the leases %v", sig, left)
		}
	}
	// Umount from outside ends the command with 0.
	dir := filepath.Join(scratch(t), "M")
	mkdir(t, dir)
	t.Cleanup((&mnt{t: t, dir: dir}).destroy)
	p := start(t, boleBin, "-C", r.dir, "mount", "--foreground", "HEAD", dir)
	waitMounted(t, dir, p)
	if res := bole(t, "umount", dir); res.code != 0 {
		t.Errorf("%v", res)
	}
	if code := p.wait(t, 20*time.Second); code != 0 {
		t.Errorf("exit %d after umount: %s", code, p.stderr.String())
	}
}

// A background mount ends cleanly when it is asked to, and not with its terminal.
func TestSignalsToTheDaemon(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	m := r.mount("HEAD")
	ok(t, syscall.Kill(m.pid, syscall.SIGHUP))
	time.Sleep(200 * time.Millisecond)
	if !isMount(m.dir) || read(t, m.path("f")) != "content of f" {
		t.Fatal("SIGHUP ends the mount")
	}
	ok(t, syscall.Kill(m.pid, syscall.SIGTERM))
	m.waitGone()
	if isMount(m.dir) {
		t.Error("SIGTERM leaves the mount")
	}
	if left := r.leases(); len(left) != 0 {
		t.Errorf("SIGTERM leaves the leases %v", left)
	}
}

// Two mounts at one place at once: one stands, the other is refused.
func TestTwoMountsAtOnePlaceAtOnce(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	for range 5 {
		m := &mnt{t: t, dir: filepath.Join(scratch(t), "M")}
		mkdir(t, m.dir)
		t.Cleanup(m.destroy)
		results := make([]result, 4)
		var group sync.WaitGroup
		for i := range results {
			group.Go(func() { results[i] = r.run("mount", "HEAD", m.dir) })
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
		if done != 1 {
			t.Errorf("%d of 4 mounts at one place succeeded", done)
		}
		m.pid = daemonOf(t, m.dir)
		if read(t, m.path("f")) != "content of f" {
			t.Error("the mount reads wrong")
		}
		m.umount()
	}
	if left := r.leases(); len(left) != 0 {
		t.Errorf("leases left: %v", left)
	}
}

func waitMounted(t testing.TB, dir string, p *process) {
	t.Helper()
	for range 500 {
		if isMount(dir) {
			return
		}
		if p.ended() {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("no mount at %s: %s", dir, p.stderr.String())
}

func TestMountsListAndLeases(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	id := r.head()
	m1 := r.mount("HEAD")
	m2 := r.mount("HEAD:d", "--io", "stateless")
	_ = readTree(t, m1.dir)
	text := bole(t, "mounts")
	if text.code != 0 || !strings.Contains(text.stdout, m1.dir) || !strings.Contains(text.stdout, m2.dir) {
		t.Errorf("%v", text)
	}
	list := listMounts(t)
	for _, m := range []*mnt{m1, m2} {
		e := findMount(list, m.dir)
		if e == nil {
			t.Fatalf("%s is not listed", m.dir)
		}
		if got := fmt.Sprint(e["commit"]); got != id {
			t.Errorf("%s shows commit %s", m.dir, got)
		}
		if pid := numberAt(t, map[string]any(e), "pid"); int(pid) != m.pid {
			t.Errorf("%s is served by %d, listed as %d", m.dir, m.pid, pid)
		}
		if log := fmt.Sprint(e["log"]); !exists(log) {
			t.Errorf("the log %q is not there", log)
		}
	}
	if io := fmt.Sprint(findMount(list, m2.dir)["io"]); io != "stateless" {
		t.Errorf("io is %q, asked for stateless", io)
	}
	if n := m1.requests(); n["LOOKUP"] == 0 && n["READDIR"]+n["READDIRPLUS"] == 0 {
		t.Errorf("the walk is not counted: %v", n)
	}
	if got := len(r.leases()); got != 2 {
		t.Errorf("%d leases for 2 mounts", got)
	}
	if read(t, m2.path("g")) != "content of g" {
		t.Error("the mount of a sub-folder reads wrong")
	}
	m1.umount()
	if findMount(listMounts(t), m1.dir) != nil {
		t.Error("the ended mount is listed")
	}
	m2.umount()
	if left := r.leases(); len(left) != 0 {
		t.Errorf("leases left: %v", left)
	}
}

// A mount stays on the commit that its revision named at that moment.
func TestMountIsPinned(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	m := r.mount("main")
	want := readTree(t, m.dir)
	write(t, r.path("f"), "changed meanwhile")
	ok(t, os.RemoveAll(r.path("d")))
	r.commit()
	sameTree(t, "after a commit", want, readTree(t, m.dir), sameOpts{})
	again := r.mount("main")
	if read(t, again.path("f")) != "changed meanwhile" || exists(again.path("d")) {
		t.Error("a new mount of the branch does not show the new commit")
	}
	again.umount()
	m.umount()
}

func TestUmountOfWhatIsNoMount(t *testing.T) {
	t.Parallel()
	dir := scratch(t)
	checkRefused(t, bole(t, "umount", dir), dir)
	checkRefused(t, bole(t, "umount", filepath.Join(dir, "none")), "none")
	// Somebody else's mount is left alone.
	mountTmpfs(t, dir, "64k")
	checkRefused(t, bole(t, "umount", dir))
	if !isMount(dir) {
		t.Error("umount ended a tmpfs")
	}
	ok(t, unix.Unmount(dir, 0))
}

// The kernel's numbers of a path are the same after a remount.
func TestNumbersAreStable(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	numbers := func() map[string]uint64 {
		m := r.mount("HEAD")
		defer m.umount()
		all := make(map[string]uint64)
		for p, n := range readTree(t, m.dir) {
			all[p] = n.ino
		}
		return all
	}
	first, second := numbers(), numbers()
	seen := make(map[uint64]bool)
	for p, ino := range first {
		if second[p] != ino {
			t.Errorf("%s has number %d, then %d", p, ino, second[p])
		}
		if seen[ino] {
			t.Errorf("%s shares the number %d", p, ino)
		}
		seen[ino] = true
	}
}
