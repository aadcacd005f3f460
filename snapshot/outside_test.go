package snapshot

import (
	"net"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// bind mounts one path over another for the length of the test.
func bind(t *testing.T, source, target string) {
	t.Helper()
	needRoot(t)
	ok(t, unix.Mount(source, target, "", unix.MS_BIND, ""))
	t.Cleanup(func() { ok(t, unix.Unmount(target, unix.MNT_DETACH)) })
}

// addSkipping adds everything and returns what was reported as left out.
func (w *work) addSkipping() (paths []string) {
	w.t.Helper()
	_, err := w.Add(ctx, AddOptions{Skipped: func(p Problem) { paths = append(paths, p.Path) }})
	ok(w.t, err)
	return paths
}

func (w *work) statusSkipped() (paths []string) {
	w.t.Helper()
	for _, p := range w.status().Skipped {
		paths = append(paths, p.Path)
	}
	return paths
}

// TestSpecialFiles reports and skips what is neither file, folder nor link, and waits on none.
func TestSpecialFiles(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	w.save("first")
	ok(t, unix.Mkfifo(w.at("pipe"), 0o644))
	dir, err := os.Open(w.root) // a socket's path is short
	ok(t, err)
	defer dir.Close()
	ok(t, os.Chdir(w.root))
	defer os.Chdir("/")
	l, err := net.Listen("unix", "socket")
	ok(t, err)
	defer l.Close()
	want := []string{"pipe", "socket"}
	if os.Geteuid() == 0 {
		ok(t, unix.Mknod(w.at("dev"), unix.S_IFCHR|0o600, int(unix.Mkdev(1, 3))))
		want = append([]string{"dev"}, want...)
	}
	wantList(t, "skipped by add", w.addSkipping(), want...)
	wantList(t, "skipped by status", w.statusSkipped(), want...)
	w.write("g", "y") // also when there is something to do
	wantList(t, "skipped by add", w.addSkipping(), want...)
	_, err = w.tryAdd("pipe")
	wantErr(t, err, ErrUnreadable, "pipe")
	w.wantPaths(w.commit("second"), "f", "g")
}

// TestFileBecomesPipe: what the index had is gone.
func TestFileBecomesPipe(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	w.save("first")
	w.remove("f")
	ok(t, unix.Mkfifo(w.at("f"), 0o644))
	wantList(t, "skipped", w.statusSkipped(), "f")
	w.wantUnstaged("D f")
	w.add()
	w.wantPaths(w.commit("second"))
	w.remove("f")
	w.mustCheckout("HEAD~1")
	w.remove("f")
	ok(t, unix.Mkfifo(w.at("f"), 0o644))
	_, err := w.checkout("main")
	wantErr(t, err, ErrConflict, "f")
}

// TestNestedRepository is skipped, and files below it are refused by name.
func TestNestedRepository(t *testing.T) {
	w := newWork(t)
	w.write("plain/f", "x")
	w.write("tracked/f", "x")
	w.save("first")
	ok(t, Init(w.at("nested"), InitOptions{}))
	w.write("nested/f", "not ours")
	wantList(t, "skipped", w.addSkipping(), "nested")
	wantList(t, "skipped", w.statusSkipped(), "nested")
	_, err := w.tryAdd("nested/f")
	wantErr(t, err, ErrUnreadable, "nested")
	_, err = w.tryAdd("nested")
	wantErr(t, err, ErrUnreadable, "nested")
	w.wantStaged()

	ok(t, Init(w.at("tracked"), InitOptions{})) // a tracked folder becomes one: kept as it is
	w.write("tracked/f", "changed")
	w.wantUnstaged()
	wantList(t, "skipped", w.addSkipping(), "nested", "tracked")
	_, err = w.tryCommit("nothing")
	wantErr(t, err, ErrNothing)
}

func TestReservedNames(t *testing.T) {
	w := newWork(t)
	w.write("d/.BOLE", "x")
	w.write("d/.Bole/in", "x")
	w.write(".bOLE/in", "x")
	w.write(".bole2", "fine")
	w.write("d/.bol", "fine")
	w.write("d/bole", "fine")
	wantList(t, "skipped", w.addSkipping(), ".bOLE", "d/.BOLE", "d/.Bole")
	w.wantPaths(w.commit("first"), ".bole2", "d", "d/.bol", "d/bole")
	_, err := w.tryAdd("d/.Bole/in")
	wantErr(t, err, ErrUnreadable, "d/.Bole")
}

// TestMountsBelow skips what is mounted and never takes it for deleted.
func TestMountsBelow(t *testing.T) {
	w := newWork(t)
	w.write("dir/f", "ours")
	w.write("file", "ours")
	w.write("gone/f", "ours")
	first := w.save("first")
	other := t.TempDir()
	ok(t, os.WriteFile(filepath.Join(other, "theirs"), []byte("theirs"), 0o644))
	w.mkdir("new")
	bind(t, other, w.at("dir"))
	bind(t, other, w.at("new"))
	bind(t, filepath.Join(other, "theirs"), w.at("file"))

	w.remove("gone")
	want := []string{"dir", "file", "new"}
	w.wantUnstaged("D gone")
	wantList(t, "skipped", w.statusSkipped(), want...)
	wantList(t, "skipped", w.addSkipping(), want...)
	w.wantStaged("D gone")
	_, err := w.tryAdd("dir/theirs")
	wantErr(t, err, ErrUnreadable, "dir")
	second := w.commit("second")
	w.wantPaths(second, "dir", "dir/f", "file")

	// A checkout must not write into what is mounted, whatever it is told.
	empty := w.emptyCommit()
	for _, force := range []bool{false, true} {
		_, err := w.checkout(empty.String(), force)
		wantConflicts(t, err, "dir", "file")
	}
	w.mustCheckout(first.String()) // differs elsewhere only
	if w.read("gone/f") != "ours" {
		t.Fatal("gone/f did not come back")
	}
	if b, err := os.ReadFile(filepath.Join(other, "theirs")); err != nil || string(b) != "theirs" {
		t.Fatalf("what was mounted has changed: %q, %v", b, err)
	}
}

// emptyCommit is a commit of nothing that stands on no branch.
func (w *work) emptyCommit() merkle.Hash {
	w.t.Helper()
	c := merkle.Commit{RootPerm: 0o755, Message: "empty"}
	h, b := merkle.EmptyDir()
	c.Tree = h
	return w.putCommit(c, map[merkle.Hash][]byte{h: b})
}

// TestHardLinks are equal files, and a checkout gives each a file of its own.
func TestHardLinks(t *testing.T) {
	w := newWork(t)
	w.write("a", "shared")
	ok(t, os.Link(w.at("a"), w.at("b")))
	id := w.save("links")
	w.wantClean()
	w.remove("a")
	w.remove("b")
	w.save("none")
	w.mustCheckout(id.String())
	f, err := os.OpenFile(w.at("a"), os.O_WRONLY|os.O_APPEND, 0)
	ok(t, err)
	_, err = f.WriteString("!")
	ok(t, err)
	ok(t, f.Close())
	if w.read("b") != "shared" {
		t.Fatal("a write to one name changed the other")
	}
}
