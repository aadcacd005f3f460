package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// attached is strace on a running process.
type attached struct {
	p   *process
	log string
}

// attach follows the system calls of a daemon that read or write descriptors.
func attach(t testing.TB, pid int) *attached {
	t.Helper()
	needTool(t, "strace")
	a := &attached{log: filepath.Join(scratch(t), "strace")}
	a.p = start(t, "strace", "-f", "-y", "-s", "0", "-o", a.log, "-e", "trace=read,readv,splice,write,writev,pread64,openat", "-p", strconv.Itoa(pid))
	for range 100 {
		if strings.Contains(a.p.stderr.String(), "attached") {
			return a
		}
		if a.p.ended() {
			t.Skip("strace cannot attach: ", a.p.stderr.String())
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("strace does not attach")
	return nil
}

// fuseReads are requests that came through /dev/fuse. A read that was waiting
// when strace came shows only its end.
var fuseReads = regexp.MustCompile(`(?m)^\d+ +(?:(?:read|readv|splice)\(\d+</dev/fuse>.*|<\.\.\. (?:read|readv|splice) resumed>.*) = [1-9]`)

// detach ends strace and returns the requests that it saw.
func (a *attached) detach(t testing.TB) []string {
	t.Helper()
	ok(t, a.p.cmd.Process.Signal(os.Interrupt))
	<-a.p.waited
	b, err := os.ReadFile(a.log)
	ok(t, err)
	return fuseReads.FindAllString(string(b), -1)
}

// What the daemon counts is what its system calls say: none in a warm pass.
func TestStraceSeesNoRequestWhenWarm(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for _, name := range []string{"a", "b", "d/c", "d/e/f"} {
		write(t, r.path(name), name)
	}
	r.commit()
	m := r.mount("HEAD", "--io", "stateless")
	pass := func() {
		tool(t, "find", m.dir, "-ls")
		tool(t, "sh", "-c", `tar -C "$1" -cf - . | cat >/dev/null`, "sh", m.dir)
	}
	cold := attach(t, m.pid)
	pass()
	if seen := cold.detach(t); len(seen) == 0 {
		t.Fatal("strace sees no request of the cold pass: the test shows nothing")
	}
	best := -1
	for range 5 {
		warm := attach(t, m.pid)
		pass()
		if n := len(warm.detach(t)); best < 0 || n < best {
			best = n
		}
	}
	if best != 0 {
		t.Errorf("strace sees %d requests in the best of 5 warm passes", best)
	}
	m.umount()
}
