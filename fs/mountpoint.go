package fs

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"bole/snapshot"
)

var (
	// ErrOverRepository is returned by Mount for a place that would hide a repository's own files.
	ErrOverRepository = errors.New("mount point would hide the repository")
	// ErrAllowOther is returned by Mount where /etc/fuse.conf does not let users give others access.
	ErrAllowOther = errors.New("allow_other is not permitted: add the line user_allow_other to /etc/fuse.conf")
)

// prepareMountpoint checks the place and takes a dead mount of ours off it. The
// path that it returns is absolute, with links resolved.
func prepareMountpoint(repo *snapshot.Repo, o Options) (string, error) {
	if o.AllowOther && os.Geteuid() != 0 && !userAllowOther("/etc/fuse.conf") {
		return "", fmt.Errorf("mount %s: %w", o.Mountpoint, ErrAllowOther)
	}
	if Dead(o.Mountpoint) {
		if err := Detach(o.Mountpoint); err != nil {
			return "", err
		}
	}
	abs, err := filepath.Abs(o.Mountpoint)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("mount: %w", err)
	}
	fi, err := os.Stat(abs)
	if err != nil {
		return "", fmt.Errorf("mount: %w", err)
	}
	if !fi.IsDir() {
		return "", fmt.Errorf("mount %s: %w", abs, unix.ENOTDIR)
	}
	contents, err := filepath.EvalSymlinks(repo.ContentsDir())
	if err != nil {
		return "", fmt.Errorf("mount: %w", err)
	}
	for _, own := range []string{repo.Dir(), contents} {
		if within(own, abs) || within(abs, own) {
			return "", fmt.Errorf("mount %s: %w: %s", abs, ErrOverRepository, own)
		}
	}
	return abs, nil
}

// within says whether path is dir or lies below it. Both are clean and absolute.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// Dead says whether a mount whose daemon has gone stands at a path. It asks by
// statfs, the one question that the kernel never answers from what it keeps.
func Dead(mountpoint string) bool {
	var st unix.Statfs_t
	err := unix.Statfs(mountpoint, &st)
	// A request that was waiting when the daemon died ends with ECONNABORTED.
	return errors.Is(err, unix.ENOTCONN) || errors.Is(err, unix.ECONNABORTED)
}

// Detach takes a mount off its place even while something in it is open. It is
// for mounts that nobody serves any more.
func Detach(mountpoint string) error {
	err := unix.Unmount(mountpoint, unix.MNT_DETACH)
	if errors.Is(err, unix.EPERM) {
		err = fusermount("-uz", mountpoint)
	}
	if err != nil {
		return fmt.Errorf("unmount %s, whose daemon is gone: %w", mountpoint, err)
	}
	return nil
}

// fusermount unmounts for a user who may not do it himself.
func fusermount(flag, mountpoint string) error {
	out, err := exec.Command("fusermount3", flag, "--", mountpoint).CombinedOutput()
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(string(out))
	if strings.Contains(strings.ToLower(text), "busy") {
		return unix.EBUSY
	}
	return fmt.Errorf("fusermount3: %w: %s", err, text)
}

// userAllowOther reads fusermount3's configuration: a line of its own, comments begin with #.
func userAllowOther(path string) bool {
	b, err := os.ReadFile(path)
	if err != nil {
		return false
	}
	sc := bufio.NewScanner(strings.NewReader(string(b)))
	for sc.Scan() {
		if strings.TrimSpace(sc.Text()) == "user_allow_other" {
			return true
		}
	}
	return false
}

// readAheadKB is how far the kernel reads ahead in a file, in KiB. Its default
// for FUSE is 128, which leaves it waiting for the daemon.
const readAheadKB = 4096

// afterMount raises the kernel's read-ahead, which only root may.
func (s *Server) afterMount() error {
	var st unix.Stat_t
	if err := unix.Stat(s.mountpoint, &st); err != nil {
		return err
	}
	if os.Geteuid() != 0 {
		return nil
	}
	bdi := fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", unix.Major(st.Dev), unix.Minor(st.Dev))
	err := os.WriteFile(bdi, []byte(strconv.Itoa(readAheadKB)), 0)
	if err != nil {
		return fmt.Errorf("raise read-ahead: %w", err)
	}
	return nil
}

func stack() string { return string(debug.Stack()) }
