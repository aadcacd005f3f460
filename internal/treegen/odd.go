package treegen

import (
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// OddNames are file names that programs stumble over; Odd makes a file of each
// in the directory "names". None is on a default ignore list.
var OddNames = []string{
	"new\nline", "tab\there", "carriage\rreturn", "bell\a", "esc\x1b[31mred", "\x01\x02",
	"latin1-\xe9", "\xff\xfe\xfd", "cut-\xe2\x82", "surrogate-\xed\xa0\x80", // not UTF-8
	"caf\u00e9-nfc", "cafe\u0301-nfd", "\u65e5\u672c\u8a9e", "\U0001f4f7.jpg", "\u202eright-to-left", "zero\u200bwidth",
	"-leading-dash", "--help", "-", " leading space", "trailing space ", "two  spaces", " ",
	"back\\slash", "quote'single", "quote\"double", "`backtick`", "$HOME", "$(id)", "star*", "question?", "[bracket]", "{a,b}",
	"semi;colon", "pipe|", "amp&", "<less", ">more", "hash#", "!bang", "~", "~user", "%s%n", "colon:", "equals=", "comma,",
	"...", "..a", "a..", "trailing.", ".hidden", "CON", "nul.txt", "UPPER", "upper2", "Upper2", ".bolex", "x.bole",
	strings.Repeat("n", 255), strings.Repeat("\u00fc", 127) + "x", strings.Repeat("\xfe", 255),
}

// Odd makes a tree of everything that a careless copy loses, in dir, which must
// exist and be empty; dir's own mode, time and attributes are set as well. The
// file system must hold user.* attributes, sparse files and times from 1901 to
// 2446 (ext4 with inodes of 256 bytes, XFS with bigtime, btrfs, tmpfs). Only
// root can read all of it: one file has mode 0000.
func Odd(dir string) error {
	o := &odd{root: dir}
	o.names()
	o.symlinks()
	o.modes()
	o.attributes()
	o.sparse()
	o.emptyDirs()
	o.times()
	if o.err != nil {
		return fmt.Errorf("make odd tree: %w", o.err)
	}
	return nil
}

// odd remembers the first error, so that the lists below read as lists.
type odd struct {
	root string
	err  error
}

func (o *odd) path(name string) string { return filepath.Join(o.root, name) }

func (o *odd) do(err error) {
	if o.err == nil {
		o.err = err
	}
}

func (o *odd) mkdir(name string) { o.do(os.Mkdir(o.path(name), 0o755)) }

func (o *odd) file(name, data string) { o.do(os.WriteFile(o.path(name), []byte(data), 0o644)) }

func (o *odd) link(target, name string) { o.do(os.Symlink(target, o.path(name))) }

func (o *odd) names() {
	o.mkdir("names")
	for i, name := range OddNames {
		o.file("names/"+name, fmt.Sprintf("odd name number %d\n", i))
	}
	o.mkdir("-rf")
	o.file("-rf/\n", "a file called newline in a directory called -rf\n")
	deep := "deep"
	for range 40 {
		o.mkdir(deep)
		deep += "/" + strings.Repeat("d", 20)
	}
	o.mkdir(deep)
	o.file(deep+"/end", "forty levels down\n")
}

func (o *odd) symlinks() {
	o.mkdir("links")
	o.file("links/target", "what the links point at\n")
	o.mkdir("links/dir")
	o.file("links/dir/inside", "inside\n")
	o.link("target", "links/to-file")
	o.link("dir", "links/to-dir")
	o.link("dir/", "links/to-dir-slash")
	o.link("/etc/passwd", "links/absolute")
	o.link("/", "links/to-root")
	o.link("../../../../etc/passwd", "links/upward")
	o.link("nowhere", "links/dangling")
	o.link("loop", "links/loop")
	o.link(".", "links/to-here")
	o.link("caf\u00e9\n\xff", "links/odd-target")
	for _, n := range []int{1, 60, 127, 128, 129, 130, 901, 4000} {
		o.link(strings.Repeat("t", n), fmt.Sprintf("links/length-%d", n))
	}
	o.file("links/hard-a", "one inode, two names\n")
	o.do(os.Link(o.path("links/hard-a"), o.path("links/hard-b")))
}

func (o *odd) modes() {
	o.mkdir("modes")
	for _, mode := range []fs.FileMode{0o755, 0o644, 0o444, 0o600, 0o000, 0o777, 0o111, 0o640} {
		name := fmt.Sprintf("modes/%04o", mode)
		o.file(name, fmt.Sprintf("mode %04o\n", mode))
		o.do(os.Chmod(o.path(name), mode))
	}
	o.do(os.Chmod(o.path("modes"), 0o750))
}

func (o *odd) attributes() {
	o.mkdir("attrs")
	o.file("attrs/file", "a file with attributes\n")
	o.file("attrs/empty", "")
	o.mkdir("attrs/dir")
	for _, name := range []string{"attrs/file", "attrs/empty", "attrs/dir", "attrs", "."} {
		o.attr(name, "user.empty", nil)
		o.attr(name, "user.binary", []byte("\x00\x01\xff\n\x00"))
		o.attr(name, "user.text", []byte("of "+name))
	}
	big := make([]byte, 1000)
	fill(big, 7)
	o.attr("attrs/file", "user.big", big)
	o.attr("attrs/file", "user.caf\u00e9 \xff", []byte("a name of any bytes"))
	o.attr("attrs/file", "user."+strings.Repeat("l", 240), []byte("a long name"))
}

func (o *odd) attr(name, key string, value []byte) {
	if err := unix.Lsetxattr(o.path(name), key, value, 0); err != nil {
		o.do(&fs.PathError{Op: "set " + key, Path: o.path(name), Err: err})
	}
}

// sparse makes files with holes; SparseSize is the size of the first.
func (o *odd) sparse() {
	o.mkdir("sparse")
	o.sparseFile("sparse/middle", SparseSize, SparseSize/2)
	o.sparseFile("sparse/begin", 1<<20, 0)
	o.sparseFile("sparse/end", 1<<20, 1<<20-4096)
	o.sparseFile("sparse/small", 65536+1, 4096)
	o.sparseFile("sparse/only-hole", 3<<20+17, -1)
	o.file("sparse/none", "")
}

// SparseSize is the size in bytes of the file "sparse/middle" that Odd makes;
// 4,096 bytes half-way are data and the rest is hole.
const SparseSize = 50_000_000 / 8192 * 8192

// sparseFile makes a hole of size bytes with 4,096 bytes of data at offset at;
// -1: none.
func (o *odd) sparseFile(name string, size, at int64) {
	f, err := os.Create(o.path(name))
	if err != nil {
		o.do(err)
		return
	}
	defer f.Close()
	o.do(f.Truncate(size))
	if at >= 0 {
		data := make([]byte, 4096)
		fill(data, uint64(size))
		_, err := f.WriteAt(data, at)
		o.do(err)
	}
	o.do(f.Close())
}

func (o *odd) emptyDirs() {
	o.mkdir("empty")
	o.mkdir("empty/inside")
	o.mkdir("empty/inside/deeper")
	o.mkdir("empty/private")
	o.do(os.Chmod(o.path("empty/private"), 0o700))
	o.mkdir("empty/locked")
	o.do(os.Chmod(o.path("empty/locked"), 0o555))
}

// OddTimes are the modification times of the files in the directory "times"
// that Odd makes: before 1970, the second around it, past 2^31 and 2^32
// seconds, each with nanoseconds.
var OddTimes = map[string]time.Time{
	"1901":      time.Date(1901, 12, 14, 0, 0, 0, 1, time.UTC),
	"1969":      time.Date(1969, 12, 31, 23, 59, 59, 999_999_999, time.UTC),
	"1969-half": time.Date(1969, 7, 20, 20, 17, 40, 500_000_000, time.UTC),
	"1970":      time.Unix(0, 0),
	"1970-ns":   time.Unix(0, 1),
	"2038":      time.Date(2038, 1, 19, 3, 14, 8, 123_456_789, time.UTC),
	"2106":      time.Date(2106, 2, 7, 6, 28, 16, 987_654_321, time.UTC),
	"2200":      time.Date(2200, 2, 28, 12, 0, 0, 42, time.UTC),
}

// times makes the files of OddTimes and gives every other path a time of its
// own, deepest first and the root last.
func (o *odd) times() {
	o.mkdir("times")
	for name := range OddTimes {
		o.file("times/"+name, "a file of "+name+"\n")
	}
	var paths []string
	o.do(filepath.WalkDir(o.root, func(path string, _ fs.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	}))
	for i := len(paths) - 1; i >= 0; i-- {
		t := epoch.Add(time.Duration(i)*time.Hour + time.Duration(i)*time.Nanosecond)
		if filepath.Dir(paths[i]) == o.path("times") {
			t = OddTimes[filepath.Base(paths[i])]
		}
		o.do(setTimeNoFollow(paths[i], t))
	}
	o.do(os.Chmod(o.root, 0o751))
}

// setTimeNoFollow sets access and modification time of a path, of a symbolic
// link itself.
func setTimeNoFollow(path string, t time.Time) error {
	// Not unix.NsecToTimespec: seconds before 1970 need a nanosecond part that is not negative.
	ts := unix.Timespec{Sec: t.Unix(), Nsec: int64(t.Nanosecond())}
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, path, []unix.Timespec{ts, ts}, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return &fs.PathError{Op: "set time", Path: path, Err: err}
	}
	return nil
}

// Special makes a FIFO, a socket and, where the process may, a device in dir,
// which must exist, and returns their names: what no commit holds.
func Special(dir string) ([]string, error) {
	if err := unix.Mkfifo(filepath.Join(dir, "fifo"), 0o644); err != nil {
		return nil, fmt.Errorf("make fifo: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "socket"), Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	l.SetUnlinkOnClose(false)
	if err := l.Close(); err != nil {
		return nil, fmt.Errorf("make socket: %w", err)
	}
	names := []string{"fifo", "socket"}
	switch err := unix.Mknod(filepath.Join(dir, "device"), unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3))); err {
	case nil:
		names = append(names, "device")
	case unix.EPERM:
	default:
		return nil, fmt.Errorf("make device: %w", err)
	}
	return names, nil
}
