package integration

import (
	"fmt"
	"os"
	"testing"
)

func TestCase05ModeBits(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("run.sh"), "#!/bin/sh\necho ran\n")
	ok(t, os.Chmod(r.path("run.sh"), 0o755))
	write(t, r.path("data"), "d")
	for mode := range 0o1000 {
		f, d := r.path("files", fmt.Sprintf("%03o", mode)), r.path("dirs", fmt.Sprintf("%03o", mode))
		write(t, f, "m")
		mkdir(t, d)
		ok(t, os.Chmod(f, os.FileMode(mode)))
		ok(t, os.Chmod(d, os.FileMode(mode)))
	}
	want := readTree(t, r.dir)
	id := r.commit()
	r.wantClean()
	r.views(id, func(t testing.TB, how, dir string) {
		sameTree(t, how, want, readTree(t, dir), sameOpts{})
		if got := tool(t, dir+"/run.sh"); got != "ran\n" {
			t.Errorf("%s: run.sh prints %q", how, got)
		}
	})
	other := r.elsewhere(id)
	other.wantClean()

	// A change of mode alone is a change, of a file and of a directory.
	ok(t, os.Chmod(r.path("run.sh"), 0o644))
	ok(t, os.Chmod(r.path("dirs", "755"), 0o700))
	r.wantStatus("run.sh", "dirs/755")
	second := r.commit()
	if second == id {
		t.Fatal("a mode-only change makes no commit")
	}
	r.wantClean()
	m := r.mount(second)
	got := readTree(t, m.dir)
	if got["run.sh"].perm != 0o644 || got["dirs/755"].perm != 0o700 {
		t.Errorf("modes %o and %o in the second commit", got["run.sh"].perm, got["dirs/755"].perm)
	}
	m.umount()
	r.must("checkout", id)
	sameTree(t, "back to the first", want, readTree(t, r.dir), sameOpts{dirTimes: true})
	r.wantClean()
	if paths := r.diffPaths(id, second); len(paths) != 2 || !paths["run.sh"] || !paths["dirs/755"] {
		t.Errorf("diff names %v", paths)
	}
}
