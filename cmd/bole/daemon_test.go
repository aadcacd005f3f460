package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"bole/fs"
)

func TestWaitReady(t *testing.T) {
	for in, want := range map[string]struct {
		line, said string
		ready      bool
	}{
		"":                               {},
		"bole: no\n":                     {said: "bole: no\n"},
		"bole: no":                       {said: "bole: no"},
		"\x00mounted\n":                  {line: "mounted\n", ready: true},
		"waiting\nmore\n\x00mounted\n":   {line: "mounted\n", said: "waiting\nmore\n", ready: true},
		"waiting\x00mounted\nlater\n":    {line: "mounted\n", said: "waiting", ready: true},
		"\x00cut off in the middle of a": {},
	} {
		var said bytes.Buffer
		line, ready := waitReady(strings.NewReader(in), &said)
		if ready != want.ready || said.String() != want.said || ready && line != want.line {
			t.Errorf("%q: %q, %v, said %q", in, line, ready, &said)
		}
	}
}

// What the daemon says is passed on at once, not only when it is ready.
func TestWaitReadyPassesOn(t *testing.T) {
	r, w := io.Pipe()
	out, said := io.Pipe()
	go func() {
		_, _ = w.Write([]byte("waiting for a lock\n"))
		b := make([]byte, 100)
		n, _ := out.Read(b) // blocks until it was passed on
		_, _ = w.Write([]byte("\x00mounted " + string(b[:n])))
		w.Close()
	}()
	line, ready := waitReady(r, said)
	if !ready || line != "mounted waiting for a lock\n" {
		t.Errorf("%q, %v", line, ready)
	}
}

func TestDaemonArgs(t *testing.T) {
	o := mountFlags{mode: fs.IOHandles, allowOther: true, verify: true}
	got := daemonArgs(o, "/r", "-x", "/m")
	want := []string{"-C", "/r", "mount", "--foreground", "--ready-fd=3", "--io=handles", "--allow-other", "--verify", "--", "-x", "/m"}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	// What it means is read back the same.
	a, _, _ := testApp()
	root := newRootCmd(a)
	cmd, rest, err := root.Find(got)
	if err != nil || cmd.Name() != "mount" {
		t.Fatal(cmd.Name(), err)
	}
	if err := cmd.ParseFlags(rest); err != nil || !slices.Equal(cmd.Flags().Args(), []string{"-x", "/m"}) {
		t.Errorf("%v, %q", err, cmd.Flags().Args())
	}
}

func TestDaemonFailed(t *testing.T) {
	exit := func(code string) error { return exec.Command("sh", "-c", "exit "+code).Run() }
	killed := exec.Command("sh", "-c", "kill -9 $$").Run()
	interrupted := errors.New("interrupted")
	for name, c := range map[string]struct{ err, interrupted, want error }{
		"refused":     {exit("1"), nil, errNo},
		"wrong use":   {exit("2"), nil, errUsageShown},
		"interrupted": {killed, interrupted, interrupted},
	} {
		if got := daemonFailed(c.err, c.interrupted); !errors.Is(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
	for name, err := range map[string]error{"ended well": nil, "killed": killed, "other code": exit("7")} {
		if got := daemonFailed(err, nil); got == nil || errors.Is(got, errNo) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestLogFileIsBounded(t *testing.T) {
	l := &logFile{path: filepath.Join(t.TempDir(), "id.log")}
	if err := l.open(); err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 1<<16-1) + "\n")
	for range 3 * logLimit / len(line) {
		if n, err := l.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	for _, p := range []string{l.path, l.aside()} {
		fi, err := os.Stat(p)
		if err != nil || fi.Size() == 0 || fi.Size() > logLimit {
			t.Errorf("%s: %v, %v", p, fi, err)
		}
	}
	if names, err := os.ReadDir(filepath.Dir(l.path)); err != nil || len(names) != 2 {
		t.Errorf("%v, %v", names, err)
	}
	if err := l.remove(); err != nil {
		t.Error(err)
	}
	if names, err := os.ReadDir(filepath.Dir(l.path)); err != nil || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
}

// Only old logs of ended mounts go.
func TestRemoveOldLogs(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-2 * logAge)
	for name, keep := range map[string]bool{
		"a.log": false, "b.log.old": false, "c.log": true, "c.lease": true, "d.sock": true, "young.log": true, "other": true,
	} {
		p := filepath.Join(dir, name)
		if err := os.WriteFile(p, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if name != "young.log" {
			if err := os.Chtimes(p, old, old); err != nil {
				t.Fatal(err)
			}
		}
		t.Cleanup(func() {
			if _, err := os.Lstat(p); (err == nil) != keep {
				t.Errorf("%s: %v, keep %v", name, err, keep)
			}
		})
	}
	if err := removeOldLogs(dir, time.Now().Add(-logAge)); err != nil {
		t.Error(err)
	}
}
