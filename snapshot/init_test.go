package snapshot

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestUmaskHidesTheRepository: whoever asks for private files does not want their contents readable
// in the repository. Whole files are 0444 by rule; the folder above them keeps others out.
func TestUmaskHidesTheRepository(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	outside := filepath.Join(t.TempDir(), "contents")
	for _, o := range []InitOptions{{}, {Contents: outside}} {
		w := newWork(t, o)
		w.write("secret", "small")
		w.write("large", strings.Repeat("large", 1<<20))
		w.save("private")
		entries := 0
		for _, top := range []string{w.at(DirName), w.ContentsDir()} {
			ok(t, filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
				if err != nil {
					return err
				}
				fi, err := os.Lstat(path)
				if whole := strings.Contains(path, "/whole/") && !d.IsDir(); err == nil && !whole && fi.Mode().Perm()&0o077 != 0 {
					t.Errorf("%s has mode %v under umask 077", path, fi.Mode())
				}
				entries++
				return err
			}))
		}
		if entries < 10 {
			t.Errorf("only %d entries seen", entries)
		}
	}
}

// TestUmaskOfSharedRepository: there the group gets in whatever the umask is.
func TestUmaskOfSharedRepository(t *testing.T) {
	defer unix.Umask(unix.Umask(0o077))
	w := newWork(t, InitOptions{Shared: true})
	w.write("a", "small")
	w.save("for all of us")
	for path, want := range map[string]fs.FileMode{
		"": 0o775, "db": 0o775, "db/data.mdb": 0o664, "db/lock.mdb": 0o664, "contents/packs/00000001.pack": 0o664,
	} {
		fi, err := os.Lstat(w.at(filepath.Join(DirName, path)))
		ok(t, err)
		if got := fi.Mode().Perm(); got != want {
			t.Errorf("%s has mode %v, want %v", path, got, want)
		}
	}
}

// TestContentsInsideTheWorkingDirectory: add would store the packs in themselves.
func TestContentsInsideTheWorkingDirectory(t *testing.T) {
	dir := t.TempDir()
	root, link := filepath.Join(dir, "r"), filepath.Join(dir, "link")
	ok(t, os.Symlink("r", link))
	for _, contents := range []string{root, filepath.Join(root, "sub"), filepath.Join(root, "a/b/.."), filepath.Join(link, "sub")} {
		err := Init(root, InitOptions{Contents: contents})
		if err == nil || !strings.Contains(err.Error(), "lies in the working directory") {
			t.Errorf("init with contents in %s: %v", contents, err)
		}
		names, err := os.ReadDir(root)
		ok(t, err)
		if len(names) != 0 {
			t.Errorf("the refused init left %v", names)
		}
	}
	ok(t, Init(root, InitOptions{Contents: root + "-contents"}))
	ok(t, Init(filepath.Join(dir, "bare"), InitOptions{Bare: true, Contents: filepath.Join(dir, "bare", "c")}))
}
