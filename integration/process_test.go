package integration

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is a command that runs beside the test.
type process struct {
	cmd    *exec.Cmd
	out    *bufio.Reader
	stderr syncBuffer
	once   sync.Once
	waited chan struct{}
	err    error
}

// syncBuffer is a growing text that two goroutines may use.
type syncBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// start starts a command in a process group of its own; the group is killed
// when the test ends.
func start(t testing.TB, args ...string) *process {
	t.Helper()
	return startCommand(t, command{args: args})
}

func startCommand(t testing.TB, c command) *process {
	t.Helper()
	p := &process{cmd: exec.Command(c.args[0], c.args[1:]...), waited: make(chan struct{})}
	p.cmd.Env, p.cmd.Dir = childEnv(c.env), c.dir
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r, w, err := os.Pipe()
	ok(t, err)
	p.cmd.Stdout, p.cmd.Stderr = w, &p.stderr
	p.cmd.WaitDelay = 2 * time.Second
	ok(t, p.cmd.Start())
	w.Close()
	p.out = bufio.NewReader(r)
	go func() {
		p.err = p.cmd.Wait()
		close(p.waited)
	}()
	t.Cleanup(func() {
		p.kill()
		<-p.waited
		r.Close()
	})
	return p
}

func (p *process) pid() int { return p.cmd.Process.Pid }

// kill ends the whole group by SIGKILL; harmless when it has ended.
func (p *process) kill() {
	p.once.Do(func() { _ = syscall.Kill(-p.pid(), syscall.SIGKILL) })
}

// wait waits for the end and returns the exit code (-1: a signal).
func (p *process) wait(t testing.TB, limit time.Duration) int {
	t.Helper()
	select {
	case <-p.waited:
	case <-time.After(limit):
		t.Fatalf("%v does not end within %v: %s", p.cmd.Args, limit, clip(p.stderr.String()))
	}
	return p.cmd.ProcessState.ExitCode()
}

// ended says whether the command has ended.
func (p *process) ended() bool {
	select {
	case <-p.waited:
		return true
	default:
		return false
	}
}

// line reads one line of output, without the newline; "" at the end.
func (p *process) line(t testing.TB) string {
	t.Helper()
	s, err := p.out.ReadString('\n')
	if err != nil && err != io.EOF {
		t.Fatal(err)
	}
	return strings.TrimSuffix(s, "\n")
}
