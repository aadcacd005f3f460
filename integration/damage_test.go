package integration

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bole/internal/treegen"

	"golang.org/x/sys/unix"
)

// damagedRepo commits two small files and two large ones, and flips one byte
// in the stored content of each name in bad.
func damagedRepo(t *testing.T, bad ...string) *repo {
	t.Helper()
	r := newRepo(t)
	for i, name := range []string{"small1", "small2", "d/small3"} {
		write(t, r.path(name), strings.Repeat(fmt.Sprintln("content of", name), 20+i))
	}
	for i, name := range []string{"large1", "d/large2"} {
		mkdir(t, r.path("d"))
		ok(t, treegen.Large(r.path(name), mib, uint64(i)))
	}
	r.commit()
	for _, name := range bad {
		flipStored(t, r.path(".bole"), []byte(read(t, r.path(name))))
	}
	return r
}

// flipStored changes one byte of a content where the repository keeps it.
func flipStored(t *testing.T, dir string, content []byte) {
	t.Helper()
	found := false
	ok(t, filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || strings.HasSuffix(path, ".mdb") {
			return err
		}
		stored, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		at := bytes.Index(stored, content)
		if at < 0 {
			return nil
		}
		found = true
		ok(t, os.Chmod(path, 0o644))
		f, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return fmt.Errorf("a sealed file cannot be damaged: %w", err)
		}
		defer f.Close()
		_, err = f.WriteAt([]byte{stored[at+len(content)/2] ^ 1}, int64(at+len(content)/2))
		return err
	}))
	if !found {
		t.Fatal("the content is nowhere in the repository")
	}
}

// wantRead reads each file of a mount: those in bad give EIO, the others are right.
func wantRead(t *testing.T, r *repo, dir string, bad ...string) {
	t.Helper()
	isBad := make(map[string]bool)
	for _, b := range bad {
		isBad[b] = true
	}
	for _, name := range []string{"small1", "small2", "d/small3", "large1", "d/large2"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		switch {
		case isBad[name] && !isErrno(err, unix.EIO):
			t.Errorf("%s is damaged and reads with %v", name, err)
		case !isBad[name] && err != nil:
			t.Errorf("%s is whole and gives %v", name, err)
		case !isBad[name] && string(got) != read(t, r.path(name)):
			t.Errorf("%s has other content", name)
		}
	}
}

func isErrno(err error, want unix.Errno) bool {
	pe, isPath := err.(*os.PathError)
	return isPath && pe.Err == want
}

// Damaged small contents are noticed at their first read, on any mount.
func TestDamagedSmallContent(t *testing.T) {
	t.Parallel()
	r := damagedRepo(t, "small1", "d/small3")
	for _, io := range []string{"stateless", "passthrough", "handles"} {
		m := r.mount("HEAD", "--io", io)
		wantRead(t, r, m.dir, "small1", "d/small3")
		wantRead(t, r, m.dir, "small1", "d/small3") // and at the second
		e := findMount(listMounts(t), m.dir)
		log := read(t, fmt.Sprint(e["log"]))
		if !strings.Contains(log, "small1") {
			t.Errorf("--io %s: the log does not name the file:\n%s", io, clip(log))
		}
		m.umount()
	}
	checkDamageFound(t, r, "small1", "d/small3")
}

// Damaged whole files are noticed where --verify asks for it.
func TestDamagedLargeContent(t *testing.T) {
	t.Parallel()
	r := damagedRepo(t, "d/large2")
	for _, io := range []string{"stateless", "passthrough", "handles"} {
		m := r.mount("HEAD", "--verify", "--io", io)
		wantRead(t, r, m.dir, "d/large2")
		m.umount()
	}
	checkDamageFound(t, r, "d/large2")
}

// checkDamageFound: fsck names what is damaged and changes nothing, checkout
// restores nothing wrong, and both exit 1.
func checkDamageFound(t *testing.T, r *repo, bad ...string) {
	t.Helper()
	before := readTree(t, r.path(".bole", "contents"))
	res := r.run("fsck", "--contents")
	checkRefused(t, result{args: res.args, code: res.code, stderr: res.both()}, bad...)
	if strings.Contains(res.both(), "small2") || strings.Contains(res.both(), "large1") {
		t.Errorf("fsck names a whole file: %v", res)
	}
	sameTree(t, "the contents after fsck", before, readTree(t, r.path(".bole", "contents")), sameOpts{})
	other := r.copyTo(t)
	res = other.run("checkout", "--force", "HEAD")
	checkRefused(t, res)
	if !strings.Contains(res.stderr, filepath.Base(bad[0])) && !strings.Contains(res.stderr, filepath.Base(bad[len(bad)-1])) {
		t.Errorf("checkout does not name the file: %v", res)
	}
	for _, b := range bad {
		if got, err := os.ReadFile(other.path(b)); err == nil && string(got) != read(t, r.path(b)) {
			t.Errorf("checkout wrote damaged bytes to %s", b)
		}
		if res := r.run("cat", "HEAD:"+b); res.code == 0 {
			t.Errorf("cat of the damaged %s succeeds", b)
		}
	}
}

// Packs and whole files that are cut off or gone touch only what they held.
func TestCutOffContents(t *testing.T) {
	t.Parallel()
	r := damagedRepo(t)
	good := read(t, r.path("large1"))
	ok(t, filepath.WalkDir(r.path(".bole", "contents"), func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		ok(t, os.Chmod(path, 0o644))
		switch {
		case st.Size() == int64(len(good)) && read(t, path) == good:
			return os.Remove(path)
		case st.Size() < mib: // the pack: its last record goes
			return os.Truncate(path, st.Size()-10)
		}
		return nil
	}))
	m := r.mount("HEAD")
	bad := 0
	for _, name := range []string{"small1", "small2", "d/small3", "large1", "d/large2"} {
		got, err := os.ReadFile(m.path(name))
		if err != nil {
			bad++
			if !isErrno(err, unix.EIO) {
				t.Errorf("%s gives %v", name, err)
			}
		} else if string(got) != read(t, r.path(name)) {
			t.Errorf("%s has other content", name)
		}
	}
	if bad != 2 {
		t.Errorf("%d files cannot be read, want 2", bad)
	}
	m.umount()
	res := r.run("fsck", "--contents")
	checkRefused(t, result{args: res.args, code: res.code, stderr: res.both()}, "large1")
}
