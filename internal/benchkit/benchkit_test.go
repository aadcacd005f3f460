//go:build linux

package benchkit

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{{nil, 0}, {[]float64{7}, 7}, {[]float64{9, 1, 5}, 5}, {[]float64{4, 1, 3, 2}, 2.5}} {
		before := slices.Clone(c.values)
		if got := Median(c.values); got != c.want || !slices.Equal(before, c.values) {
			t.Errorf("Median(%v) = %v, want %v", before, got, c.want)
		}
	}
}

func TestAlternateTakesTurns(t *testing.T) {
	var order strings.Builder
	arm := func(name string) Arm {
		return Arm{
			Name:    name,
			Prepare: func() error { order.WriteString("p"); return nil },
			Run:     func() error { order.WriteString(name); return nil },
		}
	}
	if _, err := Alternate(3, arm("a"), arm("b")); err != nil {
		t.Fatal(err)
	}
	if got := order.String(); got != "papbpbpapapb" {
		t.Errorf("order %q", got)
	}
}

func TestPreparingIsNotMeasured(t *testing.T) {
	var preparing time.Duration
	start := time.Now()
	times, err := Alternate(1, Arm{
		Name: "x",
		Prepare: func() error {
			start := time.Now()
			time.Sleep(20 * time.Millisecond)
			preparing = time.Since(start)
			return nil
		},
		Run: func() error { time.Sleep(10 * time.Millisecond); return nil },
	})
	total := time.Since(start)
	if err != nil || times[0] < 10*time.Millisecond || times[0] > total-preparing {
		t.Errorf("measured %v of %v with %v of preparing (%v)", times, total, preparing, err)
	}
}

func TestAlternateStopsAtAnError(t *testing.T) {
	boom := errors.New("boom")
	if _, err := Alternate(2, Arm{Name: "x", Run: func() error { return boom }}); !errors.Is(err, boom) || !strings.Contains(err.Error(), "x, round 1") {
		t.Errorf("a failing arm: %v", err)
	}
	if _, err := Alternate(2, Arm{Name: "x", Prepare: func() error { return boom }}); !errors.Is(err, boom) {
		t.Errorf("an arm that cannot be prepared: %v", err)
	}
}

// recorder stands for the test that a figure belongs to.
type recorder struct {
	testing.TB
	out    bytes.Buffer
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Output() io.Writer     { return &r.out }
func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		print  func(t testing.TB)
		missed bool
	}{
		{"below", func(t testing.TB) { AtMost(t, "x", 1, 2, "s") }, false},
		{"equal", func(t testing.TB) { AtMost(t, "x", 2, 2, "s") }, false},
		{"above", func(t testing.TB) { AtMost(t, "x", 2.1, 2, "s") }, true},
		{"enough", func(t testing.TB) { AtLeast(t, "x", 2, 2, "s") }, false},
		{"too little", func(t testing.TB) { AtLeast(t, "x", 1.9, 2, "s") }, true},
		{"no number", func(t testing.TB) { AtMost(t, "x", math.NaN(), 2, "s") }, true},
	} {
		r := &recorder{TB: t}
		c.print(r)
		line := r.out.String()
		if r.failed != c.missed || strings.Contains(line, "MISSED") != c.missed || strings.HasSuffix(line, " ok\n") == c.missed {
			t.Errorf("%s: failed %v, want %v; printed %q", c.name, r.failed, c.missed, line)
		}
	}
}

func TestDropPages(t *testing.T) {
	dir := t.TempDir()
	data := make([]byte, 1<<20)
	names := []string{filepath.Join(dir, "a"), filepath.Join(dir, "sub", "b")}
	for _, name := range append(names, filepath.Join(dir, "empty")) {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		size := len(data)
		if filepath.Base(name) == "empty" {
			size = 0
		}
		if err := os.WriteFile(name, data[:size], 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := Cached(names[1]); err != nil || n != 1<<20 {
		t.Fatalf("a file just written has %d bytes cached, %v", n, err)
	}
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		t.Fatal(err)
	}
	if st.Type == unix.TMPFS_MAGIC {
		t.Skip("the pages of a tmpfs are its files")
	}
	if left, err := DropPages(dir); err != nil || left != 0 {
		t.Errorf("%d bytes are left after the drop, %v", left, err)
	}
	for _, name := range names {
		if n, err := Cached(name); err != nil || n != 0 {
			t.Errorf("%s: %d bytes cached after the drop, %v", name, n, err)
		}
	}
	if _, err := DropPages(filepath.Join(dir, "missing")); !os.IsNotExist(errors.Unwrap(err)) {
		t.Errorf("a missing path: %v", err)
	}
}

func TestRssAnon(t *testing.T) {
	before, err := RssAnon(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	held := make([]byte, 32<<20)
	for i := range held {
		held[i] = 1
	}
	after, err := RssAnon(os.Getpid())
	if err != nil || after-before < 16<<20 {
		t.Errorf("32 MiB more moved the figure from %d to %d (%v)", before, after, err)
	}
	if held[len(held)-1] != 1 {
		t.Error("memory forgot what it holds")
	}
	if _, err := RssAnon(1 << 30); err == nil {
		t.Error("a process that does not exist has no memory")
	}
}

func TestImage(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting an image needs root")
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("mkfs.ext4 is not installed")
	}
	scratch := t.TempDir()
	dir := filepath.Join(scratch, "mnt")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	img, err := NewImage(filepath.Join(scratch, "image"), dir, 64<<20)
	if err != nil {
		t.Skip("loop devices cannot be used here: ", err)
	}
	defer func() {
		if err := img.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(img.file); !os.IsNotExist(err) {
			t.Errorf("the image is still there: %v", err)
		}
	}()
	name, want := filepath.Join(dir, "file"), bytes.Repeat([]byte("cold "), 1<<20)
	if err := os.WriteFile(name, want, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := img.Remount(); err != nil {
		t.Fatal(err)
	}
	if n, err := Cached(name); err != nil || n > 64<<10 {
		t.Errorf("%d bytes cached in a fresh mount, %v", n, err)
	}
	if got, err := os.ReadFile(name); err != nil || !bytes.Equal(got, want) {
		t.Errorf("read %d bytes back, %v", len(got), err)
	}
	busy, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := img.Remount(); err == nil {
		t.Error("an image with an open file was remounted")
	}
	busy.Close()
	if _, err := NewImage(img.file, dir, 64<<20); !errors.Is(err, os.ErrExist) {
		t.Errorf("an image over an existing file: %v", err)
	}
}
