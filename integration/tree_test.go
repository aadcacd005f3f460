package integration

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"sort"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// node is everything that Bole keeps about one file, as seen by system calls.
type node struct {
	kind   string // file, dir, link, or other
	perm   uint32 // 0777
	size   int64  // files and links
	mtime  int64  // ns since 1970
	target string // links
	sum    [32]byte
	attrs  map[string]string // user.* attributes, not the virtual ones
	ino    uint64
	nlink  uint64
}

// readTree reads a whole tree. It goes step by step with openat, so paths of
// any length and names of any bytes are all right. The repository's own folder
// at the root is left out. Key "." is the root itself.
func readTree(t testing.TB, root string) map[string]node {
	t.Helper()
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("open %s: %v", root, err)
	}
	w := &walker{nodes: make(map[string]node)}
	w.dir(fd, ".", true)
	if len(w.errs) > 0 {
		t.Fatalf("reading %s:\n  %s", root, strings.Join(w.errs, "\n  "))
	}
	return w.nodes
}

type walker struct {
	nodes map[string]node
	errs  []string
}

func (w *walker) fail(path, what string, err error) {
	if len(w.errs) < 20 {
		w.errs = append(w.errs, fmt.Sprintf("%s %q: %v", what, clipName(path), err))
	}
}

// dir reads the directory fd, which it closes.
func (w *walker) dir(fd int, path string, root bool) {
	f := os.NewFile(uintptr(fd), "dir")
	defer f.Close()
	w.record(fd, path)
	list, err := f.Readdirnames(-1)
	if err != nil {
		w.fail(path, "list", err)
		return
	}
	for _, name := range list {
		if root && name == ".bole" {
			continue
		}
		child := name
		if !root {
			child = path + "/" + name
		}
		w.entry(fd, name, child)
	}
}

func (w *walker) entry(dirfd int, name, path string) {
	var st unix.Stat_t
	if err := unix.Fstatat(dirfd, name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		w.fail(path, "stat", err)
		return
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		fd, err := unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			w.fail(path, "open", err)
			return
		}
		w.dir(fd, path, false)
	case unix.S_IFREG:
		fd, err := unix.Openat(dirfd, name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			w.fail(path, "open", err)
			return
		}
		defer unix.Close(fd)
		w.record(fd, path)
	case unix.S_IFLNK:
		n := statNode(&st)
		buf := make([]byte, 4097)
		m, err := unix.Readlinkat(dirfd, name, buf)
		if err != nil {
			w.fail(path, "readlink", err)
			return
		}
		n.target = string(buf[:m])
		w.nodes[path] = n
	default:
		w.nodes[path] = statNode(&st)
	}
}

// record notes a directory or file from its open descriptor.
func (w *walker) record(fd int, path string) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		w.fail(path, "fstat", err)
		return
	}
	n := statNode(&st)
	var err error
	if n.attrs, err = userAttrs(fd); err != nil {
		w.fail(path, "attributes", err)
		return
	}
	if n.kind == "file" {
		h := sha256.New()
		// Pread, so that the descriptor needs no owner object.
		if _, err := io.Copy(h, io.NewSectionReader(fdReader(fd), 0, 1<<62)); err != nil {
			w.fail(path, "read", err)
			return
		}
		copy(n.sum[:], h.Sum(nil))
	}
	w.nodes[path] = n
}

func statNode(st *unix.Stat_t) node {
	n := node{perm: st.Mode & 0o7777, mtime: st.Mtim.Nano(), ino: st.Ino, nlink: uint64(st.Nlink)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		n.kind = "dir"
	case unix.S_IFREG:
		n.kind, n.size = "file", st.Size
	case unix.S_IFLNK:
		n.kind, n.size = "link", st.Size
	default:
		n.kind = "other"
	}
	return n
}

type fdReader int

func (fd fdReader) ReadAt(p []byte, off int64) (int, error) {
	n, err := unix.Pread(int(fd), p, off)
	if n == 0 && err == nil {
		return 0, io.EOF
	}
	return max(n, 0), err
}

