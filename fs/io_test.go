package fs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// flatTree is n files of size bytes in each of dirs directories.
func flatTree(t testing.TB, dirs, n, size int) (string, merkle.Hash) {
	b := newBuilder(t)
	for d := range dirs {
		b.dirAt(fmt.Sprintf("d%03d", d), 0o755)
		for f := range n {
			b.file(fmt.Sprintf("d%03d/f%04d", d, f), noise(d*n+f, size))
		}
	}
	return b.build()
}

func readAll(t testing.TB, m *mounted, dirs, n, size int) {
	t.Helper()
	for d := range dirs {
		for f := range n {
			got, err := os.ReadFile(m.path(fmt.Sprintf("d%03d/f%04d", d, f)))
			if err != nil || !bytes.Equal(got, noise(d*n+f, size)) {
				t.Fatalf("d%03d/f%04d: %d bytes, %v", d, f, len(got), err)
			}
		}
	}
}

// TestStatelessSendsNothingTwice: the first passes teach the kernel everything
// that it will ever ask about.
func TestStatelessSendsNothingTwice(t *testing.T) {
	dir, id := flatTree(t, 50, 20, 1000)
	m := mount(t, dir, id, func(c *daemonConfig) { c.IO = IOStateless })
	before := m.stats()
	inodes(t, m)
	readAll(t, m, 50, 20, 1000)
	first := m.since(before)
	if first["OPEN"] != 1 || first["OPENDIR"] != 1 || first["FLUSH"] > 1 || first["RELEASE"] != 0 || first["GETATTR"] > 0 {
		t.Errorf("first pass: %v", first)
	}
	if first["READ"] > 1000 || first["READDIRPLUS"]+first["READDIR"] != 2*51 {
		t.Errorf("first pass: %v", first)
	}
	m.settles("a second pass", func() {
		inodes(t, m)
		readAll(t, m, 50, 20, 1000)
	})
	if s := m.stats(); s.Rows != 51 || s.BytesRead+s.PushedBytes < 1000*1000 {
		t.Errorf("%d rows, %d bytes read, %d pushed", s.Rows, s.BytesRead, s.PushedBytes)
	}
	if n := m.rssAnon(); n > 64<<20 {
		t.Errorf("the daemon holds %d bytes", n)
	}
}

// TestHandlesKeepPages: each open is asked for, no page twice.
func TestHandlesKeepPages(t *testing.T) {
	dir, id := flatTree(t, 3, 10, 1000)
	m := mount(t, dir, id, func(c *daemonConfig) { c.IO = IOHandles })
	readAll(t, m, 3, 10, 1000)
	reads := uint64(1)
	for range 5 {
		before := m.stats()
		readAll(t, m, 3, 10, 1000)
		d := m.since(before)
		if d["OPEN"] != 30 || d["FLUSH"] != 0 || d["GETATTR"] != 0 || d["LOOKUP"] != 0 {
			t.Errorf("second pass: %v", d)
		}
		reads = min(reads, d["READ"])
	}
	if reads != 0 {
		t.Error("pages are read again")
	}
}

// TestPassthrough: whole files never reach the daemon, small ones do, and one
// inode goes one way whatever is open at a time.
func TestPassthrough(t *testing.T) {
	b := newBuilder(t)
	whole, small := noise(1, 4<<20), noise(2, 5000)
	for i := range 4 {
		b.file(fmt.Sprintf("whole%d", i), whole)
		b.file(fmt.Sprintf("small%d", i), small)
	}
	dir, id := b.build()
	m := mount(t, dir, id, func(c *daemonConfig) { c.IO = IOPassthrough })
	before := m.stats()
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := range 40 {
				for name, want := range map[string][]byte{"whole": whole, "small": small} {
					f, err := os.Open(m.path(fmt.Sprintf("%s%d", name, i%4)))
					if err != nil {
						t.Error(err)
						return
					}
					got, err := io.ReadAll(io.LimitReader(f, 64<<10))
					if err != nil || !bytes.Equal(got, want[:min(len(want), 64<<10)]) {
						t.Errorf("%s: %d bytes, %v", name, len(got), err)
					}
					f.Close()
				}
			}
		}()
	}
	wg.Wait()
	if d := m.since(before); d["READ"] > 16 || d["OPEN"] != 640 {
		t.Errorf("requests: %v", d)
	}
	if s := m.stats(); s.BytesRead > 16*5000 {
		t.Errorf("%d bytes went through the daemon", s.BytesRead)
	}
	checkMap(t, m.path("whole0"), whole)
	checkMap(t, m.path("small0"), small)
}

