package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"bole/lmdbstore"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"bole": main, "again": again})
}

// again is a program that always meets its own process id in the database.
func again() {
	if os.Getenv(againEnv) != "" {
		fmt.Println("child", os.Args[1:])
		_, _ = unix.Write(3, []byte("ready\n")) // not open in most tests
		os.Exit(7)
	}
	a := newApp()
	if len(os.Args) > 1 && os.Args[1] == "ready" {
		a.openReadyPipe(3)
	}
	code, did := a.runAgain(fmt.Errorf("open: %w", lmdbstore.ErrSamePID))
	if _, other := a.runAgain(errors.New("something else")); !did || other {
		code = 99
	}
	os.Exit(code)
}

func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup:               setUp,
		Condition: func(cond string) (bool, error) {
			if cond != "mount" {
				return false, fmt.Errorf("unknown condition %q", cond)
			}
			return os.Geteuid() == 0 && unix.Access("/dev/fuse", unix.R_OK|unix.W_OK) == nil, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":    scriptExits,
			"json":     scriptJSON,
			"examples": scriptExamples,
			"pty":      scriptPty,
		},
	})
}

// setUp gives each script a home of its own and takes its mounts away in the end.
func setUp(env *testscript.Env) error {
	home := filepath.Join(env.WorkDir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		return err
	}
	env.Setenv("HOME", home)
	env.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	env.Setenv("TZ", "UTC")
	env.Setenv("TERM", "xterm")
	env.Defer(func() {
		list, err := ourMounts()
		if err != nil {
			panic(err)
		}
		for _, m := range list {
			if isBelow(m.Mountpoint, env.WorkDir) {
				_ = unix.Unmount(m.Mountpoint, unix.MNT_DETACH) // its process ends with it
			}
		}
	})
	return nil
}

// scriptExits runs a command that must end with an exit code: exits CODE PROGRAM ARGS…
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE PROGRAM ARGS…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// scriptJSON reads the last standard output as one JSON document. With a path
// it compares a value: json entries.0.path WANT; the length of a list is path.len.
func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	var v any
	d := json.NewDecoder(strings.NewReader(ts.ReadFile("stdout")))
	d.UseNumber()
	if err := d.Decode(&v); err != nil || d.More() {
		ts.Fatalf("standard output is not one JSON document: %v", err)
	}
	if len(args) == 0 {
		return
	}
	if len(args) == 2 && strings.HasPrefix(args[1], `"`) {
		want, err := strconv.Unquote(args[1])
		ts.Check(err)
		args[1] = want
	}
	got, found := jsonAt(v, strings.Split(args[0], "."))
	switch {
	case len(args) != 2:
		ts.Fatalf("usage: json [PATH WANT]")
	case neg && found && fmt.Sprint(got) == args[1]:
		ts.Fatalf("%s is %v", args[0], got)
	case !neg && (!found || fmt.Sprint(got) != args[1]):
		ts.Fatalf("%s is %v, want %q", args[0], got, args[1])
	}
}

func jsonAt(v any, path []string) (any, bool) {
	for _, key := range path {
		switch at := v.(type) {
		case map[string]any:
			next, ok := at[key]
			if !ok {
				return nil, false
			}
			v = next
		case []any:
			i, err := strconv.Atoi(key)
			if key == "len" {
				v = len(at)
			} else if err != nil || i >= len(at) {
				return nil, false
			} else {
				v = at[i]
			}
		default:
			return nil, false
		}
	}
	return v, true
}

// scriptExamples runs the examples of a command's help as they are written, and
// before each line what $BEFORE_EACH says.
func scriptExamples(ts *testscript.TestScript, neg bool, args []string) {
	cmd, rest, err := newRootCmd(newApp()).Find(args)
	if err != nil || neg || len(rest) > 0 || cmd.Example == "" {
		ts.Fatalf("no command %q with examples", args)
	}
	before := ts.Getenv("BEFORE_EACH") + "\n"
	ts.Check(ts.Exec("sh", "-exc", before+strings.ReplaceAll(cmd.Example, "\n", "\n"+before)))
}

// scriptPty runs a program with a terminal for standard input, output and
// error; what it shows becomes standard output.
func scriptPty(ts *testscript.TestScript, neg bool, args []string) {
	shown, err := runOnTerminal(ts, args)
	if neg != (err != nil) {
		ts.Fatalf("%v: %s", err, shown)
	}
	file := filepath.Join(ts.Getenv("WORK"), "pty.out")
	ts.Check(os.WriteFile(file, shown, 0o644))
	ts.Check(ts.Exec("cat", file))
}

// allCommands walks the tree of commands without cobra's own.
func allCommands(c *cobra.Command) []*cobra.Command {
	list := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		if sub.Name() != "completion" {
			list = append(list, allCommands(sub)...)
		}
	}
	return list
}

// TestEveryCommandIsExplained holds each command to a text, examples, and a
// script that runs them.
func TestEveryCommandIsExplained(t *testing.T) {
	scripts, err := filepath.Glob("testdata/script/*.txt")
	if err != nil || len(scripts) == 0 {
		t.Fatal("no scripts: ", err)
	}
	run := map[string]bool{}
	for _, file := range scripts {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(string(b), "\n") {
			if name, ok := strings.CutPrefix(strings.TrimPrefix(line, "[mount] "), "examples"); ok {
				run["bole"+name] = true
			}
		}
	}
	for _, c := range allCommands(newRootCmd(newApp())) {
		path := c.CommandPath()
		if c.Short == "" || len(c.Long) <= len(c.Short) || c.Example == "" {
			t.Errorf("%s: the help needs a line, a text and an example", path)
		}
		if c.Example != "" && !run[path] {
			t.Errorf("%s: no script runs its examples", path)
		}
		for _, line := range strings.Split(c.Long+"\n"+c.Example, "\n") {
			if len(line) > 90 {
				t.Errorf("%s: a line of the help is %d characters long: %s", path, len(line), line)
			}
		}
	}
}
