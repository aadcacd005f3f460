//go:build scale

package integration

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bole/internal/benchkit"
	"bole/internal/treegen"
)

const (
	bigFiles = 64
	bigSize  = 128 << 20
)

// bigSource makes 8 GiB in 64 files.
func bigSource(t testing.TB, dir string) {
	t.Helper()
	mkdir(t, dir)
	for i := range bigFiles {
		ok(t, treegen.Large(filepath.Join(dir, fmt.Sprintf("part-%02d", i)), bigSize, uint64(i+1)))
	}
}

func partNames(dir string) []string {
	names := make([]string, bigFiles)
	for i := range names {
		names[i] = filepath.Join(dir, fmt.Sprintf("part-%02d", i))
	}
	return names
}

// ioOf returns the bytes that the process and its dead children read by calls
// and caused to be written to disk (proc(5), /proc/PID/io).
func ioOf(t testing.TB, pid int) (read, written int64) {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
	ok(t, err)
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		n, err := strconv.ParseInt(value, 10, 64)
		ok(t, err)
		switch name {
		case "rchar":
			read = n
		case "write_bytes":
			written = n
		}
	}
	return read, written
}

// TestScaleImportMove times taking in 8 GiB against one plain read of them, and
// kills it at random points.
func TestScaleImportMove(t *testing.T) {
	src := filepath.Join(scratch(t), "source")
	bigSource(t, src)
	drop := func() error { _, err := benchkit.DropPages(src); return err }
	read := func() error {
		for _, name := range partNames(src) {
			if err := readAll(name); err != nil {
				return err
			}
		}
		return nil
	}
	var reads, imports, writes []float64
	for i := range 3 {
		r := initRepo(t, filepath.Join(filepath.Dir(src), fmt.Sprint("bare", i)), "--bare")
		ok(t, drop())
		reads = append(reads, seconds(t, read))
		ok(t, drop())
		res := r.accounted("import", "--move", src, "-m", "8 GiB")
		imports, writes = append(imports, res.seconds), append(writes, float64(res.written)/(1<<20))
		for _, name := range partNames(src) {
			if exists(name) {
				t.Fatalf("%s is still there", name)
			}
		}
		giveBack(t, r, src)
	}
	benchkit.AtMost(t, "import --move of 8 GiB", benchkit.Median(imports)/benchkit.Median(reads), 1.3, "x read")
	benchkit.AtMost(t, "written by import --move of 8 GiB", benchkit.Median(writes), 64, "MiB")
	t.Run("killed", func(t *testing.T) { killedImports(t, src, benchkit.Median(imports)) })
}

// giveBack moves the parts out of a repository's store, so that they need not
// be made again, and removes the repository.
func giveBack(t testing.TB, r *repo, src string) {
	t.Helper()
	ok(t, os.MkdirAll(src, 0o755))
	for _, name := range partNames(src) {
		hash := hashOf(t, r, filepath.Base(name))
		whole := r.path(".bole", "contents", "whole", hash[:2], hash[2:])
		ok(t, os.Chmod(whole, 0o644))
		ok(t, os.Rename(whole, name))
	}
	ok(t, os.RemoveAll(r.dir))
}

// hashOf returns the hash of a file in the root of HEAD.
func hashOf(t testing.TB, r *repo, name string) string {
	t.Helper()
	list := parseJSON[struct {
		Entries []struct{ Path, Hash string }
	}](t, r.must("ls", "--json", "HEAD"))
	for _, e := range list.Entries {
		if e.Path == name {
			return e.Hash
		}
	}
	t.Fatalf("%s is not in HEAD", name)
	return ""
}

// killedImports kills at 20 random points and runs again: the tree is the same
// in the end, and no source file is missing before the commit.
func killedImports(t *testing.T, src string, took float64) {
	var want string
	for round := range 20 {
		r := initRepo(t, filepath.Join(filepath.Dir(src), fmt.Sprint("killed", round)), "--bare")
		p := start(t, boleBin, "-C", r.dir, "import", "--move", src, "-m", "8 GiB")
		time.Sleep(time.Duration(rand.Float64() * took * 1.1 * float64(time.Second)))
		p.kill()
		if r.run("log", "-n", "1").code != 0 {
			for _, name := range partNames(src) {
				if !exists(name) {
					t.Fatalf("round %d: %s is missing and nothing is committed", round, name)
				}
			}
		}
		if res := r.run("import", "--move", src, "-m", "8 GiB"); res.code != 0 {
			t.Fatalf("round %d: %v", round, res)
		}
		tree := r.must("tree", "HEAD")
		if want == "" {
			want = tree
		}
		if tree != want {
			t.Fatalf("round %d: another tree:\n%s\nwanted\n%s", round, tree, want)
		}
		r.fsck()
		giveBack(t, r, src)
	}
}

// accounted runs a command and says how long it took, what it read by calls
// and what it wrote to disk, in bytes.
func (r *repo) accounted(args ...string) (a struct {
	seconds       float64
	read, written int64
}) {
	r.t.Helper()
	cmd := exec.Command(boleBin, append([]string{"-C", r.dir}, args...)...)
	begin := time.Now()
	ok(r.t, cmd.Start())
	// The figures of a process can be read until it is waited for.
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EINTR) {
			r.t.Fatal(err)
		}
	}
	a.seconds = time.Since(begin).Seconds()
	a.read, a.written = ioOf(r.t, cmd.Process.Pid)
	ok(r.t, cmd.Wait())
	return a
}

// TestScaleAddResumes kills an add of 8 GiB half-way; the second run must not
// read all of it again.
func TestScaleAddResumes(t *testing.T) {
	r := newRepo(t)
	bigSource(t, r.path("d"))
	p := start(t, boleBin, "-C", r.dir, "add", ".")
	for {
		if read, _ := ioOf(t, p.pid()); read >= bigFiles*bigSize/2 {
			break
		}
		if p.ended() {
			t.Fatal("add ended before it was half-way")
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.kill()
	again := r.accounted("add", ".")
	benchkit.AtMost(t, "read again by add after a kill half-way", float64(again.read)/(bigFiles*bigSize)*100, 65, "%")
	r.must("commit", "-m", "8 GiB")
	r.fsck()
}
