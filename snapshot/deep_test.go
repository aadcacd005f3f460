package snapshot

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// deepDir makes folders of one name in each other, with relative calls, since
// their path is longer than the kernel takes, and a file in the last.
func (w *work) deepDir(name string, depth int) {
	w.t.Helper()
	fd, err := unix.Open(w.root, unix.O_PATH|unix.O_DIRECTORY, 0)
	ok(w.t, err)
	for range depth {
		ok(w.t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_PATH|unix.O_DIRECTORY, 0)
		ok(w.t, err)
		unix.Close(fd)
		fd = next
	}
	defer unix.Close(fd)
	f, err := unix.Openat(fd, "file", unix.O_WRONLY|unix.O_CREAT, 0o644)
	ok(w.t, err)
	_, err = unix.Write(f, []byte("at the bottom"))
	ok(w.t, err)
	ok(w.t, unix.Close(f))
}

func deepPath(name string, depth int) string { return strings.Repeat(name+"/", depth) + "file" }

// TestPathLongerThanTheKernelTakes goes through everything with 25 folders of 200 bytes.
func TestPathLongerThanTheKernelTakes(t *testing.T) {
	w := newWork(t)
	name := strings.Repeat("n", 200)
	w.deepDir(name, 25)
	bottom := deepPath(name, 25)
	id := w.save("deep")
	w.wantClean()
	w.wantSound()
	e, err := w.Lookup(id, bottom)
	ok(t, err)
	if b, err := w.ReadContent(e.Hash, nil); err != nil || string(b) != "at the bottom" {
		t.Fatalf("%q, %v", b, err)
	}
	w.remove(name)
	w.wantUnstaged("D " + name)
	w.save("gone")
	w.mustCheckout(id.String())
	w.wantClean()
	// The bottom by its name, changed and taken back.
	fd, err := openDirAt(mustOpen(t, w.root), parentPath(bottom))
	ok(t, err)
	ok(t, unix.Unlinkat(fd, "file", 0))
	unix.Close(fd)
	w.wantUnstaged("D " + bottom)
	w.add(bottom)
	w.wantStaged("D " + bottom)
	w.mustCheckout(id.String(), true)
	w.wantClean()
}

func mustOpen(t testing.TB, dir string) int {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	ok(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// TestManyFoldersDeep is as deep as a tree can be, and one deeper: that is named
// and left out, and does not spoil the commit.
func TestManyFoldersDeep(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: the kernel walks each path from the root")
	}
	w := newWork(t)
	w.write("good", "x")
	w.deepDir("d", merkle.MaxDepth) // the file is one name too many
	_, err := w.tryAdd()
	wantErr(t, err, ErrUnreadable, "too deep")
	id := w.commit("deep")
	n := 0
	root, err := w.Lookup(id, "")
	ok(t, err)
	ok(t, w.Walk("", root, func(string, *merkle.Entry) error { n++; return nil }))
	if n != merkle.MaxDepth+1 {
		t.Fatalf("the commit holds %d paths", n)
	}
}

// TestSomeFoldersDeep goes there and back where readers, stacks and descriptors could run out.
func TestSomeFoldersDeep(t *testing.T) {
	w := newWork(t)
	w.deepDir("d", 1200) // more than there are slots for readers
	id := w.save("deep")
	w.wantSound()
	w.remove("d")
	w.save("gone")
	w.mustCheckout(id.String())
	w.wantClean()
	w.mustCheckout("main")
	w.wantClean()
	w.wantUnstaged()
}
