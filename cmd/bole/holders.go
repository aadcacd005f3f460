package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/moby/sys/mountinfo"
)

// holder is a process, or another mount (pid 0), that keeps a mount busy.
type holder struct {
	pid  int
	name string
	how  string // "current folder", "open file", …
	path string
}

// String is "process 12 (sleep): open file /mnt/f".
func (h holder) String() string {
	if h.pid == 0 {
		return fmt.Sprintf("%s: mounted on %s", quote(h.name), quote(h.path))
	}
	return fmt.Sprintf("process %d (%s): %s %s", h.pid, h.name, h.how, quote(h.path))
}

// findHolders looks through /proc for processes with something below a mount
// point: what fuser does. Without being root it sees the user's own processes alone.
// It never touches the mount.
func findHolders(mountpoint string) []holder {
	list := mountsBelow(mountpoint)
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return list // the pattern is well formed
	}
	for _, dir := range dirs {
		pid, err := strconv.Atoi(filepath.Base(dir))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if how, path := heldBy(dir, mountpoint); how != "" {
			list = append(list, holder{pid, processName(dir), how, path})
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].pid < list[j].pid })
	return list
}

// mountsBelow are other mounts inside a mount.
func mountsBelow(mountpoint string) []holder {
	var list []holder
	_, _ = mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) { // a table that cannot be read names nobody
		if i.Mountpoint != mountpoint && isBelow(i.Mountpoint, mountpoint) {
			list = append(list, holder{name: i.Source, path: i.Mountpoint})
		}
		return true, false
	})
	return list
}

// heldBy says how one process holds something below a mount point, "" when it does not.
func heldBy(dir, mountpoint string) (how, path string) {
	for _, l := range []struct{ link, how string }{{"cwd", "current folder"}, {"root", "root folder"}, {"exe", "program"}} {
		if target, err := os.Readlink(filepath.Join(dir, l.link)); err == nil && isBelow(target, mountpoint) {
			return l.how, target
		}
	}
	fds, err := os.ReadDir(filepath.Join(dir, "fd"))
	if err == nil {
		for _, fd := range fds {
			if target, err := os.Readlink(filepath.Join(dir, "fd", fd.Name())); err == nil && isBelow(target, mountpoint) {
				return "open file", target
			}
		}
	}
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	if err != nil {
		return "", ""
	}
	for _, line := range strings.Split(string(maps), "\n") {
		if i := strings.IndexByte(line, '/'); i >= 0 && isBelow(unescapeMaps(line[i:]), mountpoint) {
			return "mapped file", unescapeMaps(line[i:])
		}
	}
	return "", ""
}

// unescapeMaps undoes what /proc/PID/maps does to a name: a newline is \012.
func unescapeMaps(s string) string { return strings.ReplaceAll(s, `\012`, "\n") }

func processName(dir string) string {
	b, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return "ended"
	}
	return escapeLine(strings.TrimSuffix(string(b), "\n"))
}
