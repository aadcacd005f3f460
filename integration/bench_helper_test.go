//go:build bench || scale

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"bole/internal/benchkit"
)

// rounds is how often each arm runs; a figure is the median.
const rounds = 5

// program returns an arm's work: one program, its output thrown away.
func program(args ...string) func() error {
	return func() error {
		cmd := exec.Command(args[0], args[1:]...)
		var complaint bytes.Buffer
		cmd.Stderr = &complaint
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%q: %w: %s", args, err, clip(complaint.String()))
		}
		return nil
	}
}

// ofBole is program for a command on the repository.
func (r *repo) ofBole(args ...string) func() error {
	return program(append([]string{boleBin, "-C", r.dir}, args...)...)
}

// alternate runs the arms in turn and returns the medians in seconds.
func alternate(t testing.TB, n int, arms ...benchkit.Arm) []float64 {
	t.Helper()
	medians, err := benchkit.Alternate(n, arms...)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]float64, len(arms))
	for i, m := range medians {
		out[i] = m.Seconds()
		t.Logf("%-40s %.4f s", arms[i].Name, out[i])
	}
	return out
}

// view is a mount point that is mounted afresh again and again.
type view struct {
	r    *repo
	dir  string
	opts []string
	rev  string
	m    *mnt
}

func (r *repo) view(rev string, opts ...string) *view {
	r.t.Helper()
	dir := filepath.Join(scratch(r.t), "M")
	mkdir(r.t, dir)
	return &view{r: r, dir: dir, rev: rev, opts: opts}
}

// fresh unmounts and mounts again; with cold the repository's own pages are
// dropped in between.
func (v *view) fresh(cold bool) error {
	if v.m != nil {
		v.m.umount()
		v.m = nil
	}
	if cold {
		if _, err := benchkit.DropPages(v.r.path(".bole")); err != nil {
			return err
		}
	}
	v.m = v.r.mountAt(v.dir, v.rev, v.opts...)
	return nil
}

// image makes an ext4 file system in a file and fills it.
func image(t testing.TB, size int64, fill func(dir string) error) *benchkit.Image {
	t.Helper()
	needRoot(t)
	needTool(t, "mkfs.ext4", "losetup")
	base := scratch(t)
	dir := filepath.Join(base, "ext4")
	mkdir(t, dir)
	img, err := benchkit.NewImage(filepath.Join(base, "image"), dir, size)
	ok(t, err)
	t.Cleanup(func() { ok(t, img.Close()) })
	ok(t, fill(dir))
	return img
}

// committedBench is the benchmark tree, committed.
func committedBench(t testing.TB) *repo {
	t.Helper()
	r := benchRepo(t)
	r.must("add", ".")
	r.must("commit", "-m", "the benchmark tree")
	return r
}

// seconds times one call.
func seconds(t testing.TB, f func() error) float64 {
	t.Helper()
	start := time.Now()
	ok(t, f())
	return time.Since(start).Seconds()
}

// readAll reads a file to its end in large blocks.
func readAll(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	buf := make([]byte, 1<<20)
	for {
		n, err := f.Read(buf)
		if n == 0 {
			if err != nil && err.Error() == "EOF" {
				return nil
			}
			return err
		}
	}
}
