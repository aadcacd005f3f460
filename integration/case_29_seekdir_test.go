package integration

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// dirent is one record of getdents64.
type dirent struct {
	name string
	ino  uint64
	off  int64 // where to go on after it: what telldir gives
	typ  byte
}

// getdents reads one buffer's worth of entries.
func getdents(t testing.TB, fd, size int) []dirent {
	t.Helper()
	buf := make([]byte, size)
	n, err := unix.Getdents(fd, buf)
	if err != nil {
		t.Fatalf("getdents with %d bytes: %v", size, err)
	}
	var list []dirent
	for b := buf[:n]; len(b) > 0; {
		reclen := binary.NativeEndian.Uint16(b[16:])
		name, _, _ := strings.Cut(string(b[19:reclen]), "\x00")
		list = append(list, dirent{
			name: name, ino: binary.NativeEndian.Uint64(b), off: int64(binary.NativeEndian.Uint64(b[8:])), typ: b[18],
		})
		b = b[reclen:]
	}
	return list
}

// listAll reads a directory from its beginning to its end.
func listAll(t testing.TB, fd, size int) []dirent {
	t.Helper()
	if _, err := unix.Seek(fd, 0, unix.SEEK_SET); err != nil {
		t.Fatal(err)
	}
	var all []dirent
	for {
		list := getdents(t, fd, size)
		if len(list) == 0 {
			return all
		}
		all = append(all, list...)
	}
}

func TestCase29SeekingInADirectory(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	want := map[string]bool{".": true, "..": true}
	for i := range 500 {
		name := fmt.Sprintf("%03d", i) + strings.Repeat("n", i*252/499)
		if i < 36 {
			name = string("abcdefghijklmnopqrstuvwxyz0123456789"[i])
		}
		write(t, r.path("d", name), "")
		want[name] = true
	}
	for i := range 3000 {
		write(t, r.path("large", fmt.Sprintf("entry %05d", i)), "")
	}
	mkdir(t, r.path("empty"))
	r.commit()
	for _, io := range []string{"auto", "stateless", "passthrough", "handles"} {
		t.Run(io, func(t *testing.T) {
			r := *r
			r.t = t
			m := r.mount("HEAD", "--io", io)
			seekEverywhere(t, m.path("d"), want)
			large := map[string]bool{".": true, "..": true}
			for i := range 3000 {
				large[fmt.Sprintf("entry %05d", i)] = true
			}
			seekEverywhere(t, m.path("large"), large)
			seekEverywhere(t, m.path("empty"), map[string]bool{".": true, "..": true})
			m.umount()
		})
	}
}

// seekEverywhere lists dir with several buffers and goes to each position in
// random order, in a mount whose kernel may or may not have the listing cached.
func seekEverywhere(t *testing.T, dir string, want map[string]bool) {
	t.Helper()
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	ok(t, err)
	defer unix.Close(fd)
	var all []dirent
	for _, size := range []int{300, 1024, 32768, 300} {
		all = listAll(t, fd, size)
		seen := make(map[string]bool)
		for _, e := range all {
			if seen[e.name] {
				t.Errorf("buffer of %d: %q is listed twice", size, e.name)
			}
			if !want[e.name] {
				t.Errorf("buffer of %d: %q is too many", size, e.name)
			}
			seen[e.name] = true
		}
		if len(seen) != len(want) {
			t.Errorf("buffer of %d: %d names, want %d", size, len(seen), len(want))
		}
	}
	for _, i := range rand.Perm(len(all))[:min(len(all), 600)] {
		// The position after entry i gives entry i+1; the position 0, the first.
		off, next := int64(0), 0
		if i > 0 {
			off, next = all[i-1].off, i
		}
		_, err := unix.Seek(fd, off, unix.SEEK_SET)
		ok(t, err)
		got := getdents(t, fd, 512)
		if len(got) == 0 || got[0].name != all[next].name {
			t.Fatalf("position %d gives %v, want %q", off, got, all[next].name)
		}
	}
	_, err = unix.Seek(fd, all[len(all)-1].off, unix.SEEK_SET)
	ok(t, err)
	if got := getdents(t, fd, 512); len(got) != 0 {
		t.Errorf("after the last entry comes %v", got)
	}
	checkNumbers(t, fd, all)
}

// checkNumbers compares what the listing says with stat.
func checkNumbers(t *testing.T, fd int, all []dirent) {
	t.Helper()
	for _, e := range all {
		if e.name == ".." {
			continue
		}
		var st unix.Stat_t
		ok(t, unix.Fstatat(fd, e.name, &st, unix.AT_SYMLINK_NOFOLLOW))
		if st.Ino != e.ino {
			t.Errorf("%q: d_ino %d, st_ino %d", e.name, e.ino, st.Ino)
		}
		if e.ino == 0 || e.ino&0xffffffff == 0 || e.ino>>63 != 0 {
			t.Errorf("%q: number %#x", e.name, e.ino)
		}
		if e.typ != unix.DT_UNKNOWN && uint32(e.typ)<<12 != st.Mode&unix.S_IFMT {
			t.Errorf("%q: d_type %d, mode %o", e.name, e.typ, st.Mode)
		}
	}
}
