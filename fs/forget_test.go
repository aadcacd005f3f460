package fs

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// listPlus lists a directory as the kernel does, with replies of a size, and
// returns the entries that have node ids.
func listPlus(t testing.TB, f *filesystem, id uint64, size int) (out []fuse.EntryOut) {
	t.Helper()
	for off := uint64(0); ; {
		buf := make([]byte, size)
		l := fuse.NewDirEntryList(buf, off)
		if st := f.ReadDirPlus(nil, &fuse.ReadIn{InHeader: fuse.InHeader{NodeId: id}, Offset: off, Size: uint32(size)}, l); !st.Ok() {
			t.Fatal(st)
		}
		if len(l.Bytes()) == 0 {
			return out
		}
		names, entries, err := fuse.ParseDirLookupEntries(l.Bytes())
		check(t, err)
		for i, e := range entries {
			if e.NodeId != 0 {
				out = append(out, e)
			} else if names[i].Name != "." && names[i].Name != ".." {
				t.Errorf("%q has no node id", names[i].Name)
			}
			off = names[i].Off
		}
	}
}

// TestForgettingEverythingFreesEverything: all that was ever named, by listing
// and by looking up, several times and in any order of forgetting.
func TestForgettingEverythingFreesEverything(t *testing.T) {
	b := newBuilder(t)
	for i := range 6 {
		b.dirAt(fmt.Sprintf("d%d", i), 0o755)
		for j := range 4 {
			b.dirAt(fmt.Sprintf("d%d/e%d", i, j), 0o755)
			for k := range 9 {
				b.file(fmt.Sprintf("d%d/e%d/f%d", i, j, k), []byte{byte(k)})
			}
		}
	}
	dir, id := b.build()
	f := open(t, dir, id)
	held := map[uint64]uint64{}
	ids := map[uint64]uint64{} // inode number -> node id
	var walk func(id uint64)
	walk = func(id uint64) {
		for _, e := range listPlus(t, f, id, 700) {
			held[e.NodeId]++
			if was, ok := ids[e.Ino]; ok && was != e.NodeId {
				t.Fatalf("inode %d had id %#x and now %#x", e.Ino, was, e.NodeId)
			}
			ids[e.Ino] = e.NodeId
			if e.Mode&unix.S_IFMT == unix.S_IFDIR {
				walk(e.NodeId)
			}
		}
	}
	for range 3 {
		walk(rootID)
	}
	for i := range 6 {
		var out fuse.EntryOut
		if st := f.Lookup(nil, &fuse.InHeader{NodeId: rootID}, fmt.Sprintf("d%d", i), &out); !st.Ok() {
			t.Fatal(st)
		}
		held[out.NodeId]++
	}
	if n := f.rows.len(); n != 1+6+24 || len(held) != 6+24+24*9 {
		t.Fatalf("%d rows, %d ids", n, len(held))
	}
	for id, n := range held { // in the map's order: none
		f.Forget(id, n-1)
		f.Forget(id, 1)
	}
	if n := f.rows.len(); n != 1 {
		t.Errorf("%d rows are left", n)
	}
	if n := f.counters.requests[opForget].Load(); n != 2*uint64(len(held)) {
		t.Errorf("%d counted", n)
	}
}

// TestDirectReads go around the page cache.
func TestDirectReads(t *testing.T) {
	b := newBuilder(t)
	data := map[string][]byte{"small": noise(1, 5001), "whole": noise(2, 1<<20+4096+1)}
	for n, d := range data {
		b.file(n, d)
	}
	dir, id := b.build()
	for _, mode := range []IO{IOStateless, IOHandles, IOPassthrough} {
		m := mount(t, dir, id, func(c *daemonConfig) { c.IO = mode })
		for name, want := range data {
			fd, err := unix.Open(m.path(name), unix.O_RDONLY|unix.O_DIRECT, 0)
			check(t, err)
			raw := make([]byte, 2<<20+4096)
			buf := raw[4096-int(uintptr(unsafe.Pointer(&raw[0]))&4095):][:2<<20]
			n, err := unix.Pread(fd, buf, 4096)
			if err != nil || !bytes.Equal(buf[:max(n, 0)], want[4096:]) {
				t.Errorf("%s, %s: %d bytes, %v", mode, name, n, err)
			}
			check(t, os.NewFile(uintptr(fd), name).Close())
		}
	}
}
