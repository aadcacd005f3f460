package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestCase03NamesThatDifferInCase(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("README"), "upper")
	write(t, r.path("readme"), "lower")
	write(t, r.path("Dir", "f"), "1")
	write(t, r.path("dir", "f"), "2")
	write(t, r.path("\u00c4"), "composed") // Ä once as one letter,
	write(t, r.path("A\u0308"), "decomposed")
	c1 := r.commit()
	first := readTree(t, r.dir)
	r.views(c1, func(t testing.TB, how, dir string) {
		sameTree(t, how, first, readTree(t, dir), sameOpts{})
	})

	ok(t, os.Rename(r.path("readme"), r.path("Readme")))
	ok(t, os.Rename(r.path("dir"), r.path("DIR")))
	st := r.status()
	for _, p := range []string{"readme", "Readme"} {
		if st[p] == "" {
			t.Errorf("status does not name %s: %v", p, st)
		}
	}
	if st["README"] != "" || st["Dir/f"] != "" {
		t.Errorf("status names an entry that did not change: %v", st)
	}
	c2 := r.commit()
	second := readTree(t, r.dir)
	r.views(c2, func(t testing.TB, how, dir string) {
		sameTree(t, how, second, readTree(t, dir), sameOpts{dirTimes: true})
	})
	r.wantClean()
	for i, step := range []struct {
		rev  string
		want map[string]node
	}{{c1, first}, {c2, second}, {c1, first}, {"main", second}} {
		r.must("checkout", step.rev)
		sameTree(t, "checkout "+step.rev, step.want, readTree(t, r.dir), sameOpts{dirTimes: i > 0})
		r.wantClean()
	}
}

// A disk that folds case takes one of two such names for the other.
func TestCase03CheckoutOnAFoldingDisk(t *testing.T) {
	needRoot(t)
	r := newRepo(t)
	write(t, r.path("keep"), "first")
	c1 := r.commit()
	write(t, r.path("README"), "upper")
	write(t, r.path("readme"), "lower")
	c2 := r.commit()

	disk := foldingDisk(t)
	tool(t, "cp", "-r", r.path(".bole"), disk)
	other := &repo{t: t, dir: disk}
	other.must("checkout", "--force", c1)
	other.refused([]string{"README", "readme"}, "checkout", "--force", c2)
	if exists(filepath.Join(disk, "README")) || read(t, filepath.Join(disk, "keep")) != "first" {
		t.Error("the refused checkout wrote something")
	}
}

// foldingDisk mounts an ext4 that folds the case of names, in a folder.
func foldingDisk(t testing.TB) string {
	t.Helper()
	needTool(t, "mkfs.ext4", "mount", "chattr")
	if !exists("/sys/fs/ext4/features/casefold") {
		t.Skip("needs ext4 with casefold in the kernel")
	}
	img := filepath.Join(scratch(t), "img")
	tool(t, "truncate", "-s", "64M", img)
	tool(t, "mkfs.ext4", "-q", "-O", "casefold", img)
	dir := filepath.Join(scratch(t), "disk")
	mkdir(t, dir)
	if out, err := exec.Command("mount", "-o", "loop", img, dir).CombinedOutput(); err != nil {
		t.Skip("cannot mount a folding ext4: ", strings.TrimSpace(string(out)))
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	work := filepath.Join(dir, "work")
	mkdir(t, work)
	tool(t, "chattr", "+F", work)
	return work
}
