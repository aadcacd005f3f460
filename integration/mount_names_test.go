package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Names that the kernel escapes in its list of mounts, or that could be taken
// for an option.
var oddPlaces = []string{
	"two words", "tab\there", "new\nline", `back\slash`, `\040`, "comma,allow_other", "equals=x", "colon:", "hash#", "-dash", "--help",
	"\u00fcml\u00e4ut", "\xff\xfe", "quote\"'", "%s", "\x1b[31m", strings.Repeat("n", 255),
}

func TestMountPointsWithOddNames(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	for _, name := range oddPlaces {
		dir := filepath.Join(scratch(t), name)
		mkdir(t, dir)
		m := r.mountAt(dir, "HEAD")
		if read(t, m.path("f")) != "content of f" {
			t.Errorf("%q: reads wrong", name)
		}
		text := bole(t, "mounts")
		printable(t, "mounts", text.stdout)
		if findMount(listMounts(t), dir) == nil && strings.ToValidUTF8(name, "") == name {
			t.Errorf("%q is not listed", name)
		}
		m.umount()
		// Relative to the folder of the mount point, too.
		if name[0] == '-' {
			continue
		}
		m = &mnt{t: t, dir: dir}
		t.Cleanup(m.destroy)
		res := run(t, command{args: []string{boleBin, "mount", "HEAD", dir}, dir: r.dir})
		if res.code != 0 {
			t.Errorf("%q: %v", name, res)
			continue
		}
		m.pid = daemonOf(t, dir)
		m.kill()
		if res := run(t, command{args: []string{boleBin, "umount", name}, dir: filepath.Dir(dir)}); res.code != 0 || isMount(dir) {
			t.Errorf("umount of a dead mount by its relative name %q: %v", name, res)
		}
	}
}

func TestRepositoriesWithOddNames(t *testing.T) {
	t.Parallel()
	for _, name := range oddPlaces {
		base := scratch(t)
		dir := filepath.Join(base, name)
		if res := run(t, command{args: []string{boleBin, "init", "--", name}, dir: base}); res.code != 0 {
			t.Errorf("init %q: %v", name, res)
			continue
		}
		r := &repo{t: t, dir: dir}
		write(t, r.path("f"), "f")
		r.commit()
		m := r.mount("HEAD")
		if read(t, m.path("f")) != "f" {
			t.Errorf("%q: reads wrong", name)
		}
		if line := mountLine(t, m.dir); strings.Contains(strings.Fields(line)[len(strings.Fields(line))-1], "allow_other") {
			t.Errorf("%q: the name of the repository became an option: %s", name, line)
		}
		if out := bole(t, "mounts"); out.code != 0 {
			t.Errorf("%v", out)
		} else {
			printable(t, "mounts", out.stdout)
		}
		m.umount()
		r.fsck()
		if left := r.leases(); len(left) != 0 {
			t.Errorf("%q: leases left: %v", name, left)
		}
	}
}

// A daemon is nobody's child: it holds no folder but the repository busy, none
// of the caller's outputs, and is in a session of its own.
func TestDaemonStandsAlone(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	m := r.mount("HEAD")
	if cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", m.pid)); err != nil || cwd != "/" && cwd != r.dir {
		t.Errorf("the daemon's current folder is %s, %v", cwd, err)
	}
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", m.pid))
	ok(t, err)
	for _, fd := range fds {
		to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", m.pid, fd.Name()))
		if err == nil && (strings.HasPrefix(to, "pipe:") || strings.HasPrefix(to, "/dev/pts") || strings.HasPrefix(to, "/dev/tty")) && len(fd.Name()) == 1 && fd.Name() < "3" {
			t.Errorf("the daemon holds the caller's %s open as %s", to, fd.Name())
		}
	}
	stat := strings.Fields(read(t, fmt.Sprintf("/proc/%d/stat", m.pid)))
	if stat[5] == strings.Fields(read(t, "/proc/self/stat"))[5] {
		t.Error("the daemon is in the caller's session")
	}
	m.umount()
}
