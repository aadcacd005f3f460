package fs

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

// changes are all ways to change a tree. dir is a directory of the mount with a
// file f, a symlink l and a directory d.
var changes = map[string]func(dir string) error{
	"create": func(d string) error { return closed(unix.Open(d+"/new", unix.O_CREAT|unix.O_WRONLY, 0o644)) },
	"create exclusively": func(d string) error {
		return closed(unix.Open(d+"/new", unix.O_CREAT|unix.O_EXCL|unix.O_RDWR, 0o644))
	},
	"create read-only": func(d string) error { return closed(unix.Open(d+"/new", unix.O_CREAT|unix.O_RDONLY, 0o644)) },
	"unnamed file":     func(d string) error { return closed(unix.Open(d, unix.O_TMPFILE|unix.O_WRONLY, 0o644)) },
	"open to write":    func(d string) error { return closed(unix.Open(d+"/f", unix.O_WRONLY, 0)) },
	"open to update":   func(d string) error { return closed(unix.Open(d+"/f", unix.O_RDWR, 0)) },
	"open to append":   func(d string) error { return closed(unix.Open(d+"/f", unix.O_WRONLY|unix.O_APPEND, 0)) },
	"open to empty":    func(d string) error { return closed(unix.Open(d+"/f", unix.O_WRONLY|unix.O_TRUNC, 0)) },
	"empty and read":   func(d string) error { return closed(unix.Open(d+"/f", unix.O_RDONLY|unix.O_TRUNC, 0)) },
	"truncate":         func(d string) error { return unix.Truncate(d+"/f", 1) },
	"unlink":           func(d string) error { return unix.Unlink(d + "/f") },
	"rmdir":            func(d string) error { return unix.Rmdir(d + "/d") },
	"mkdir":            func(d string) error { return unix.Mkdir(d+"/new", 0o755) },
	"mkfifo":           func(d string) error { return unix.Mkfifo(d+"/new", 0o644) },
	"mknod":            func(d string) error { return unix.Mknod(d+"/new", unix.S_IFCHR|0o644, 259) },
	"symlink":          func(d string) error { return unix.Symlink("f", d+"/new") },
	"link":             func(d string) error { return unix.Link(d+"/f", d+"/new") },
	"rename":           func(d string) error { return unix.Rename(d+"/f", d+"/new") },
	"rename directory": func(d string) error { return unix.Rename(d+"/d", d+"/new") },
	"rename over":      func(d string) error { return unix.Rename(d+"/f", d+"/l") },
	"exchange": func(d string) error {
		return unix.Renameat2(unix.AT_FDCWD, d+"/f", unix.AT_FDCWD, d+"/l", unix.RENAME_EXCHANGE)
	},
	"chmod":      func(d string) error { return unix.Chmod(d+"/f", 0o600) },
	"chown":      func(d string) error { return unix.Lchown(d+"/f", 1, 1) },
	"chown link": func(d string) error { return unix.Lchown(d+"/l", 1, 1) },
	"times":      func(d string) error { return unix.Utimes(d+"/f", make([]unix.Timeval, 2)) },
	"touch directory": func(d string) error {
		return unix.UtimesNanoAt(unix.AT_FDCWD, d+"/d", []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}, 0)
	},
	"setxattr":      func(d string) error { return unix.Setxattr(d+"/f", "user.x", []byte("1"), 0) },
	"removexattr":   func(d string) error { return unix.Removexattr(d+"/f", "user.kept") },
	"virtual xattr": func(d string) error { return unix.Setxattr(d+"/f", "user.bole.hash", []byte("1"), 0) },
	"foreign xattr": func(d string) error { return unix.Setxattr(d+"/f", "trusted.x", []byte("1"), 0) },
	"capability": func(d string) error {
		return unix.Setxattr(d+"/f", "security.capability", append([]byte{0, 0, 0, 2}, make([]byte, 16)...), 0)
	},
	"writable access": func(d string) error { return unix.Access(d+"/f", unix.W_OK) },
}

func closed(fd int, err error) error {
	if err == nil {
		unix.Close(fd)
	}
	return err
}

// treeState is what must be the same before and after: names, kinds, bytes.
func treeState(t testing.TB, dir string) string {
	t.Helper()
	var all string
	check(t, filepath.Walk(dir, func(p string, fi os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		all += p + fi.Mode().String() + fi.ModTime().String()
		if fi.Mode().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			all += string(b)
		}
		return nil
	}))
	return all
}

