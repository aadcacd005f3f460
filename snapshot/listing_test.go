package snapshot

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// TestReadListing reads folders that take several calls, with names of all lengths.
func TestReadListing(t *testing.T) {
	for _, n := range []int{0, 1, 3000} {
		dir := t.TempDir()
		var want []string
		for i := range n {
			name := fmt.Sprintf("%0*d", 1+i%255, i%7)
			if i >= 255 {
				name = fmt.Sprintf("%d-%s", i, strings.Repeat("\xff", i%100))
			}
			ok(t, os.WriteFile(filepath.Join(dir, name), nil, 0o644))
			want = append(want, name)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		l, err := readListing(mustOpen(t, dir))
		ok(t, err)
		var got []string
		for i := range l.names {
			got = append(got, string(l.name(i)))
			if j, found := l.find(got[i]); j != i || !found {
				t.Fatalf("%q is found at %d, %v", got[i], j, found)
			}
		}
		wantList(t, "names", got, want...)
		if _, found := l.find("not there"); found {
			t.Fatal("what is not there is found")
		}
	}
}

// TestListingOfMalformedAnswers: what the kernel never says is an error, no panic.
func TestListingOfMalformedAnswers(t *testing.T) {
	record := func(length uint16, name string) []byte {
		b := make([]byte, 19, 19+len(name))
		binary.NativeEndian.PutUint16(b[16:], length)
		return append(b, name...)
	}
	for name, b := range map[string][]byte{
		"cut off":    make([]byte, 10),
		"length 0":   record(0, "x\x00"),
		"too long":   record(500, "x\x00"),
		"empty name": record(20, "\x00"),
		"long name":  record(19+300, strings.Repeat("n", 300)),
	} {
		if err := (&listing{}).parse(b); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
	l := &listing{}
	ok(t, l.parse(append(record(22, "a\x00\x00"), record(22, "..\x00")...)))
	if len(l.names) != 1 || string(l.name(0)) != "a" {
		t.Errorf("names: %v", l.names)
	}
}

// TestOpenPath follows no link, leaves no tree and enters no mount.
func TestOpenPath(t *testing.T) {
	root := t.TempDir()
	ok(t, os.MkdirAll(filepath.Join(root, "a/b/c"), 0o755))
	ok(t, os.WriteFile(filepath.Join(root, "a/file"), nil, 0o644))
	ok(t, os.Symlink("a", filepath.Join(root, "link")))
	ok(t, os.Symlink("/", filepath.Join(root, "a/out")))
	fd := mustOpen(t, root)
	for path, want := range map[string]error{
		"": nil, ".": nil, "a": nil, "a/b/c": nil, "a//b": nil,
		"x": unix.ENOENT, "a/x/y": unix.ENOENT, "a/file": unix.ENOTDIR, "a/file/x": unix.ENOTDIR,
		"link": unix.ENOTDIR, "link/b": unix.ELOOP, "a/out": unix.ENOTDIR, "a/out/etc": unix.ELOOP,
		"..": unix.EXDEV, "a/../..": unix.EXDEV, "/etc": unix.EXDEV,
	} {
		got, err := openDirAt(fd, path)
		if err == nil {
			unix.Close(got)
		}
		if err != want {
			t.Errorf("%q: %v, want %v", path, err, want)
		}
	}
	other := t.TempDir()
	bind(t, other, filepath.Join(root, "a/b"))
	for _, path := range []string{"a/b", "a/b/c"} {
		if _, err := openDirAt(fd, path); err != unix.EXDEV {
			t.Errorf("%q, which is mounted: %v", path, err)
		}
	}
}

// TestLstat reads kinds, times before 1970 and after 2262, and modes.
func TestLstat(t *testing.T) {
	dir := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(dir, "f"), []byte("12345"), 0o640))
	ok(t, os.Symlink("target", filepath.Join(dir, "l")))
	ok(t, os.Chmod(filepath.Join(dir, "f"), os.ModeSetuid|os.ModeSticky|0o751))
	fd := mustOpen(t, dir)
	for _, ns := range []int64{0, -1, -1e9, -1e9 - 1, 1, 1_700_000_000_999_999_999, 4_300_000_000_000_000_000} {
		ok(t, unix.UtimesNanoAt(fd, "f", mtimeSpec(ns), 0))
		var st fileStat
		ok(t, lstatAt(fd, "f", &st))
		if st.mtime != ns || st.farTime || st.kind != merkle.KindFile || st.size != 5 || st.perm != 0o751 || st.ctime == 0 || st.ino == 0 {
			t.Errorf("%d: %+v", ns, st)
		}
	}
	var st fileStat
	ok(t, lstatAt(fd, "l", &st))
	if st.kind != merkle.KindSymlink || st.size != 6 {
		t.Errorf("link: %+v", st)
	}
	ok(t, lstatAt(fd, "", &st))
	if st.kind != merkle.KindDir || st.mountRoot {
		t.Errorf("folder: %+v", st)
	}
	if err := lstatAt(fd, "x", &st); err != unix.ENOENT {
		t.Error(err)
	}
}
