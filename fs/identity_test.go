package fs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

func lstat(t testing.TB, path string) unix.Stat_t {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		t.Fatalf("lstat %s: %v", path, err)
	}
	return st
}

func TestMountShowsTheCommit(t *testing.T) {
	b := newBuilder(t)
	long := strings.Repeat("n", 255)
	target := strings.Repeat("t/", 1000)
	files := map[string][]byte{
		"empty": {}, "one": {7}, "page": noise(1, 4096), "pages": noise(2, 20_000), "limit": noise(3, smallContent),
		"over": noise(4, smallContent+1), "large": noise(5, 5<<20+17), long: noise(6, 300),
		"d\n\xff/in\tside": noise(7, 100), "d\n\xff/deep/er": noise(8, 1000),
	}
	times := []int64{-1, -1_000_000_000, -2_208_988_800_000_000_001, 0, 1, 4_294_967_296_123_456_789, 9_223_372_036_854_775_807, -9_223_372_036_854_775_808}
	b.dirAt("d\n\xff", 0o750)
	b.dirAt("d\n\xff/deep", 0o700)
	b.dirAt("hollow", 0o555)
	for name, data := range files {
		b.file(name, data)
	}
	for i, ns := range times {
		b.file(fmt.Sprintf("time%d", i), nil, func(e *merkle.Entry) { e.Mtime, e.Perm = ns, uint16(0o100*i) })
	}
	b.symlink("short", "d")
	b.symlink("long", target)
	b.symlink("dangling", strings.Repeat("x", merkle.InlineTarget))
	b.root.RootPerm, b.root.RootMtime = 0o711, -5
	dir, id := b.build()

	for _, mode := range []IO{IOStateless, IOHandles, IOPassthrough} {
		t.Run(mode.String(), func(t *testing.T) {
			m := mount(t, dir, id, func(c *daemonConfig) { c.IO = mode })
			if m.io != mode.String() {
				t.Fatalf("mode %s", m.io)
			}
			for name, want := range files {
				got, err := os.ReadFile(m.path(name))
				if err != nil || !bytes.Equal(got, want) {
					t.Errorf("%q: %v, %d bytes, want %d", name, err, len(got), len(want))
				}
				if st := lstat(t, m.path(name)); st.Size != int64(len(want)) || st.Blocks != int64(len(want)+511)/512 || st.Mode != unix.S_IFREG|0o644 {
					t.Errorf("%q: size %d blocks %d mode %o", name, st.Size, st.Blocks, st.Mode)
				}
			}
			for i, ns := range times {
				st := lstat(t, m.path(fmt.Sprintf("time%d", i)))
				for _, ts := range []unix.Timespec{st.Atim, st.Mtim, st.Ctim} {
					if want := time.Unix(0, ns); ts.Sec != want.Unix() || ts.Nsec != int64(want.Nanosecond()) {
						t.Errorf("time %d: %d.%09d, want %d.%09d", ns, ts.Sec, ts.Nsec, want.Unix(), want.Nanosecond())
					}
				}
				if want := uint32(unix.S_IFREG | 0o100*i); st.Mode != want {
					t.Errorf("mode %o, want %o", st.Mode, want)
				}
			}
			for name, want := range map[string]string{"short": "d", "long": target, "dangling": strings.Repeat("x", 128)} {
				got, err := os.Readlink(m.path(name))
				if st := lstat(t, m.path(name)); err != nil || got != want || st.Size != int64(len(want)) || st.Mode != unix.S_IFLNK|0o777 {
					t.Errorf("%s: %q %v size %d mode %o", name, got, err, st.Size, st.Mode)
				}
			}
			if st := lstat(t, m.dir); st.Mode != unix.S_IFDIR|0o711 || st.Mtim.Sec != -1 || st.Mtim.Nsec != 999_999_995 || st.Ino != rootInode {
				t.Errorf("root %+v", st)
			}
			if es, err := os.ReadDir(m.path("hollow")); err != nil || len(es) != 0 {
				t.Errorf("empty directory: %v %v", es, err)
			}
			if _, err := os.Lstat(m.path(long + "x")); err != unix.ENAMETOOLONG && !strings.Contains(fmt.Sprint(err), "too long") {
				t.Errorf("256 bytes: %v", err)
			}
			if m.log.String() != "" {
				t.Errorf("log: %s", m.log)
			}
		})
	}
}

// TestInodeNumbers: unique, never 0 in 32 bits, the same in a listing and in
// stat, after another mount, and for the same path alone.
func TestInodeNumbersInMount(t *testing.T) {
	b := newBuilder(t)
	same := noise(1, 64)
	for d := range 20 {
		b.dirAt(fmt.Sprintf("d%d", d), 0o755)
		for f := range 50 {
			b.file(fmt.Sprintf("d%d/f%d", d, f), same)
		}
	}
	dir, id := b.build()
	first := inodes(t, mount(t, dir, id))
	second := inodes(t, mount(t, dir, id, func(c *daemonConfig) { c.IO = IOHandles }))
	if len(first) != 1020 || len(second) != len(first) {
		t.Fatalf("%d and %d paths", len(first), len(second))
	}
	paths := map[uint64]string{rootInode: "."}
	for p, ino := range first {
		if second[p] != ino {
			t.Errorf("%s: %d, then %d", p, ino, second[p])
		}
		if other, ok := paths[ino]; ok {
			t.Errorf("%s and %s are both %d", p, other, ino)
		}
		if uint32(ino) == 0 || ino>>63 != 0 {
			t.Errorf("%s: %#x", p, ino)
		}
		paths[ino] = p
	}
}

