package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// result is what a finished command left: output, exit and memory.
type result struct {
	args   []string
	stdout string
	stderr string
	code   int            // exit code, -1 when ended by a signal
	signal syscall.Signal // the signal that ended it, else 0
	usage  usage          // when asked for
	took   time.Duration
}

// usage is what a measured command took.
type usage struct {
	MaxRSS  int64 // largest resident set, bytes
	Read    int64 // bytes that came from disks
	Written int64 // bytes on their way to disks
}

func (r result) String() string {
	return fmt.Sprintf("%s\nexit %d signal %d after %v\nstdout: %s\nstderr: %s",
		strings.Join(r.args, " "), r.code, r.signal, r.took.Round(time.Millisecond), clip(r.stdout), clip(r.stderr))
}

// both returns standard output and standard error together.
func (r result) both() string { return r.stdout + r.stderr }

func clip(s string) string {
	if len(s) > 4000 {
		return s[:2000] + "\n[…]\n" + s[len(s)-2000:]
	}
	return s
}

// command describes a process to run to its end.
type command struct {
	args  []string
	dir   string
	env   []string // added to a small fixed environment
	stdin string
	limit time.Duration // 0: two minutes
	// measure asks for usage. The command is then a child of a small helper:
	// a direct child would be charged with this process's memory, which it
	// shares until it runs its own program.
	measure bool
}

// childEnv is the same for each child: English output, no colours from a
// terminal, no settings of the person who runs the tests.
func childEnv(extra []string) []string {
	env := []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + homeDir, "LC_ALL=C", "TZ=UTC",
		"TMPDIR=" + os.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GOTRACEBACK=all",
	}
	for _, name := range []string{"GOMAXPROCS", "GODEBUG"} {
		if v, given := os.LookupEnv(name); given {
			env = append(env, name+"="+v)
		}
	}
	if underRace {
		// Reports go to files, those of daemons too, and nobody sleeps a
		// second at the end, as the detector would have it.
		env = append(env, "GORACE=atexit_sleep_ms=0 log_path="+filepath.Join(raceDir, "report"))
	}
	return append(env, extra...)
}

// run runs a command to its end. It fails the test when the command takes
// longer than its limit or leaves its output open to a process that stays.
func run(t testing.TB, c command) result {
	t.Helper()
	if c.limit == 0 {
		c.limit = 2 * time.Minute
	}
	usageFile := ""
	if c.measure {
		usageFile = filepath.Join(scratch(t), "usage")
		c.env = append(append([]string(nil), c.env...), helperEnv+"=measure")
		c.args = append([]string{testBin, usageFile}, c.args...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.args[0], c.args[1:]...)
	cmd.Dir, cmd.Env = c.dir, childEnv(c.env)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if c.stdin != "" {
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 10 * time.Second
	start := time.Now()
	err := cmd.Run()
	res := result{args: c.args, stdout: out.String(), stderr: errOut.String(), took: time.Since(start)}
	if cmd.ProcessState == nil {
		t.Fatalf("%s: %v", strings.Join(c.args, " "), err)
	}
	res.code = cmd.ProcessState.ExitCode()
	if ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		res.signal = ws.Signal()
	}
	if ctx.Err() != nil {
		t.Fatalf("took longer than %v: %v", c.limit, res)
	}
	if c.measure {
		res.args = c.args[2:]
		res.usage = parseJSON[usage](t, read(t, usageFile))
	}
	if errors.Is(err, exec.ErrWaitDelay) {
		t.Errorf("a process that stays holds the caller's output open: %v", res)
	}
	noTrace(t, res)
	return res
}

// noTrace fails the test when the program died of a fault of its own: that is
// never a right answer, whatever a test expects.
func noTrace(t testing.TB, r result) {
	t.Helper()
	for _, mark := range []string{"panic: ", "fatal error: ", "goroutine 1 [", "SIGSEGV", "WARNING: DATA RACE"} {
		if strings.Contains(r.stderr, mark) {
			t.Errorf("the program shows a trace (%q): %v", mark, r)
			return
		}
	}
}

// bole runs the program with args in no particular place.
func bole(t testing.TB, args ...string) result {
	t.Helper()
	return run(t, command{args: append([]string{boleBin}, args...)})
}

// tool runs a program of the system and fails the test unless it exits 0.
func tool(t testing.TB, args ...string) string {
	t.Helper()
	res := run(t, command{args: args})
	if res.code != 0 {
		t.Fatalf("%v", res)
	}
	return res.stdout
}

// lines splits output into lines without the last newline.
func lines(s string) []string {
	s = strings.TrimSuffix(s, "\n")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}

// write makes a file with its parents.
func write(t testing.TB, path, data string) {
	t.Helper()
	mkdir(t, filepath.Dir(path))
	if err := os.WriteFile(path, []byte(data), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func mkdir(t testing.TB, path string) {
	t.Helper()
	if err := os.MkdirAll(path, 0o755); err != nil {
		t.Fatal(err)
	}
}

// ok fails the test on an error of its own preparation.
func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// exists says whether something stands at path, links not followed.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// scratchDirs holds each folder that scratch gave out, for the check at the end.
var scratchDirs struct {
	sync.Mutex
	dirs []string
}

// underScratch says whether path lies in a folder that scratch gave out.
func underScratch(path string) bool {
	scratchDirs.Lock()
	defer scratchDirs.Unlock()
	for _, dir := range scratchDirs.dirs {
		if strings.HasPrefix(path, dir+"/") || path == dir {
			return true
		}
	}
	return false
}

func noteScratch(dir string) {
	scratchDirs.Lock()
	defer scratchDirs.Unlock()
	scratchDirs.dirs = append(scratchDirs.dirs, dir)
}

// fast returns a new folder in memory, for tests that wait for the disk
// hundreds of times and show nothing about it; on a disk where there is no tmpfs.
func fast(t testing.TB) string {
	t.Helper()
	if fastDir == "" {
		return scratch(t)
	}
	dir, err := os.MkdirTemp(fastDir, "")
	ok(t, err)
	noteScratch(dir)
	t.Cleanup(func() { ok(t, os.RemoveAll(dir)) })
	ok(t, os.Chmod(dir, 0o755))
	return dir
}

// scratch returns a new folder that every user may reach.
func scratch(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	noteScratch(dir)
	ok(t, os.Chmod(filepath.Dir(dir), 0o755))
	ok(t, os.Chmod(dir, 0o755))
	return dir
}

func containsFold(s, part string) bool {
	return strings.Contains(strings.ToLower(s), strings.ToLower(part))
}
