//go:build linux

package benchkit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// Image is an ext4 file system in a file, mounted through a loop device: the
// other side of every comparison, because unmounting it drops all that the
// kernel knows about it.
type Image struct {
	Dir     string // where it is mounted
	file    string
	mounted bool
}

// NewImage makes an ext4 file system of size bytes with one inode per 4 KiB in
// a new file, and mounts it at dir, which must exist. It needs root and the
// programs mkfs.ext4 and mount. Nothing is left behind when it fails.
func NewImage(file, dir string, size int64) (*Image, error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("make ext4 image: %w", err)
	}
	err = errors.Join(f.Truncate(size), f.Close())
	img := &Image{Dir: dir, file: file}
	if err == nil {
		// lazy_itable_init=0: no kernel thread goes on writing inode tables later.
		err = command("mkfs.ext4", "-q", "-F", "-i", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0", file)
	}
	if err == nil {
		err = img.mount()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make ext4 image: %w", err), os.Remove(file))
	}
	return img, nil
}

// Remount makes the image cold: unmounts it, which also ends its loop device,
// drops the pages of its file, and mounts it again. Nothing may be open in it.
func (i *Image) Remount() error {
	if err := i.unmount(); err != nil {
		return err
	}
	left, err := DropPages(i.file)
	if err != nil {
		return err
	}
	if left > 1<<20 {
		return fmt.Errorf("%d bytes of %s stay in the page cache", left, i.file)
	}
	return i.mount()
}

// Close unmounts the image and removes its file.
func (i *Image) Close() error {
	if err := i.unmount(); err != nil {
		return err
	}
	return os.Remove(i.file)
}

func (i *Image) mount() error {
	if err := command("mount", "-o", "loop,noatime,nosuid,nodev", "-t", "ext4", i.file, i.Dir); err != nil {
		return err
	}
	i.mounted = true
	return nil
}

func (i *Image) unmount() error {
	if !i.mounted {
		return nil
	}
	if err := unix.Unmount(i.Dir, unix.UMOUNT_NOFOLLOW); err != nil {
		return &os.PathError{Op: "unmount", Path: i.Dir, Err: err}
	}
	i.mounted = false
	return nil
}

// command runs a program and returns what it complained about.
func command(name string, args ...string) error {
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(out))
	}
	return nil
}
