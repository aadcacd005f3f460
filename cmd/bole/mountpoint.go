package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"bole/snapshot"
)

// fsType is what the kernel calls our mounts.
const fsType = "fuse.bole"

// mountPath makes a path absolute and resolves its links. A dead mount cannot be
// looked into, so the last name is resolved only where that is possible.
func mountPath(arg string) (string, error) {
	abs, err := filepath.Abs(arg)
	if err != nil {
		return "", fmt.Errorf("mount point: %w", err)
	}
	real, err := filepath.EvalSymlinks(abs)
	if err == nil {
		return real, nil
	}
	if !errors.Is(err, unix.ENOTCONN) {
		return "", fmt.Errorf("mount point: %w", err)
	}
	dir, err := filepath.EvalSymlinks(filepath.Dir(abs))
	if err != nil {
		return "", fmt.Errorf("mount point: %w", err)
	}
	return filepath.Join(dir, filepath.Base(abs)), nil
}

// mountAt is what is mounted on a path, the uppermost; nil when nothing is.
func mountAt(path string) (*mountinfo.Info, error) {
	list, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) { return i.Mountpoint != path, false })
	if err != nil {
		return nil, fmt.Errorf("read the table of mounts: %w", err)
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list[len(list)-1], nil
}

// ourMounts are all mounts of ours that this process can see.
func ourMounts() ([]*mountinfo.Info, error) {
	list, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) { return i.FSType != fsType, false })
	if err != nil {
		return nil, fmt.Errorf("read the table of mounts: %w", err)
	}
	return list, nil
}

// mountOver is our mount that a path lies in, nil when it lies in none.
func mountOver(path string) (*mountinfo.Info, error) {
	list, err := ourMounts()
	if err != nil {
		return nil, err
	}
	var best *mountinfo.Info
	for _, m := range list {
		if isBelow(path, m.Mountpoint) && (best == nil || len(m.Mountpoint) >= len(best.Mountpoint)) {
			best = m
		}
	}
	return best, nil
}

// isBelow says whether path is dir or lies below it; both are clean and absolute.
func isBelow(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// sourceName is what df and mount show: the repository and the revision. A colon
// would make df take it for a host and a path.
func sourceName(root, revision string) string {
	return root + "@" + strings.ReplaceAll(revision, ":", "/")
}

// sourceRoot finds the repository in what sourceName made; "" when it is not
// there. Both parts may hold '@', so the disk decides.
func sourceRoot(source string) string {
	for i := strings.LastIndexByte(source, '@'); i > 0; i = strings.LastIndexByte(source[:i], '@') {
		if fi, err := os.Stat(filepath.Join(source[:i], snapshot.DirName)); err == nil && fi.IsDir() {
			return source[:i]
		}
	}
	return ""
}

// leaseOf finds the lease of our mount; ok is false when its process is gone or
// the repository cannot be read.
func leaseOf(m *mountinfo.Info) (lease snapshot.LeaseInfo, ok bool) {
	root := sourceRoot(m.Source)
	if root == "" {
		return lease, false
	}
	leases, err := snapshot.LeasesOf(root)
	if err != nil {
		return lease, false
	}
	for _, l := range leases {
		if l.Mountpoint == m.Mountpoint {
			lease, ok = l, true // the newest: it lies uppermost
		}
	}
	return lease, ok
}