// TestEveryChangeIsRefused, by the kernel on a mount as Mount made it, and by
// the daemon on one that root made writable. Where the kernel itself has a
// better reason (or asks nobody) the second answer differs.
func TestEveryChangeIsRefused(t *testing.T) {
	dir, id := changesTree(t)
	for _, mode := range []IO{IOStateless, IOHandles, IOPassthrough} {
		m := mount(t, dir, id, func(c *daemonConfig) { c.IO = mode })
		before := treeState(t, m.dir)
		for name, change := range changes {
			if err := change(m.dir); !errors.Is(err, unix.EROFS) {
				t.Errorf("%s, %s: %v", mode, name, err)
			}
		}
		check(t, unix.Mount("", m.dir, "", unix.MS_REMOUNT|unix.MS_NOSUID|unix.MS_NODEV, ""))
		own := map[string]error{
			"virtual xattr":   unix.EPERM,
			"foreign xattr":   unix.EOPNOTSUPP,
			"capability":      unix.EOPNOTSUPP,
			"writable access": nil, // by mode bits; the open is refused
		}
		if mode == IOStateless {
			// Opening asks nobody any more; the change behind it is refused.
			for _, n := range []string{"open to write", "open to update", "open to append"} {
				own[n] = nil
			}
		}
		for name, change := range changes {
			want, ok := own[name]
			if !ok {
				want = unix.EROFS
			}
			if err := change(m.dir); !errors.Is(err, want) {
				t.Errorf("%s, writable, %s: %v, want %v", mode, name, err, want)
			}
		}
		if mode == IOStateless {
			fd, err := unix.Open(m.path("f"), unix.O_RDWR, 0)
			check(t, err)
			if _, err := unix.Write(fd, []byte("x")); err != unix.EROFS {
				t.Errorf("write: %v", err)
			}
			if err := unix.Fallocate(fd, 0, 0, 100); err != unix.EROFS {
				t.Errorf("fallocate: %v", err)
			}
			unix.Close(fd)
		}
		if after := treeState(t, m.dir); after != before {
			t.Errorf("%s: the tree has changed", mode)
		}
	}
}

func changesTree(t testing.TB) (string, merkle.Hash) {
	b := newBuilder(t)
	b.dirAt("d", 0o755)
	kept := b.attrs(merkle.Attr{Name: "user.kept", Value: []byte("1")})
	b.file("f", []byte("content"), func(e *merkle.Entry) { e.Attrs = kept })
	b.symlink("l", "f")
	return b.build()
}

// TestOperationsWithoutChange: what is no change is answered, and what does not
// exist has the errno that programs expect.
func TestOperationsWithoutChange(t *testing.T) {
	dir, id := changesTree(t)
	for _, mode := range []IO{IOStateless, IOHandles, IOPassthrough} {
		m := mount(t, dir, id, func(c *daemonConfig) { c.IO = mode })
		fd, err := unix.Open(m.path("f"), unix.O_RDONLY, 0)
		check(t, err)
		dfd := openDir(t, m.path("d"))
		_, flags := unix.IoctlGetUint32(fd, unix.FS_IOC_GETFLAGS)
		_, fifo := unix.Open(m.path("f", "x"), unix.O_RDONLY, 0)
		_, isdir := unix.Open(m.path("d"), unix.O_WRONLY, 0)
		_, link := unix.Readlink(m.path("f"), make([]byte, 10))
		_, none := unix.Open(m.path("none"), unix.O_RDONLY, 0)
		_, bole := unix.Open(m.path(".bole"), unix.O_RDONLY, 0)
		for _, c := range []struct {
			name      string
			got, want error
		}{
			{"fsync", unix.Fsync(fd), nil},
			{"fsync of a directory", unix.Fsync(dfd), nil},
			{"read lock", unix.FcntlFlock(uintptr(fd), unix.F_SETLK, &unix.Flock_t{Type: unix.F_RDLCK}), nil},
			{"flock", unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB), nil},
			{"access", unix.Access(m.path("f"), unix.R_OK), nil},
			{"file flags", flags, unix.ENOTTY},
			{"below a file", fifo, unix.ENOTDIR},
			{"write a directory", isdir, unix.EISDIR},
			{"readlink of a file", link, unix.EINVAL},
			{"missing", none, unix.ENOENT},
			{"missing .bole", bole, unix.ENOENT},
		} {
			if !errors.Is(c.got, c.want) {
				t.Errorf("%s, %s: %v, want %v", mode, c.name, c.got, c.want)
			}
		}
		unix.Close(fd)
	}
}

// TestBirthTimeIsAskedOnce: a program that wants one for each file costs one request.
func TestBirthTimeIsAskedOnce(t *testing.T) {
	b := newBuilder(t)
	for _, n := range []string{"a", "b", "c", "d"} {
		b.file(n, []byte(n))
	}
	dir, id := b.build()
	m := mount(t, dir, id)
	list(t, m.dir, 32768)
	before := m.stats()
	for _, n := range []string{"a", "b", "c", "d"} {
		var stx unix.Statx_t
		check(t, unix.Statx(unix.AT_FDCWD, m.path(n), unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &stx))
		if stx.Mask&unix.STATX_BTIME != 0 || stx.Size != 1 {
			t.Errorf("%s: mask %#x size %d", n, stx.Mask, stx.Size)
		}
	}
	if d := m.since(before); d["STATX"] > 1 || d["GETATTR"] != 0 || d["LOOKUP"] != 0 {
		t.Errorf("requests %v", d)
	}
}

