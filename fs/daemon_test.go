package fs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"bole/merkle"
	"bole/snapshot"
)

// Real mounts are served by a child process (this binary again), so that a test
// can look at it, kill it, and never waits for itself.

const daemonEnv = "BOLE_FS_TEST_DAEMON"

type daemonConfig struct {
	Repo, Mountpoint, Commit, Path, FSName string
	IO                                     IO
	AllowOther, Verify                     bool
}

type daemonReply struct {
	Error string
	IO    string
	Stats Stats
	Files uint64
	Bytes uint64
}

func TestMain(m *testing.M) {
	if c := os.Getenv(daemonEnv); c != "" {
		os.Exit(runDaemon(c))
	}
	os.Exit(m.Run())
}

// runDaemon mounts, then answers one line of JSON for each command line.
func runDaemon(config string) int {
	var c daemonConfig
	out := json.NewEncoder(os.Stdout)
	fail := func(err error) int {
		_ = out.Encode(daemonReply{Error: err.Error()})
		return 1
	}
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return fail(err)
	}
	repo, err := snapshot.Open(c.Repo, snapshot.OpenOptions{})
	if err != nil {
		return fail(err)
	}
	commit, err := merkle.ParseHash(c.Commit)
	if err != nil {
		return fail(err)
	}
	log := logrus.New()
	log.SetOutput(os.Stderr)
	s, err := Mount(repo, Options{Mountpoint: c.Mountpoint, Commit: commit, Path: c.Path, IO: c.IO,
		AllowOther: c.AllowOther, Verify: c.Verify, FSName: c.FSName, Log: log})
	if err != nil {
		return fail(err)
	}
	_ = out.Encode(daemonReply{IO: s.IO().String()})
	var answering sync.Mutex // held until the answer to a command is written
	go serveCommands(s, out, &answering)
	s.Wait()
	answering.Lock()
	if err := repo.Close(); err != nil {
		return 1
	}
	return 0
}

func serveCommands(s *Server, out *json.Encoder, answering *sync.Mutex) {
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		answering.Lock()
		var r daemonReply
		var err error
		switch cmd, arg, _ := strings.Cut(in.Text(), " "); cmd {
		case "stats":
			r.Stats = s.Stats()
		case "unmount":
			err = s.Unmount()
		case "warm":
			err = s.Warm(context.Background(), strings.Split(arg, ","), func(files, bytes uint64) { r.Files, r.Bytes = files, bytes })
		}
		if err != nil {
			r.Error = err.Error()
		}
		_ = out.Encode(r)
		answering.Unlock()
	}
	_ = Detach(s.Mountpoint()) // the test is gone, however it ended
}

// mounted is one mount of a test.
type mounted struct {
	t   testing.TB
	dir string
	io  string
	cmd *exec.Cmd
	in  io.WriteCloser
	out *json.Decoder
	log *lockedBuffer
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// limit is how long a mount may live. After it the daemon is killed, which ends
// every call that waits for it with an error.
const limit = 2 * time.Minute

func needFuse(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("mounting as root")
	}
	if f, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0); err != nil {
		t.Skip(err)
	} else {
		f.Close()
	}
}

// mount serves a commit; whatever happens to the test, it is gone afterwards.
func mount(t testing.TB, repo string, commit merkle.Hash, change ...func(*daemonConfig)) *mounted {
	t.Helper()
	m, err := tryMount(t, repo, commit, change...)
	if err != nil {
		t.Fatalf("mount: %v\n%s", err, m.log)
	}
	return m
}

func tryMount(t testing.TB, repo string, commit merkle.Hash, change ...func(*daemonConfig)) (*mounted, error) {
	t.Helper()
	needFuse(t)
	c := daemonConfig{Repo: repo, Commit: commit.String(), Mountpoint: filepath.Join(t.TempDir(), "M"), FSName: "repo@test"}
	for _, f := range change {
		f(&c)
	}
	_ = os.Mkdir(c.Mountpoint, 0o755)
	config, err := json.Marshal(c)
	check(t, err)
	m := &mounted{t: t, dir: c.Mountpoint, log: &lockedBuffer{}}
	m.cmd = exec.Command(os.Args[0])
	m.cmd.Env = append(os.Environ(), daemonEnv+"="+string(config))
	m.cmd.Stderr = m.log
	out, err := m.cmd.StdoutPipe()
	check(t, err)
	m.in, err = m.cmd.StdinPipe()
	check(t, err)
	m.out = json.NewDecoder(out)
	check(t, m.cmd.Start())
	watchdog := time.AfterFunc(limit, func() { _ = m.cmd.Process.Kill() })
	t.Cleanup(func() {
		watchdog.Stop()
		m.destroy()
	})
	r, err := m.reply()
	m.io = r.IO
	return m, err
}

// destroy ends daemon and mount without asking either.
func (m *mounted) destroy() {
	_ = unix.Unmount(m.dir, unix.MNT_DETACH)
	m.in.Close()
	_ = m.cmd.Process.Kill()
	_ = m.cmd.Wait()
	for unix.Unmount(m.dir, unix.MNT_DETACH) == nil {
	}
}

func (m *mounted) reply() (daemonReply, error) {
	var r daemonReply
	if err := m.out.Decode(&r); err != nil {
		return r, fmt.Errorf("daemon: %w", err)
	}
	if r.Error != "" {
		return r, fmt.Errorf("daemon: %s", r.Error)
	}
	return r, nil
}

func (m *mounted) ask(command string) (daemonReply, error) {
	if _, err := io.WriteString(m.in, command+"\n"); err != nil {
		return daemonReply{}, err
	}
	return m.reply()
}

func (m *mounted) stats() Stats {
	m.t.Helper()
	r, err := m.ask("stats")
	check(m.t, err)
	return r.Stats
}

// since is what came since an earlier look, kinds with none left out.
func (m *mounted) since(before Stats) map[string]uint64 {
	m.t.Helper()
	d := map[string]uint64{}
	for op, n := range m.stats().Requests {
		if n -= before.Requests[op]; n > 0 {
			d[op] = n
		}
	}
	return d
}

// settles runs a pass up to five times until one sends no request but FORGET,
// and fails when none does: the kernel may drop pages whenever it likes.
func (m *mounted) settles(what string, pass func()) {
	m.t.Helper()
	var all []map[string]uint64
	for range 5 {
		before := m.stats()
		pass()
		d := m.since(before)
		delete(d, "FORGET")
		if len(d) == 0 {
			return
		}
		all = append(all, d)
	}
	m.t.Errorf("%s: requests in each pass: %v", what, all)
}

func (m *mounted) path(names ...string) string {
	return filepath.Join(append([]string{m.dir}, names...)...)
}

// rssAnon is the daemon's own memory in bytes.
func (m *mounted) rssAnon() uint64 {
	m.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.cmd.Process.Pid))
	check(m.t, err)
	var kb uint64
	for _, line := range strings.Split(string(b), "\n") {
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &kb); err == nil {
			return kb << 10
		}
	}
	m.t.Fatal("no RssAnon")
	return 0
}

// logWith is the log once it holds all of these, or as it is after 5 s: it
// comes through a pipe, after the answer that it belongs to.
func (m *mounted) logWith(parts ...string) string {
	for i := 0; ; i++ {
		log, all := m.log.String(), true
		for _, p := range parts {
			all = all && strings.Contains(log, p)
		}
		if all || i == 500 {
			return log
		}
		time.Sleep(10 * time.Millisecond)
	}
}