func inodes(t *testing.T, m *mounted) map[string]uint64 {
	t.Helper()
	all := map[string]uint64{}
	var walk func(dir, rel string, self uint64)
	walk = func(dir, rel string, self uint64) {
		for _, e := range list(t, dir, 32<<10) {
			switch e.name {
			case ".":
				if e.ino != self {
					t.Errorf("%s: . is %d, want %d", rel, e.ino, self)
				}
				continue
			case "..":
				continue
			}
			p := filepath.Join(rel, e.name)
			st := lstat(t, filepath.Join(dir, e.name))
			if st.Ino != e.ino || st.Nlink != 1 || st.Uid != uint32(os.Getuid()) || st.Gid != uint32(os.Getgid()) {
				t.Errorf("%s: stat %d, listing %d, links %d, owner %d:%d", p, st.Ino, e.ino, st.Nlink, st.Uid, st.Gid)
			}
			all[p] = e.ino
			if e.kind == unix.DT_DIR {
				walk(filepath.Join(dir, e.name), p, e.ino)
			}
		}
	}
	walk(m.dir, "", rootInode)
	return all
}

func TestMountinfo(t *testing.T) {
	b := newBuilder(t)
	b.file("f", []byte("x"))
	dir, id := b.build()
	for _, other := range []bool{false, true} {
		m := mount(t, dir, id, func(c *daemonConfig) { c.AllowOther, c.FSName = other, "name,with comma@1" })
		infos, err := mountinfo.GetMounts(mountinfo.SingleEntryFilter(m.dir))
		check(t, err)
		if len(infos) != 1 {
			t.Fatalf("%d mounts", len(infos))
		}
		i := infos[0]
		for _, want := range []string{"ro", "nosuid", "nodev"} {
			if !hasOption(i.Options, want) {
				t.Errorf("options %q lack %s", i.Options, want)
			}
		}
		for option, want := range map[string]bool{"ro": true, "default_permissions": true, "allow_other": other} {
			if hasOption(i.VFSOptions, option) != want {
				t.Errorf("file system options %q: %s", i.VFSOptions, option)
			}
		}
		if i.FSType != "fuse.bole" || i.Source != "name,with comma@1" {
			t.Errorf("type %q source %q", i.FSType, i.Source)
		}
		ahead, err := os.ReadFile(fmt.Sprintf("/sys/class/bdi/%d:%d/read_ahead_kb", i.Major, i.Minor))
		if err != nil || strings.TrimSpace(string(ahead)) != fmt.Sprint(readAheadKB) {
			t.Errorf("read-ahead %q %v", ahead, err)
		}
	}
}

func hasOption(list, option string) bool {
	for _, o := range strings.Split(list, ",") {
		if o == option {
			return true
		}
	}
	return false
}

func TestStatfs(t *testing.T) {
	b := newBuilder(t)
	b.dirAt("d", 0o755)
	b.file("d/a", noise(1, 10_000))
	b.file("d/b", noise(2, 1))
	dir, id := b.build()
	m := mount(t, dir, id)
	var st unix.Statfs_t
	check(t, unix.Statfs(m.dir, &st))
	if st.Bsize != 4096 || st.Frsize != 4096 || st.Blocks != 3 || st.Bfree != 0 || st.Bavail != 0 || st.Files != 4 || st.Ffree != 0 || st.Namelen != 255 {
		t.Errorf("%+v", st)
	}
	if st.Flags&unix.ST_RDONLY == 0 || st.Flags&unix.ST_NOSUID == 0 || st.Flags&unix.ST_NODEV == 0 {
		t.Errorf("flags %#x", st.Flags)
	}
	empty, none := newBuilder(t).build()
	m = mount(t, empty, none)
	check(t, unix.Statfs(m.dir, &st))
	if st.Blocks == 0 || st.Files == 0 || st.Namelen != 255 {
		t.Errorf("empty tree: %+v", st)
	}
}

func TestSubfolderMount(t *testing.T) {
	b := newBuilder(t)
	b.dirAt("a", 0o755)
	b.dirAt("a/b", 0o701)
	b.file("a/b/f", []byte("in"))
	b.file("f", []byte("out"))
	dir, id := b.build()
	m := mount(t, dir, id, func(c *daemonConfig) { c.Path = "a/b" })
	if got, err := os.ReadFile(m.path("f")); err != nil || string(got) != "in" {
		t.Errorf("%q %v", got, err)
	}
	if st := lstat(t, m.dir); st.Mode&0o777 != 0o701 || st.Ino != rootInode {
		t.Errorf("root %o %d", st.Mode, st.Ino)
	}
	for path, want := range map[string]string{"f": "not a directory", "a/none": "none", "a/b/f/x": "f"} {
		if _, err := tryMount(t, dir, id, func(c *daemonConfig) { c.Path = path }); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("mount of %s: %v", path, err)
		}
	}
}
