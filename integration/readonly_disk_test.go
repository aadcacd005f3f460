package integration

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// A repository on a disk that is mounted read-only can be read and mounted.
func TestRepositoryOnAReadOnlyDisk(t *testing.T) {
	t.Parallel()
	disk := scratch(t)
	mountTmpfs(t, disk, "64m")
	r := initRepo(t, filepath.Join(disk, "R"))
	for _, name := range []string{"a", "d/b"} {
		write(t, r.path(name), "content of "+name)
	}
	id := r.commit()
	want := readTree(t, r.dir)
	ok(t, unix.Mount("bole-test", disk, "tmpfs", unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	run := scratch(t)
	r.env = []string{"XDG_RUNTIME_DIR=" + run}
	for _, args := range [][]string{{"log"}, {"ls", "HEAD:"}, {"tree"}, {"cat", "HEAD:a"}, {"status"}, {"diff"}, {"fsck", "--contents"}, {"info"}, {"branch"}} {
		if res := r.run(args...); res.code != 0 {
			t.Errorf("%v", res)
		}
	}
	m := r.mount(id)
	sameTree(t, "mount", want, readTree(t, m.dir), sameOpts{})
	m.umount()
	for _, args := range [][]string{{"add", "."}, {"commit", "-m", "x"}, {"checkout", id}, {"branch", "new"}, {"import", run, "-m", "x"}} {
		checkRefused(t, r.run(args...))
	}
	ok(t, unix.Mount("bole-test", disk, "tmpfs", unix.MS_REMOUNT, ""))
	r.wantClean()
	r.fsck()
}
