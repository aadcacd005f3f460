package integration

import (
	"testing"

	"golang.org/x/sys/unix"
)

// mountTmpfs mounts an empty tmpfs of a size ("64k", "1m") at dir.
func mountTmpfs(t testing.TB, dir, size string) {
	t.Helper()
	needRoot(t)
	if err := unix.Mount("bole-test", dir, "tmpfs", 0, "mode=0755,size="+size); err != nil {
		t.Skip("cannot mount a tmpfs: ", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(dir, unix.MNT_DETACH) })
}

// resizeTmpfs gives a mounted tmpfs another size.
func resizeTmpfs(t testing.TB, dir, size string) {
	t.Helper()
	ok(t, unix.Mount("bole-test", dir, "tmpfs", unix.MS_REMOUNT, "mode=0755,size="+size))
}

// usedPages returns the pages of 4 KiB that are taken at dir.
func usedPages(t testing.TB, dir string) int {
	t.Helper()
	var st unix.Statfs_t
	ok(t, unix.Statfs(dir, &st))
	return int(st.Blocks - st.Bfree)
}
