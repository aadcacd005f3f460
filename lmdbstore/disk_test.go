package lmdbstore

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestBadDisk(t *testing.T) {
	for name, magic := range map[string]int64{
		"NFS":  unix.NFS_SUPER_MAGIC,
		"SMB":  unix.SMB_SUPER_MAGIC,
		"CIFS": unix.CIFS_SUPER_MAGIC,
		"FUSE": unix.FUSE_SUPER_MAGIC,
		"":     unix.EXT4_SUPER_MAGIC,
	} {
		if got := badDisk(magic); got != name {
			t.Errorf("%#x is called %q, not %q", magic, got, name)
		}
	}
	if badDisk(unix.SMB2_SUPER_MAGIC) != "SMB" {
		t.Error("SMB2 is taken")
	}
	for _, magic := range []int64{unix.TMPFS_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.OVERLAYFS_SUPER_MAGIC} {
		if name := badDisk(magic); name != "" {
			t.Errorf("%#x is refused as %s", magic, name)
		}
	}
}

// TestFuseIsRefused: on a real FUSE file system, and nothing is left there.
func TestFuseIsRefused(t *testing.T) {
	dir := mountFuse(t)
	mustFail(t, Create(dir, Options{}), ErrBadDisk, dir, "FUSE")
	mustFail(t, Create(filepath.Join(dir, "db"), Options{}), ErrBadDisk, dir, "FUSE")
	_, err := Open(dir, Options{})
	mustFail(t, err, ErrBadDisk, dir, "FUSE")
}

// mountFuse mounts a FUSE file system that answers statfs and nothing else.
func mountFuse(t *testing.T) string {
	t.Helper()
	fd, err := unix.Open("/dev/fuse", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil || os.Geteuid() != 0 {
		t.Skipf("cannot mount FUSE here: %v", err)
	}
	dir := t.TempDir()
	options := fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fd)
	if err := syscall.Mount("test", dir, "fuse.test", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		unix.Close(fd)
		t.Skipf("cannot mount FUSE here: %v", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		serveFuse(fd)
	}()
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
		<-done
		unix.Close(fd)
	})
	return dir
}

// serveFuse answers requests of the kernel (fuse(4)) until the mount has ended.
func serveFuse(fd int) {
	const opForget, opStatfs, opInit, opBatchForget = 2, 17, 26, 42
	le := binary.LittleEndian
	unknown := -int32(syscall.ENOSYS)
	request := make([]byte, 1<<17)
	for {
		n, err := unix.Read(fd, request)
		if err == unix.EINTR || err == unix.EAGAIN || err == unix.ENOENT {
			continue
		}
		if err != nil || n < 40 {
			return
		}
		answer := make([]byte, 16)
		switch le.Uint32(request[4:]) {
		case opInit:
			answer = append(answer, make([]byte, 64)...)
			le.PutUint32(answer[16:], 7)
			le.PutUint32(answer[20:], 31)
			le.PutUint32(answer[36:], 4096) // largest write
		case opStatfs:
			answer = append(answer, make([]byte, 80)...)
		case opForget, opBatchForget:
			continue
		default:
			le.PutUint32(answer[4:], uint32(unknown))
		}
		le.PutUint32(answer, uint32(len(answer)))
		copy(answer[8:16], request[8:16])
		unix.Write(fd, answer)
	}
}

// TestReadAheadOfSmallDatabases: a small one is read whole at open, a large one not.
func TestReadAheadOfSmallDatabases(t *testing.T) {
	s := openDir(t, filledDir(t, 100, 900))
	if !s.whole {
		t.Error("a small database was not read ahead")
	}
	dir := s.Dir()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "data.mdb"), readWhole); err != nil {
		t.Fatal(err)
	}
	if s = openDir(t, dir); s.whole {
		t.Error("a large database was read ahead")
	}
}
