package blobstore

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// mountTmpfs mounts an own small file system, or skips.
func mountTmpfs(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("cannot mount a tmpfs (needs root): %v", err)
	}
	t.Cleanup(func() { check(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// mountLoop makes a file system of the given kind in a file and mounts it, or skips.
func mountLoop(t *testing.T, kind string, size int64, mkfs ...string) string {
	t.Helper()
	image := filepath.Join(t.TempDir(), "image")
	check(t, os.WriteFile(image, nil, 0o600))
	check(t, os.Truncate(image, size))
	if out, err := exec.Command(mkfs[0], append(mkfs[1:], image)...).CombinedOutput(); err != nil {
		t.Skipf("%v: %v %s", mkfs, err, out)
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-o", "loop", "-t", kind, image, dir).CombinedOutput(); err != nil {
		t.Skipf("cannot mount %s: %v %s", kind, err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	return dir
}

// TestFullDisk frees a full disk page by page: until there is room, every attempt fails with ENOSPC
// and a path, and leaves the store as it was; the attempt that has room succeeds.
func TestFullDisk(t *testing.T) {
	disk := mountTmpfs(t, 8<<20)
	s, tab := createAt(t, filepath.Join(disk, "contents")), newTable()
	b := begin(t, s, tab)
	kept := []merkle.Hash{putOne(t, b, 1, 5000)}
	h, _, err := b.PutFile(sourceFile(t, content(2, 300<<10)), "kept")
	check(t, err)
	kept = append(kept, h)
	syncCommit(t, b, tab)
	check(t, b.Close())
	before, err := s.Usage()
	check(t, err)

	filler, err := os.Create(filepath.Join(disk, "filler"))
	check(t, err)
	defer filler.Close()
	full := fillDisk(t, filler)
	small, large := content(3, 100<<10), sourceFile(t, content(4, 500<<10))
	failures := 0
	for room := int64(0); ; room += 4096 {
		if room > 1<<20 {
			t.Fatal("never succeeds")
		}
		check(t, filler.Truncate(full-room))
		err := attempt(s, tab, small, large)
		if err == nil {
			break
		}
		failures++
		if !errors.Is(err, unix.ENOSPC) || !strings.Contains(err.Error(), disk) {
			t.Fatalf("with %d bytes free: %v", room, err)
		}
		if after, err := s.Usage(); err != nil || after != before {
			t.Fatalf("with %d bytes free: uses %+v, before %+v, %v", room, after, before, err)
		}
		if left := names(t, s, tmpDir); len(left) != 0 {
			t.Fatalf("with %d bytes free: left in tmp: %v", room, left)
		}
	}
	if failures < 100 {
		t.Errorf("only %d attempts failed", failures)
	}
	for _, h := range kept {
		check(t, s.Verify(h, tab.all()[h]))
	}
	wantContent(t, s, tab, merkle.ContentHash(small), small)
	wantContent(t, s, tab, merkle.ContentHash(content(4, 500<<10)), content(4, 500<<10))
}

// fillDisk writes until the disk is full and returns the size of the filler.
func fillDisk(t *testing.T, f *os.File) int64 {
	t.Helper()
	size := int64(0)
	for {
		n, err := f.WriteAt(make([]byte, 4096), size)
		size += int64(n)
		if errors.Is(err, unix.ENOSPC) {
			return size
		}
		check(t, err)
	}
}

func attempt(s *Store, tab *table, small []byte, large *os.File) (err error) {
	b, err := s.Begin(tab.index, tab.packEnd)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if _, err := b.PutBytes(small); err != nil {
		return err
	}
	if _, _, err := b.PutFile(large, large.Name()); err != nil {
		return err
	}
	recs, ends, err := b.Sync()
	if err == nil {
		tab.commit(recs, ends)
	}
	return err
}

// TestReflink: where the disk can share blocks, a large file is stored without writing it.
func TestReflink(t *testing.T) {
	for kind, mkfs := range map[string][]string{
		"btrfs": {"mkfs.btrfs", "-q"},
		"xfs":   {"mkfs.xfs", "-q", "-m", "reflink=1"},
	} {
		t.Run(kind, func(t *testing.T) {
			disk := mountLoop(t, kind, 320<<20, mkfs...)
			s, tab := createAt(t, filepath.Join(disk, "contents")), newTable()
			b := begin(t, s, tab)
			want := content(1, 5<<20)
			path := filepath.Join(disk, "source")
			check(t, os.WriteFile(path, want, 0o644))
			src := openSource(t, path)
			h, _, err := b.PutFile(src, path)
			check(t, err)
			if st := s.Stats(); st.BytesWritten != 0 {
				t.Errorf("%d bytes were written", st.BytesWritten)
			}
			check(t, patch(path, 1<<20, ^want[1<<20]))
			syncCommit(t, b, tab)
			wantContent(t, s, tab, h, want)
			check(t, s.VerifyWhole(h))
			if st := inode(t, s.wholePath(&h)); st.perm != 0o444 {
				t.Errorf("mode is %v", st.perm)
			}
			// The clone cannot change, so a source that does costs nothing but is still refused.
			n := 0
			s.midRead = func() {
				n++
				check(t, patch(path, 7, byte(n)))
			}
			h, _, err = b.PutFile(src, path)
			check(t, err)
			s.midRead = nil
			syncCommit(t, b, tab)
			check(t, s.VerifyWhole(h))
		})
	}
}

// TestVerity: on a disk with fs-verity the kernel itself refuses damaged bytes.
func TestVerity(t *testing.T) {
	disk := mountLoop(t, "ext4", 64<<20, "mkfs.ext4", "-q", "-O", "verity", "-b", "4096")
	s, tab := createAt(t, filepath.Join(disk, "contents")), newTable()
	b := begin(t, s, tab)
	h, _, err := b.PutFile(sourceFile(t, content(1, 1<<20)), "source")
	check(t, err)
	if s.noVerity.Load() {
		t.Skip("this kernel has no fs-verity")
	}
	syncCommit(t, b, tab)
	check(t, s.VerifyWhole(h))
	check(t, os.Chmod(s.wholePath(&h), 0o644))
	if err := patch(s.wholePath(&h), 0, 'x'); err == nil {
		t.Error("a file under fs-verity could be opened for writing")
	}
}

// TestChangeAfterSettleShows: a write that follows settle at once gives the file another ctime,
// with coarse time stamps (ramfs) and with fine ones.
func TestChangeAfterSettleShows(t *testing.T) {
	test := func(t *testing.T, dir string) {
		f, err := os.Create(filepath.Join(dir, "file"))
		check(t, err)
		defer f.Close()
		for n := range 50 {
			_, err := f.WriteAt([]byte{byte(n)}, 0)
			check(t, err)
			before, err := fstat(f)
			check(t, err)
			settle(f, before)
			_, err = f.WriteAt([]byte{byte(n), 1}, 0)
			check(t, err)
			if err := unchanged(f, before); !errors.Is(err, errMoved) {
				t.Fatalf("write %d was not seen: %v", n, err)
			}
		}
	}
	t.Run("disk", func(t *testing.T) { test(t, t.TempDir()) })
	t.Run("tmpfs", func(t *testing.T) { test(t, mountTmpfs(t, 1<<20)) })
	t.Run("ramfs", func(t *testing.T) {
		dir := t.TempDir()
		if err := unix.Mount("ramfs", dir, "ramfs", 0, ""); err != nil {
			t.Skipf("cannot mount a ramfs (needs root): %v", err)
		}
		defer func() { check(t, unix.Unmount(dir, unix.MNT_DETACH)) }()
		test(t, dir)
	})
}
