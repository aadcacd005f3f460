package treegen

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// census is what a walk over a tree finds.
type census struct {
	files, dirs int
	bytes       int64
	sum         string // over path, mode, size, mtime and content of everything
}

// count walks dir; the root counts for the sum but not as a directory.
func count(t *testing.T, dir string) census {
	t.Helper()
	var c census
	h := sha256.New()
	contents := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v %d\n", rel, info.Mode(), info.ModTime().UnixNano())
		switch {
		case d.IsDir() && path != dir:
			c.dirs++
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			if other, twice := contents[string(data)]; twice && len(data) > 0 {
				t.Errorf("%q and %q hold the same bytes", rel, other)
			}
			contents[string(data)] = rel
			c.files++
			c.bytes += info.Size()
			h.Write(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	c.sum = fmt.Sprintf("%x", h.Sum(nil)[:8])
	return c
}

// fixed gives a root that this test made the one time that every run has.
func fixed(t *testing.T, dir string) string {
	t.Helper()
	if err := setTime(dir, 0); err != nil {
		t.Fatal(err)
	}
	return dir
}

// memoryDir returns a directory in memory where there is room for the benchmark
// tree: ext4 takes many times longer to make files within seconds of the
// removal of as many others. Elsewhere it is an ordinary temporary directory.
func memoryDir(t *testing.T) string {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs("/dev/shm", &st); err != nil || st.Type != unix.TMPFS_MAGIC || int64(st.Bavail)*st.Bsize < 512<<20 {
		return t.TempDir()
	}
	dir, err := os.MkdirTemp("/dev/shm", "treegen")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

func TestBench(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	dir := filepath.Join(memoryDir(t), "bench")
	if err := Bench(dir); err != nil {
		t.Fatal(err)
	}
	got := count(t, fixed(t, dir))
	want := census{files: 52_200, dirs: 5_220, bytes: 53_452_800, sum: "fa2431d5efb22914"}
	if got != want {
		t.Errorf("benchmark tree: %+v, want %+v", got, want)
	}
	if BenchDirs != want.dirs || BenchFiles != want.files || BenchBytes != want.bytes {
		t.Errorf("constants say %d directories, %d files, %d bytes", BenchDirs, BenchFiles, BenchBytes)
	}
	for _, d := range []string{"class_00", "class_19/group_19", "class_07/group_13/set_11"} {
		entries, err := filepath.Glob(filepath.Join(dir, d, "sample_*"))
		if err != nil || len(entries) != 10 {
			t.Errorf("%s holds %d files, want 10 (%v)", d, len(entries), err)
		}
	}
}

func TestFlat(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o022))
	var first census
	for run := range 2 {
		dir := filepath.Join(memoryDir(t), "flat")
		if err := Flat(dir, 1234, 100); err != nil {
			t.Fatal(err)
		}
		c := count(t, fixed(t, dir))
		if c.files != 1234 || c.dirs != 0 || c.bytes != 123_400 {
			t.Errorf("flat directory: %+v", c)
		}
		if run == 0 {
			first = c
		} else if c != first {
			t.Errorf("second run made %+v, first %+v", c, first)
		}
	}
}

func TestSpanGrows(t *testing.T) {
	whole, steps := memoryDir(t), memoryDir(t)
	if err := Span(whole, 0, 7000); err != nil {
		t.Fatal(err)
	}
	for _, step := range [][2]int{{0, 3000}, {3000, 3000}, {3000, 7000}} {
		if err := Span(steps, step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
	list := func(dir string) (names []string) {
		t.Helper()
		err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			names = append(names, strings.TrimPrefix(path, dir))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	a, b := list(whole), list(steps)
	if len(a) != 1+1+7+7000 || strings.Join(a, "\n") != strings.Join(b, "\n") {
		t.Errorf("one step made %d paths, three steps %d", len(a), len(b))
	}
	if err := Span(steps, 1, 2); err == nil {
		t.Error("a span of part of a directory must be refused")
	}
}

func TestLarge(t *testing.T) {
	dir := t.TempDir()
	for i, size := range []int64{0, 1, 4097, 3<<20 + 5} {
		path := filepath.Join(dir, "large")
		if err := Large(path, size, uint64(i)); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil || int64(len(data)) != size {
			t.Errorf("size %d: %d bytes, %v", size, len(data), err)
		}
		blocks := map[string]bool{}
		for at := 0; at+4096 <= len(data); at += 4096 {
			blocks[string(data[at:at+4096])] = true
		}
		if len(blocks) != len(data)/4096 {
			t.Errorf("size %d: %d different blocks of %d", size, len(blocks), len(data)/4096)
		}
	}
	if err := Large(filepath.Join(dir, "no", "such"), 1, 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing directory: %v", err)
	}
}

func TestOdd(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("the tree holds a file of mode 0000, which only root can read")
	}
	defer syscall.Umask(syscall.Umask(0o022))
	dir := filepath.Join(t.TempDir(), "odd")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := Odd(dir); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(filepath.Join(dir, "names"))
	if err != nil || len(entries) != len(OddNames) {
		t.Errorf("names holds %d entries, want %d (%v)", len(entries), len(OddNames), err)
	}
	for name, want := range OddTimes {
		info, err := os.Lstat(filepath.Join(dir, "times", name))
		if err != nil || !info.ModTime().Equal(want) {
			t.Errorf("time %s: %v, %v; want %v", name, info, err, want)
		}
	}
	for name, want := range map[string]fs.FileMode{
		".": 0o751 | fs.ModeDir, "modes/0000": 0, "modes/0444": 0o444, "modes/0600": 0o600, "empty/locked": 0o555 | fs.ModeDir,
		"links/dangling": 0o777 | fs.ModeSymlink,
	} {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode(), want, err)
		}
	}
	for _, n := range []int{128, 129, 901, 4000} {
		target, err := os.Readlink(filepath.Join(dir, fmt.Sprintf("links/length-%d", n)))
		if err != nil || len(target) != n {
			t.Errorf("link of length %d: %d bytes, %v", n, len(target), err)
		}
	}
	checkOddAttrs(t, dir)
	checkSparse(t, filepath.Join(dir, "sparse/middle"))
}

// checkOddAttrs looks for attributes with no value, with any bytes and with
// many.
func checkOddAttrs(t *testing.T, dir string) {
	t.Helper()
	for _, c := range []struct {
		path, key string
		size      int
	}{{"", "user.empty", 0}, {"", "user.binary", 5}, {"attrs/dir", "user.binary", 5}, {"attrs/file", "user.big", 1000}} {
		buf := make([]byte, 2000)
		n, err := unix.Lgetxattr(filepath.Join(dir, c.path), c.key, buf)
		if err != nil || n != c.size {
			t.Errorf("attribute %s of %q: %d bytes, %v; want %d", c.key, c.path, n, err, c.size)
		}
	}
}

// checkSparse wants a file that takes little of the disk and holds data in the
// middle alone.
func checkSparse(t *testing.T, path string) {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	if st.Size != SparseSize || st.Blocks*512 > 1<<20 {
		t.Errorf("sparse file: %d bytes, %d allocated", st.Size, st.Blocks*512)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	zero := make([]byte, SparseSize/2)
	if !bytes.Equal(data[:SparseSize/2], zero) || bytes.Equal(data[SparseSize/2:SparseSize/2+4096], zero[:4096]) {
		t.Error("the data of the sparse file is not in its middle")
	}
}

func TestSpecial(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	names, err := Special(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		info, err := os.Lstat(filepath.Join(dir, name))
		if err != nil || info.Mode().IsRegular() || info.IsDir() {
			t.Errorf("%s: %v, %v; want a special file", name, info, err)
		}
	}
	if len(names) < 2 {
		t.Errorf("only %q were made", names)
	}
}
