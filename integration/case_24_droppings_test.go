package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// droppings are what desktops leave behind: never committed by the default rules.
var droppings = []string{
	".DS_Store", "._f", ".AppleDouble/x", ".LSOverride", ".Spotlight-V100/x", ".DocumentRevisions-V100/x", ".TemporaryItems/x",
	".Trashes/x", ".fseventsd/x", ".apdisk", ".Trash-1000/files/x", ".directory", ".~lock.doc.odt#", ".fuse_hidden0001", ".nfs0001",
	"Thumbs.db", "desktop.ini", "$RECYCLE.BIN/x",
}

func TestCase24DefaultIgnoreList(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("f"), "f")
	for _, dir := range []string{"", "sub/deep"} {
		for _, p := range droppings {
			write(t, r.path(dir, p), "dropping")
		}
	}
	write(t, r.path("sub", "g"), "g")
	r.commit()
	r.wantClean()
	// sub/deep holds nothing else; as a directory it is kept.
	got := readTree(t, r.elsewhere("HEAD").dir)
	for p := range got {
		switch p {
		case ".", "f", "sub", "sub/g", "sub/deep":
		default:
			t.Errorf("%s was committed", p)
		}
	}
	ignored := r.must("status", "--ignored")
	for _, p := range droppings {
		if top := strings.SplitN(p, "/", 2)[0]; !strings.Contains(ignored, top) {
			t.Errorf("status --ignored does not show %s:\n%s", top, ignored)
		}
	}
	// A line of one's own undoes the default; what is tracked stays.
	write(t, r.path(".boleignore"), "!.DS_Store\n!desktop.ini\n")
	r.commit()
	checkKept(t, r, ".DS_Store", "dropping")
	checkKept(t, r, "sub/deep/desktop.ini", "dropping")
	ok(t, os.Remove(r.path(".boleignore")))
	write(t, r.path(".DS_Store"), "changed")
	r.commit()
	checkKept(t, r, ".DS_Store", "changed")
	r.wantClean()
}

func TestCase24LookupsOfDroppings(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("d", "f"), "f")
	r.commit()
	m := r.mount("HEAD")
	ask := func() {
		for range 1000 {
			for _, p := range droppings {
				top := strings.SplitN(p, "/", 2)[0]
				for _, dir := range []string{"", "d"} {
					if err := unix.Lstat(m.path(dir, top), new(unix.Stat_t)); err != unix.ENOENT {
						t.Fatalf("%s: %v, want ENOENT", top, err)
					}
				}
			}
		}
	}
	first := m.during(ask)
	if limit := uint64(3 * len(droppings)); first["LOOKUP"] > limit {
		t.Errorf("the first 1,000 rounds: %v, at most %d lookups wanted", first, limit)
	}
	if again := m.quietest(3, ask); again.total() != 0 {
		t.Errorf("the next 1,000 rounds reach the daemon: %v", again)
	}
	e := findMount(listMounts(t), m.dir)
	if log, isText := e["log"].(string); isText && log != "" {
		if st, err := os.Stat(log); err == nil && st.Size() > 64*kib {
			t.Errorf("the log grew to %d bytes", st.Size())
		}
		if b, err := os.ReadFile(log); err == nil && strings.Contains(string(b), ".DS_Store") {
			t.Errorf("the log speaks of lookups:\n%s", clip(string(b)))
		}
	} else {
		t.Errorf("mounts --json names no log: %v", fmt.Sprint(e))
	}
	m.umount()
}
