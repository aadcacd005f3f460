package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

// mnt is one mounted commit.
type mnt struct {
	t   testing.TB
	dir string
	pid int // of the daemon
}

// mount mounts rev at a new folder. Whatever happens to the test, the mount
// and its daemon are gone after it.
func (r *repo) mount(rev string, opts ...string) *mnt {
	r.t.Helper()
	dir := filepath.Join(scratch(r.t), "M")
	mkdir(r.t, dir)
	return r.mountAt(dir, rev, opts...)
}

// mountAt is mount with a folder of choice.
func (r *repo) mountAt(dir, rev string, opts ...string) *mnt {
	r.t.Helper()
	needRoot(r.t)
	m := &mnt{t: r.t, dir: dir}
	r.t.Cleanup(m.destroy)
	args := append(append([]string{"mount"}, opts...), rev, dir)
	if res := r.run(args...); res.code != 0 {
		r.t.Fatalf("mount: %v", res)
	}
	// Ready when it returns: the mount must stand at once.
	if !isMount(dir) {
		r.t.Fatalf("mount %s returned before the mount stood", rev)
	}
	m.pid = daemonOf(r.t, dir)
	return m
}

// umount ends the mount through the program and waits for its daemon.
func (m *mnt) umount() {
	m.t.Helper()
	if res := umount(m.t, m.dir); res.code != 0 {
		m.t.Fatalf("umount: %v", res)
	}
	if isMount(m.dir) {
		m.t.Fatal("umount returned but the mount still stands")
	}
	m.waitGone()
}

// umount ends a mount that nobody uses. A child that a parallel test is about
// to start has a copy of all descriptors until it runs its program, so this
// process can be the holder for a moment.
func umount(t testing.TB, dir string) (res result) {
	t.Helper()
	for range 20 {
		if res = bole(t, "umount", dir); res.code == 0 || !containsFold(res.stderr, "busy") && !containsFold(res.stderr, "use") {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	return res
}

// waitGone fails the test when the daemon outlives its mount.
func (m *mnt) waitGone() {
	m.t.Helper()
	for range 100 {
		if !alive(m.pid) {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	m.t.Errorf("daemon %d is alive 5 s after its mount went", m.pid)
}

// kill ends the daemon by SIGKILL and leaves the dead mount standing.
func (m *mnt) kill() {
	m.t.Helper()
	ok(m.t, unix.Kill(m.pid, unix.SIGKILL))
	for range 200 {
		if !alive(m.pid) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	m.t.Fatalf("daemon %d survives SIGKILL", m.pid)
}

// destroy is the last resort: it aborts the connection, so that nobody hangs
// on it, detaches the mount, and ends the daemon.
func (m *mnt) destroy() {
	for isMount(m.dir) {
		abortConnection(m.dir)
		if unix.Unmount(m.dir, unix.MNT_DETACH) != nil {
			break
		}
	}
	for _, pid := range bolePIDs() {
		if names(cmdline(pid), m.dir) {
			for i := 0; alive(pid) && i < 50; i++ {
				time.Sleep(20 * time.Millisecond)
			}
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	}
}

// path joins names below the mount.
func (m *mnt) path(names ...string) string {
	return filepath.Join(append([]string{m.dir}, names...)...)
}

// mountOf returns the mountinfo line of dir, nil when nothing is mounted there.
func mountOf(dir string) *mountinfo.Info {
	list, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(dir))
	if err != nil || len(list) == 0 {
		return nil
	}
	return list[0]
}

func isMount(dir string) bool { return mountOf(dir) != nil }

// abortConnection makes the kernel answer every waiting request of a FUSE
// mount with an error.
func abortConnection(dir string) {
	if i := mountOf(dir); i != nil {
		conn := fmt.Sprintf("/sys/fs/fuse/connections/%d/abort", i.Minor)
		_ = os.WriteFile(conn, []byte("1"), 0)
	}
}

// daemonOf returns the process that serves dir. Its command line holds the
// word mount and the mount point.
func daemonOf(t testing.TB, dir string) int {
	t.Helper()
	var found []int
	for _, pid := range bolePIDs() {
		if args := cmdline(pid); names(args, dir) && names(args, "mount") {
			found = append(found, pid)
		}
	}
	if len(found) == 0 {
		t.Fatalf("no process names mount and %s on its command line", dir)
	}
	// A supervisor may stand above the daemon; the child serves.
	return found[len(found)-1]
}

// names says whether one of the arguments is word.
func names(args []string, word string) bool {
	for _, a := range args {
		if a == word {
			return true
		}
	}
	return false
}

// alive says whether pid is a process that has not ended.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	s := string(b)
	i := strings.LastIndexByte(s, ')')
	return i < 0 || i+2 >= len(s) || s[i+2] != 'Z'
}

// deadline aborts the test's mounts when it takes too long, so that a hanging
// system call returns, and fails it.
func deadline(t testing.TB, limit time.Duration, mounts ...*mnt) {
	t.Helper()
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-done:
		case <-time.After(limit):
			t.Errorf("not done within %v: aborting the mounts", limit)
			for _, m := range mounts {
				abortConnection(m.dir)
			}
		}
	}()
	t.Cleanup(func() { close(done); <-ended })
}
