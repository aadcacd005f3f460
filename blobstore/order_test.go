package blobstore

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const orderEnv = "BLOBSTORE_ORDER_CHILD"

// orderChild stores two small contents and two large ones, one of them linked, with one barrier.
func orderChild(dir string) {
	err := func() error {
		s, err := Open(filepath.Join(dir, "contents"), Options{})
		if err != nil {
			return err
		}
		tab := newTable()
		b, err := s.Begin(tab.index, tab.packEnd)
		if err != nil {
			return err
		}
		for i, name := range []string{"a", "b", "c", "d"} {
			f, err := os.Open(filepath.Join(dir, name))
			if err != nil {
				return err
			}
			if i == 3 {
				_, _, _, err = b.LinkFile(f, name)
			} else {
				_, _, err = b.PutFile(f, name)
			}
			if err != nil {
				return err
			}
		}
		if _, _, err := b.Sync(); err != nil {
			return err
		}
		return b.Close()
	}()
	if err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	os.Exit(0)
}

// flush and name match what strace -y prints of the calls that matter.
var (
	flushCall = regexp.MustCompile(`f(?:data)?sync\(\d+<([^>]+)>`)
	nameCall  = regexp.MustCompile(`(?:rename|link)\w*\(.*"([^"]+)"(?:, \S+)?\)`)
)

// TestOrderOfBarrier looks at the system calls: first all bytes are flushed, then the files get
// their names, then the folders are flushed.
func TestOrderOfBarrier(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("strace is not installed")
	}
	dir := t.TempDir()
	s := createAt(t, filepath.Join(dir, "contents"))
	for i, n := range []int{100, 200, 1 << 20, 2 << 20} {
		check(t, os.WriteFile(filepath.Join(dir, string(rune('a'+i))), content(uint64(i), n), 0o644))
	}
	exe, err := os.Executable()
	check(t, err)
	log := filepath.Join(dir, "log")
	cmd := exec.Command(strace, "-f", "-y", "-s", "4096", "-o", log,
		"-e", "trace=fsync,fdatasync,syncfs,rename,renameat,renameat2,link,linkat", exe)
	cmd.Env = append(os.Environ(), orderEnv+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Skipf("strace cannot be used: %v %s", err, out)
	}
	calls, err := os.ReadFile(log)
	check(t, err)
	want := []string{"bytes", "names", "folders"}
	stage, count := 0, map[string]int{}
	for line := range strings.Lines(string(calls)) {
		kind := callKind(s, line)
		if kind == "" {
			continue
		}
		count[kind]++
		for stage < len(want) && want[stage] != kind {
			stage++
		}
		if stage == len(want) {
			t.Fatalf("%s come too late:\n%s", kind, calls)
		}
	}
	folders := len(names(t, s, wholeDir)) + 2 // whole/ and packs/
	if count["bytes"] != 3 || count["names"] != 2 || count["folders"] != folders {
		t.Errorf("%v, want 3 bytes, 2 names, %d folders:\n%s", count, folders, calls)
	}
}

// callKind sorts one line of the log into the stages of the barrier.
func callKind(s *Store, line string) string {
	if m := flushCall.FindStringSubmatch(line); m != nil {
		if fi, err := os.Stat(m[1]); err == nil && fi.IsDir() {
			return "folders"
		}
		return "bytes"
	}
	if m := nameCall.FindStringSubmatch(line); m != nil && strings.HasPrefix(m[1], filepath.Join(s.dir, wholeDir)) {
		return "names"
	}
	return ""
}