func checkMap(t testing.TB, path string, want []byte) {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	defer f.Close()
	for _, flags := range []int{unix.MAP_SHARED, unix.MAP_PRIVATE} {
		p, err := unix.Mmap(int(f.Fd()), 0, len(want), unix.PROT_READ, flags)
		if err != nil {
			t.Fatalf("map %s: %v", path, err)
		}
		if !bytes.Equal(p, want) {
			t.Errorf("map of %s differs", path)
		}
		check(t, unix.Munmap(p))
	}
	if _, err := unix.Mmap(int(f.Fd()), 0, len(want), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != unix.EACCES {
		t.Errorf("writable map: %v", err)
	}
}

func TestMaps(t *testing.T) {
	b := newBuilder(t)
	whole, small := noise(1, 3<<20+5), noise(2, 9001)
	b.file("whole", whole)
	b.file("small", small)
	b.file("empty", nil)
	dir, id := b.build()
	for _, mode := range []IO{IOStateless, IOHandles} {
		m := mount(t, dir, id, func(c *daemonConfig) { c.IO = mode })
		checkMap(t, m.path("whole"), whole)
		checkMap(t, m.path("small"), small)
		fd, err := unix.Open(m.path("empty"), unix.O_RDONLY, 0)
		check(t, err)
		if _, err := unix.Mmap(fd, 0, 0, unix.PROT_READ, unix.MAP_SHARED); err != unix.EINVAL {
			t.Errorf("map of nothing: %v", err)
		}
		unix.Close(fd)
	}
}

// TestRandomReads compares reads anywhere with the content.
func TestRandomReads(t *testing.T) {
	b := newBuilder(t)
	data := map[string][]byte{"small": noise(1, 100_000), "limit": noise(2, smallContent), "whole": noise(3, 2<<20+77)}
	for n, d := range data {
		b.file(n, d)
	}
	dir, id := b.build()
	for _, mode := range []IO{IOStateless, IOHandles, IOPassthrough} {
		m := mount(t, dir, id, func(c *daemonConfig) { c.IO = mode })
		for name, want := range data {
			f, err := os.Open(m.path(name))
			check(t, err)
			for i := range 200 {
				off := int(noise64(i) % uint64(len(want)+5000))
				buf := make([]byte, noise64(i+1000)%70_000)
				n, err := f.ReadAt(buf, int64(off))
				rest := want[min(off, len(want)):]
				rest = rest[:min(len(rest), len(buf))]
				if !bytes.Equal(buf[:n], rest) || (err != nil && err != io.EOF) {
					t.Fatalf("%s, %s at %d: %d bytes, %v", mode, name, off, n, err)
				}
			}
			f.Close()
		}
	}
}

func noise64(i int) uint64 {
	x := uint64(i+1) * 0x9e3779b97f4a7c15
	x ^= x >> 29
	x *= 0xbf58476d1ce4e5b9
	return x ^ x>>32
}

// TestHoles: SEEK_DATA and SEEK_HOLE tell where a sparse file has bytes.
func TestHoles(t *testing.T) {
	b := newBuilder(t)
	sparse := make([]byte, 8<<20)
	copy(sparse[4<<20:], noise(1, 64<<10))
	b.file("sparse", sparse)
	b.file("small", noise(2, 5000))
	dir, id := b.build()
	for _, mode := range []IO{IOStateless, IOPassthrough} {
		m := mount(t, dir, id, func(c *daemonConfig) { c.IO = mode })
		got, err := os.ReadFile(m.path("sparse"))
		if err != nil || !bytes.Equal(got, sparse) {
			t.Fatalf("%v", err)
		}
		for _, c := range []struct {
			name   string
			off    int64
			whence int
			want   int64
			err    error
		}{
			{"sparse", 0, unix.SEEK_DATA, 4 << 20, nil},
			{"sparse", 0, unix.SEEK_HOLE, 0, nil},
			{"sparse", 4<<20 + 100, unix.SEEK_HOLE, 4<<20 + 64<<10, nil},
			{"sparse", 5 << 20, unix.SEEK_DATA, -1, unix.ENXIO},
			{"sparse", 8 << 20, unix.SEEK_HOLE, -1, unix.ENXIO},
			{"small", 7, unix.SEEK_DATA, 7, nil},
			{"small", 7, unix.SEEK_HOLE, 5000, nil},
			{"small", 5000, unix.SEEK_DATA, -1, unix.ENXIO},
		} {
			fd, err := unix.Open(m.path(c.name), unix.O_RDONLY, 0)
			check(t, err)
			off, err := unix.Seek(fd, c.off, c.whence)
			unix.Close(fd)
			if err != c.err || err == nil && off != c.want {
				t.Errorf("%s: %s from %d (%d): %d %v, want %d %v", mode, c.name, c.off, c.whence, off, err, c.want, c.err)
			}
		}
	}
}

// TestVerify: a whole file with a wrong byte opens without --verify and does
// not with it, in any mode.
func TestVerify(t *testing.T) {
	b := newBuilder(t)
	bad, good := noise(1, 2<<20), noise(2, 2<<20)
	h := b.file("bad", bad)
	b.file("good", good)
	b.file("small", noise(3, 100))
	dir, id := b.build()
	damageContent(t, dir, bad[1<<20:1<<20+100])
	for _, mode := range []IO{IOAuto, IOStateless, IOHandles, IOPassthrough} {
		m := mount(t, dir, id, func(c *daemonConfig) { c.IO, c.Verify = mode, true })
		for range 2 {
			f, err := os.Open(m.path("bad"))
			if mode == IOStateless && err == nil { // opens ask nobody: the first read does
				_, err = f.Read(make([]byte, 10))
				f.Close()
			}
			if !errors.Is(err, unix.EIO) {
				t.Errorf("%s: %v", mode, err)
			}
			for name, want := range map[string][]byte{"good": good, "small": noise(3, 100)} {
				if got, err := os.ReadFile(m.path(name)); err != nil || !bytes.Equal(got, want) {
					t.Errorf("%s, %s: %d bytes, %v", mode, name, len(got), err)
				}
			}
		}
		if log := m.logWith(h.String()); !strings.Contains(log, h.String()) || !strings.Contains(log, "bad") {
			t.Errorf("%s: log %q", mode, log)
		}
	}
}
