package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

var rssAnonLine = regexp.MustCompile(`(?m)^RssAnon:\s+(\d+) kB`)

// rssAnon returns a process's own memory in bytes: without mapped pages of
// files, which are page cache.
func rssAnon(t testing.TB, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	ok(t, err)
	m := rssAnonLine.FindSubmatch(b)
	if m == nil {
		t.Fatalf("no RssAnon of process %d", pid)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	ok(t, err)
	return n * kib
}

// memoryGroup is a memory cgroup (version 1) with a limit. The kernel forgets
// pages, names and inodes of the processes in it when the limit is reached.
type memoryGroup struct{ dir string }

// newMemoryGroup makes a group limited to some bytes, gone with the test.
func newMemoryGroup(t testing.TB, limit int64) *memoryGroup {
	t.Helper()
	needRoot(t)
	base := "/sys/fs/cgroup/memory"
	if !exists(filepath.Join(base, "memory.limit_in_bytes")) {
		t.Skip("needs the memory cgroup, version 1")
	}
	g := &memoryGroup{dir: filepath.Join(base, fmt.Sprintf("bole-test-%d-%d", os.Getpid(), time.Now().UnixNano()))}
	if err := os.Mkdir(g.dir, 0o755); err != nil {
		t.Skip("cannot make a memory cgroup: ", err)
	}
	t.Cleanup(func() {
		for range 100 {
			if unix.Rmdir(g.dir) == nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Errorf("the memory cgroup %s cannot be removed", g.dir)
	})
	ok(t, os.WriteFile(filepath.Join(g.dir, "memory.limit_in_bytes"), []byte(strconv.FormatInt(limit, 10)), 0))
	return g
}

// wrap makes a command run inside the group.
func (g *memoryGroup) wrap(args ...string) []string {
	script := `echo $$ > "$0/cgroup.procs" && exec "$@"`
	return append([]string{"sh", "-c", script, g.dir}, args...)
}

// force makes the kernel drop what the group holds and can be dropped.
func (g *memoryGroup) force(t testing.TB) {
	t.Helper()
	// EBUSY only says that something was left.
	_ = os.WriteFile(filepath.Join(g.dir, "memory.force_empty"), []byte("0"), 0)
}

// blocks returns the bytes that a file or tree takes on its disk.
func blocks(t testing.TB, path string) int64 {
	t.Helper()
	out := tool(t, "du", "-s", "--block-size=1", path)
	n, err := strconv.ParseInt(strings.Fields(out)[0], 10, 64)
	ok(t, err)
	return n
}