// userAttrs lists and reads the user.* attributes of an open file.
func userAttrs(fd int) (map[string]string, error) {
	size, err := unix.Flistxattr(fd, nil)
	if err != nil {
		return nil, err
	}
	if size == 0 {
		return nil, nil
	}
	buf := make([]byte, size)
	if size, err = unix.Flistxattr(fd, buf); err != nil {
		return nil, err
	}
	attrs := make(map[string]string)
	for _, name := range bytes.Split(bytes.TrimSuffix(buf[:size], []byte{0}), []byte{0}) {
		if !bytes.HasPrefix(name, []byte("user.")) {
			continue
		}
		val := make([]byte, 64<<10)
		n, err := unix.Fgetxattr(fd, string(name), val)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		attrs[string(name)] = string(val[:n])
	}
	return attrs, nil
}

// sameOpts says what a comparison leaves out.
type sameOpts struct {
	dirTimes  bool // mtimes of directories (the test changed entries)
	linkTimes bool
	fileTimes bool
}

// sameTree compares two trees and reports the first differences. Set-id and
// sticky bits of want are not expected back.
func sameTree(t testing.TB, what string, want, got map[string]node, o sameOpts) {
	t.Helper()
	var diffs []string
	for path, w := range want {
		if w.kind == "other" {
			continue // FIFOs, sockets and devices are not recorded
		}
		g, there := got[path]
		if !there {
			diffs = append(diffs, fmt.Sprintf("%q (%s) is missing", clipName(path), w.kind))
			continue
		}
		if d := w.differs(g, o); d != "" {
			diffs = append(diffs, fmt.Sprintf("%q: %s", clipName(path), d))
		}
	}
	for path, g := range got {
		if _, there := want[path]; !there {
			diffs = append(diffs, fmt.Sprintf("%q (%s) is too many", clipName(path), g.kind))
		}
	}
	if len(diffs) == 0 {
		return
	}
	sort.Strings(diffs)
	n := len(diffs)
	t.Errorf("%s: %d differences in %d entries:\n  %s", what, n, len(want), strings.Join(diffs[:min(n, 12)], "\n  "))
}

func (w node) differs(g node, o sameOpts) string {
	skipTime := w.kind == "dir" && o.dirTimes || w.kind == "link" && o.linkTimes || w.kind == "file" && o.fileTimes
	switch {
	case w.kind != g.kind:
		return fmt.Sprintf("kind %s, want %s", g.kind, w.kind)
	case w.kind != "link" && w.perm&0o777 != g.perm:
		return fmt.Sprintf("mode %o, want %o", g.perm, w.perm&0o777)
	case w.size != g.size:
		return fmt.Sprintf("size %d, want %d", g.size, w.size)
	case w.sum != g.sum:
		return "content differs"
	case w.target != g.target:
		return fmt.Sprintf("target %q, want %q", clipName(g.target), clipName(w.target))
	case !skipTime && w.mtime != g.mtime:
		return fmt.Sprintf("mtime %d, want %d", g.mtime, w.mtime)
	}
	for name, v := range w.attrs {
		if gv, there := g.attrs[name]; !there || gv != v {
			return fmt.Sprintf("attribute %s: %q, want %q", name, clipName(gv), clipName(v))
		}
	}
	for name := range g.attrs {
		if _, there := w.attrs[name]; !there {
			return fmt.Sprintf("attribute %s is too many", name)
		}
	}
	return ""
}

func clipName(s string) string {
	if len(s) > 200 {
		return s[:100] + "…" + s[len(s)-100:]
	}
	return s
}

// setTimeOfLink gives a symbolic link itself a fixed mtime.
func setTimeOfLink(path string) error {
	ts := []unix.Timespec{{Sec: 1_000_000_000, Nsec: 123_456_789}, {Sec: 1_000_000_000, Nsec: 123_456_789}}
	return unix.UtimesNanoAt(unix.AT_FDCWD, path, ts, unix.AT_SYMLINK_NOFOLLOW)
}
