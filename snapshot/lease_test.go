package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func (w *work) leases() []LeaseInfo {
	w.t.Helper()
	list, err := w.Leases()
	ok(w.t, err)
	return list
}

func TestLeases(t *testing.T) {
	w := newWork(t)
	if list := w.leases(); len(list) != 0 {
		t.Fatalf("leases of nobody: %v", list)
	}
	late, err := w.Lease(LeaseInfo{Kind: "mount", Started: 2, Mountpoint: "/late"})
	ok(t, err)
	early, err := w.Lease(LeaseInfo{Kind: "mount", Started: 1, Mountpoint: "/early", Commits: []string{"a"}})
	ok(t, err)
	list := w.leases()
	if len(list) != 2 || list[0].Mountpoint != "/early" || list[1].Mountpoint != "/late" || list[0].Repository != w.root || list[0].ID == list[1].ID {
		t.Fatalf("leases: %+v", list)
	}
	info := list[0]
	info.Commits = []string{"b", "c"}
	ok(t, early.Update(info))
	if list := w.leases(); fmt.Sprint(list[0].Commits) != "[b c]" || len(list) != 2 {
		t.Fatalf("leases: %+v", list)
	}
	ok(t, late.Close())
	ok(t, early.Close())
	if list := w.leases(); len(list) != 0 {
		t.Fatalf("leases after all were closed: %v", list)
	}
	left, err := os.ReadDir(w.file("run"))
	ok(t, err)
	if len(left) != 0 {
		t.Fatalf("left in run: %v", left)
	}
}

// TestLeaseOfTheDead is removed, with its socket.
func TestLeaseOfTheDead(t *testing.T) {
	w := newWork(t)
	h := startHolder(t, "lease", w.root, "/mnt")
	list := w.leases()
	if len(list) != 1 || list[0].PID != h.cmd.Process.Pid || list[0].Mountpoint != "/mnt" {
		t.Fatalf("leases: %+v", list)
	}
	ok(t, os.WriteFile(filepath.Join(w.file("run"), list[0].ID+".sock"), nil, 0o600))
	h.kill()
	if list := w.leases(); len(list) != 0 {
		t.Fatalf("leases of the dead: %+v", list)
	}
	left, err := os.ReadDir(w.file("run"))
	ok(t, err)
	if len(left) != 0 {
		t.Fatalf("left in run: %v", left)
	}
}

// TestLeaseIsNeverLostWhileItIsUpdated lists a lease whose file is replaced all the time.
func TestLeaseIsNeverLostWhileItIsUpdated(t *testing.T) {
	w := newWork(t)
	info := LeaseInfo{ID: "0011", Mountpoint: "/mnt"}
	l, err := w.Lease(info)
	ok(t, err)
	stop := while(func(i int) {
		info.Commits = []string{strings.Repeat("c", i%1000)}
		if err := l.Update(info); err != nil {
			t.Error(err)
		}
	})
	for i := range rounds(2000) {
		if list := w.leases(); len(list) != 1 || list[0].Mountpoint != "/mnt" {
			t.Errorf("round %d: %+v", i, list)
			break
		}
	}
	stop()
	ok(t, l.Close())
}

// TestMalformedLease names the file.
func TestMalformedLease(t *testing.T) {
	w := newWork(t)
	l, err := w.Lease(LeaseInfo{ID: "00ff"})
	ok(t, err)
	defer l.Close()
	ok(t, os.WriteFile(filepath.Join(w.file("run"), "00ff.json"), []byte("{"), 0o600))
	if _, err := w.Leases(); err == nil || !strings.Contains(err.Error(), "00ff.json") {
		t.Fatalf("error %v", err)
	}
}

// TestUserRunDir takes only a folder that nobody else can write to.
func TestUserRunDir(t *testing.T) {
	base := t.TempDir()
	ok(t, os.Chmod(base, 0o700))
	t.Setenv("XDG_RUNTIME_DIR", base)
	dir, err := userRunDir()
	ok(t, err)
	if dir != filepath.Join(base, "bole") {
		t.Fatalf("the folder is %s", dir)
	}
	ok(t, os.Chmod(dir, 0o777))
	if dir, err := userRunDir(); err == nil {
		t.Fatalf("%s is taken although everybody may write to it", dir)
	}
	ok(t, os.Chmod(base, 0o777)) // not ours alone: another is taken
	t.Setenv("TMPDIR", t.TempDir())
	dir, err = userRunDir()
	ok(t, err)
	if !strings.HasPrefix(dir, os.TempDir()) {
		t.Fatalf("the folder is %s", dir)
	}
	ok(t, os.Remove(dir))
	ok(t, os.Symlink("/", dir))
	if dir, err := userRunDir(); err == nil {
		t.Fatalf("%s is taken although it is a link", dir)
	}
}

// TestLeaseWhereRunIsReadOnly goes to the user's folder and is found there.
func TestLeaseWhereRunIsReadOnly(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("root may write everywhere")
	}
	w := newWork(t)
	ok(t, os.Chmod(w.file("run"), 0o555))
	l, err := w.Lease(LeaseInfo{Mountpoint: "/mnt"})
	ok(t, err)
	if list := w.leases(); len(list) != 1 {
		t.Fatalf("leases: %+v", list)
	}
	ok(t, l.Close())
}
