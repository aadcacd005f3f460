package snapshot

import (
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// otherUser makes a repository with one commit and gives it to another user.
func otherUser(t *testing.T, fill func(w *work)) *work {
	t.Helper()
	needRoot(t)
	w := newWork(t)
	openUp(t, w.root)
	fill(w)
	w.save("first")
	giveAway(t, w.root)
	return w
}

// asOther runs a child as the other user and returns what it printed and whether it failed.
func (w *work) asOther(t *testing.T, name string, args ...string) (string, bool) {
	t.Helper()
	out, err := asNobody(child(t, name, append([]string{w.root}, args...)...)).CombinedOutput()
	return string(out), err != nil
}

// wantAll fails unless a text holds all of the parts.
func wantAll(t tb, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Fatalf("%q is not in:\n%s", p, text)
		}
	}
}

// TestUnreadable: what cannot be read is named, does not count as deleted, and
// keeps nothing else from being recorded.
func TestUnreadable(t *testing.T) {
	w := otherUser(t, func(w *work) {
		w.write("a", "1")
		w.write("b", "1")
		w.write("sub/f", "1")
		w.write("list/f", "1") // may be listed, not looked at
	})
	w.write("a", "2")
	w.write("b", "2")
	w.write("sub/f", "2")
	w.write("list/f", "2")
	giveAway(t, w.root)
	w.chmod("b", 0)
	w.chmod("sub", 0)
	w.chmod("list", 0o400)

	out, failed := w.asOther(t, "status")
	wantAll(t, out, "M a\n", "M b\n", `"sub": permission denied`, `"list/f": permission denied`) // b's mode shows
	if !failed || strings.Contains(out, "D ") {
		t.Fatalf("status (failed: %v) says:\n%s", failed, out)
	}
	out, failed = w.asOther(t, "add")
	wantAll(t, out, `"b": permission denied`, `"sub": permission denied`, `"list/f": permission denied`, "Modified:2 Deleted:0")
	if !failed {
		t.Fatal("add ended well")
	}
	// b's content was never read, and a directory's own mode can be seen.
	w.wantStaged("M a", "M list")
	w.chmod("b", 0o644)
	w.chmod("sub", 0o755)
	w.chmod("list", 0o755)
	w.add()
	w.wantStaged("M a", "M b", "M sub/f", "M list/f")
}

// TestUnreadableForced: force replaces a file that cannot be read.
func TestUnreadableForced(t *testing.T) {
	w := otherUser(t, func(w *work) {
		w.write("b", "1")
		w.write("b2", "1")
	})
	w.write("b", "2")
	giveAway(t, w.root)
	w.chmod("b", 0)
	if out, failed := w.asOther(t, "checkout", "main", "force"); failed {
		t.Fatal(out)
	}
	if w.read("b") != "1" {
		t.Fatal("b is what it was")
	}
	w.wantClean()
}

// TestFoldersThatMayNotBeWritten are written by their owner all the same, and
// keep their modes.
func TestFoldersThatMayNotBeWritten(t *testing.T) {
	w := otherUser(t, func(w *work) {
		w.write("d/f", "1")
		w.write("d/e/gone", "1")
		w.write("new", "1")
		w.chmod("d", 0o555)
		w.chmod("d/e", 0o555)
	})
	first := readDisk(t, w.root)
	w.chmod("d", 0o755)
	w.chmod("d/e", 0o755)
	w.write("d/f", "2")
	w.remove("d/e/gone")
	w.write("d/x/y", "2")
	w.chmod("d/x", 0o500)
	w.chmod("d/e", 0o555)
	w.chmod("d", 0o555)
	giveAway(t, w.root)
	if out, failed := w.asOther(t, "add"); failed {
		t.Fatal(out)
	}
	if out, failed := w.asOther(t, "commit"); failed {
		t.Fatal(out)
	}
	second := readDisk(t, w.root)
	if out, failed := w.asOther(t, "checkout", "HEAD~1"); failed {
		t.Fatal(out)
	}
	wantTree(t, "the first commit", readDisk(t, w.root), first)
	if out, failed := w.asOther(t, "checkout", "main"); failed {
		t.Fatal(out)
	}
	wantTree(t, "the second commit", readDisk(t, w.root), second)
	w.wantClean()
}

// TestReadFault knows an error of the source from one of the store.
func TestReadFault(t *testing.T) {
	read := &os.PathError{Op: "read", Path: "d/f", Err: unix.EIO}
	for _, c := range []struct {
		err  error
		want bool
	}{
		{errors.Join(errors.New("store d/f"), read), true},
		{&os.PathError{Op: "write", Path: "d/f", Err: unix.ENOSPC}, false},
		{&os.PathError{Op: "read", Path: "/repo/.bole/contents/packs/1", Err: unix.EIO}, false},
		{unix.EIO, false},
	} {
		if got := isReadFault(c.err, "d/f"); got != c.want {
			t.Errorf("%v: %v", c.err, got)
		}
	}
}

// TestAttributeTooLarge names a file or folder whose attributes cannot be
// recorded, and records the rest.
func TestAttributeTooLarge(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	w.write("d/in", "x")
	w.write("good", "x")
	for _, p := range []string{"f", "d"} {
		if err := unix.Setxattr(w.at(p), "user.big", make([]byte, 65536), 0); err != nil {
			t.Skip("this file system holds no attribute of 64 KiB: ", err)
		}
	}
	w.add() // 64 KiB exactly are fine
	w.commit("first")
	// No file system of Linux holds more, so the limit is met by the number.
	for i := range 200 {
		for _, p := range []string{"f", "d"} {
			if err := unix.Setxattr(w.at(p), "user."+strings.Repeat("n", 200)+string(rune('a'+i%26))+string(rune('a'+i/26)), make([]byte, 60000), 0); err != nil {
				t.Skip("this file system holds no 12 MB of attributes: ", err)
			}
		}
	}
	w.write("good", "y")
	_, err := w.tryAdd()
	wantErr(t, err, ErrUnreadable, `"d"`, `"f"`)
	w.wantStaged("M good")
}

// TestFarTimes names what has a time that cannot be recorded.
func TestFarTimes(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	w.write("d/in", "x")
	w.write("good", "x")
	w.write("old", "x")
	w.touch("old", -9_000_000_000_123_456_789)
	for _, p := range []string{"f", "d"} {
		ok(t, unix.UtimesNanoAt(unix.AT_FDCWD, w.at(p), []unix.Timespec{{Nsec: unix.UTIME_OMIT}, {Sec: 9_300_000_000}}, 0))
	}
	if fi, err := os.Stat(w.at("f")); err != nil || fi.ModTime().Unix() != 9_300_000_000 {
		t.Skip("this file system knows no year 2264")
	}
	_, err := w.tryAdd()
	wantErr(t, err, ErrUnreadable, `"d"`, `"f"`)
	w.wantStaged("A good", "A old")
	if got := readCommitTree(t, w.Repo, w.commit("first"))["old"].Mtime; got != -9_000_000_000_123_456_789 {
		t.Fatalf("a time before 1970 became %d", got)
	}
}
