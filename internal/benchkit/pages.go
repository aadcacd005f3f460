//go:build linux

package benchkit

import (
	"bufio"
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// DropPages writes back and drops the page cache of every regular file at or
// below the paths; symbolic links are not followed. It returns how many bytes
// of them are still cached: pages that some process has mapped cannot be
// dropped. The names and inodes of the files stay in the kernel's caches.
func DropPages(paths ...string) (left int64, err error) {
	for _, root := range paths {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return err
			}
			n, err := dropFile(path)
			left += n
			return err
		})
		if err != nil {
			return left, fmt.Errorf("drop pages: %w", err)
		}
	}
	return left, nil
}

// dropFile drops the pages of one file and returns what is left of them.
func dropFile(path string) (left int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	// Only clean pages are dropped.
	if err := unix.Fdatasync(int(f.Fd())); err != nil {
		return 0, &fs.PathError{Op: "fdatasync", Path: path, Err: err}
	}
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return 0, &fs.PathError{Op: "fadvise", Path: path, Err: err}
	}
	return cached(f)
}

// Cached returns how many bytes of a file are in the page cache, in whole pages.
func Cached(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return cached(f)
}

// cached asks mincore(2) about a mapping of the file, of which it reads nothing.
func cached(f *os.File) (int64, error) {
	info, err := f.Stat()
	if err != nil || info.Size() == 0 {
		return 0, err
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return 0, &fs.PathError{Op: "mmap", Path: f.Name(), Err: err}
	}
	defer unix.Munmap(data)
	page := os.Getpagesize()
	resident := make([]byte, (len(data)+page-1)/page)
	if err := mincore(data, resident); err != nil {
		return 0, &fs.PathError{Op: "mincore", Path: f.Name(), Err: err}
	}
	var n int64
	for _, r := range resident {
		n += int64(r & 1)
	}
	return n * int64(page), nil
}

// RssAnon returns the anonymous memory of a process that is in RAM, in bytes:
// what it holds itself, without the pages of files that it has mapped.
func RssAnon(pid int) (int64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w", pid, err)
	}
	for s := bufio.NewScanner(bytes.NewReader(data)); s.Scan(); {
		value, ok := strings.CutPrefix(s.Text(), "RssAnon:")
		if !ok {
			continue
		}
		kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("memory of process %d: %w", pid, err)
		}
		return kib << 10, nil
	}
	return 0, fmt.Errorf("memory of process %d: no RssAnon in its status", pid)
}
