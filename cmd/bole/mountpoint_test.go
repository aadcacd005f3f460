package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bole/snapshot"
)

func TestIsBelow(t *testing.T) {
	for _, c := range []struct {
		path, dir string
		want      bool
	}{
		{"/a", "/a", true}, {"/a/b", "/a", true}, {"/ab", "/a", false}, {"/", "/a", false}, {"/a", "/", true}, {"/", "/", true},
		{"/a", "/a/b", false}, {"pipe:[12]", "/a", false},
	} {
		if got := isBelow(c.path, c.dir); got != c.want {
			t.Errorf("%s below %s: %v", c.path, c.dir, got)
		}
	}
}

func TestSourceNames(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"plain", "with@at", "with@at/below@", "blank and,comma"} {
		root := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Join(root, snapshot.DirName), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, rev := range []string{"HEAD", "main~1:a/b", "@", "user@host", "HEAD:x@y"} {
			source := sourceName(root, rev)
			if strings.Contains(strings.TrimPrefix(source, root), ":") {
				t.Errorf("%s: df takes a colon for a host", source)
			}
			if got := sourceRoot(source); got != root {
				t.Errorf("%s: root %q", source, got)
			}
		}
	}
	for _, source := range []string{"", "@", "none", "/no/such/place@HEAD", "tmpfs"} {
		if got := sourceRoot(source); got != "" {
			t.Errorf("%q: root %q", source, got)
		}
	}
}

func TestMountPath(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	m := filepath.Join(dir, "m")
	if err := os.Mkdir(m, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("m", filepath.Join(dir, "l")); err != nil {
		t.Fatal(err)
	}
	for _, arg := range []string{m, m + "/", dir + "/./l", dir + "/m/../l"} {
		if got, err := mountPath(arg); got != m || err != nil {
			t.Errorf("%s: %s, %v", arg, got, err)
		}
	}
	if _, err := mountPath(filepath.Join(dir, "none")); err == nil {
		t.Error("a place that is not there")
	}
}

// holds starts a program that holds something below dir until the test ends.
func holds(t *testing.T, dir, script string) int {
	t.Helper()
	cmd := exec.Command("sh", "-c", script, "sh", dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid
}

func TestFindHolders(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	odd := filepath.Join(dir, "odd\nname")
	if err := os.WriteFile(odd, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if list := findHolders(dir); len(list) != 0 {
		t.Fatalf("held by nobody: %v", list)
	}
	want := map[int]string{
		holds(t, dir, `cd "$1" && echo && read x`):                     "current folder",
		holds(t, dir, `exec 7<"$1/`+"odd\nname"+`" && echo && read x`): "open file",
	}
	for _, h := range findHolders(dir) {
		if want[h.pid] != h.how || h.name != "sh" {
			t.Errorf("%v", h)
		}
		delete(want, h.pid)
		if text := h.String(); strings.Contains(text, "\n") || !strings.Contains(text, fmt.Sprint(h.pid)) {
			t.Errorf("%q", text)
		}
	}
	if len(want) != 0 {
		t.Errorf("not found: %v", want)
	}
	if got := describeHolders([]holder{{1, "a", "program", "/x"}, {name: "tmpfs", path: "/m/y"}}); got !=
		": by process 1 (a): program /x, tmpfs: mounted on /m/y" {
		t.Errorf("%q", got)
	}
	if describeHolders(nil) != "" {
		t.Error("nobody is somebody")
	}
}

func TestCountsText(t *testing.T) {
	if got := countsText(map[string]uint64{"READ": 2, "LOOKUP": 10, "GETATTR": 2}); got != "10 LOOKUP, 2 GETATTR, 2 READ" {
		t.Errorf("%q", got)
	}
	if got := countsText(nil); got != "none" {
		t.Errorf("%q", got)
	}
}