// TestNoAccidentalENOSYS: that answer speaks for the whole mount, so only the
// requests of this list may get it.
func TestNoAccidentalENOSYS(t *testing.T) {
	dir, id := changesTree(t)
	f := open(t, dir, id)
	for _, mode := range []IO{IOStateless, IOHandles, IOPassthrough} {
		f.io, f.noDirs = mode, true
		on := map[string]fuse.Status{
			"OPEN": f.Open(nil, &fuse.OpenIn{}, &fuse.OpenOut{}), "OPENDIR": f.OpenDir(nil, &fuse.OpenIn{}, &fuse.OpenOut{}),
			"FLUSH": f.Flush(nil, nil), "STATX": f.Statx(nil, nil, nil),
		}
		allowed := map[string]bool{"OPEN": mode == IOStateless, "OPENDIR": true, "FLUSH": true, "STATX": true}
		for op, st := range everyStatus(f) {
			on[op] = st
		}
		for op, st := range on {
			if (st == fuse.ENOSYS) != allowed[op] {
				t.Errorf("%s: %s answers %v", mode, op, st)
			}
		}
	}
}

// everyStatus sends each other request once, with an id that nobody holds.
func everyStatus(f *filesystem) map[string]fuse.Status {
	const id = 99<<slotBits | 7
	h := fuse.InHeader{NodeId: id}
	got := map[string]fuse.Status{}
	got["LOOKUP"] = f.Lookup(nil, &h, "x", &fuse.EntryOut{})
	got["GETATTR"] = f.GetAttr(nil, &fuse.GetAttrIn{InHeader: h}, &fuse.AttrOut{})
	_, got["READLINK"] = f.Readlink(nil, &h)
	_, got["READ"] = f.Read(nil, &fuse.ReadIn{InHeader: h}, make([]byte, 10))
	got["LSEEK"] = f.Lseek(nil, &fuse.LseekIn{InHeader: h}, &fuse.LseekOut{})
	got["READDIR"] = f.ReadDir(nil, &fuse.ReadIn{InHeader: h}, fuse.NewDirEntryList(make([]byte, 100), 0))
	got["READDIRPLUS"] = f.ReadDirPlus(nil, &fuse.ReadIn{InHeader: h}, fuse.NewDirEntryList(make([]byte, 100), 0))
	_, got["GETXATTR"] = f.GetXAttr(nil, &h, "user.x", nil)
	_, got["LISTXATTR"] = f.ListXAttr(nil, &h, nil)
	got["SETXATTR"] = f.SetXAttr(nil, nil, "user.x", nil)
	got["REMOVEXATTR"] = f.RemoveXAttr(nil, nil, "user.x")
	got["SETATTR"] = f.SetAttr(nil, nil, nil)
	got["MKNOD"] = f.Mknod(nil, nil, "", nil)
	got["MKDIR"] = f.Mkdir(nil, nil, "", nil)
	got["UNLINK"] = f.Unlink(nil, nil, "")
	got["RMDIR"] = f.Rmdir(nil, nil, "")
	got["RENAME"] = f.Rename(nil, nil, "", "")
	got["LINK"] = f.Link(nil, nil, "", nil)
	got["SYMLINK"] = f.Symlink(nil, nil, "", "", nil)
	got["CREATE"] = f.Create(nil, nil, "", nil)
	got["TMPFILE"] = f.Tmpfile(nil, nil, nil)
	_, got["WRITE"] = f.Write(nil, nil, nil)
	_, got["WRITEV"] = f.Writev(nil, nil, nil)
	got["FALLOCATE"] = f.Fallocate(nil, nil)
	_, got["COPY_FILE_RANGE"] = f.CopyFileRange(nil, nil)
	got["FSYNC"] = f.Fsync(nil, nil)
	got["FSYNCDIR"] = f.FsyncDir(nil, nil)
	got["ACCESS"] = f.Access(nil, &fuse.AccessIn{})
	got["GETLK"] = f.GetLk(nil, nil, nil)
	got["SETLK"] = f.SetLk(nil, nil)
	got["SETLKW"] = f.SetLkw(nil, nil)
	got["IOCTL"] = f.Ioctl(nil, nil, nil, nil, nil)
	got["STATFS"] = f.StatFs(nil, nil, &fuse.StatfsOut{})
	return got
}
