package fs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

// damageContent changes the stored bytes of one content.
func damageContent(t testing.TB, repo string, data []byte) {
	t.Helper()
	check(t, filepath.Walk(filepath.Join(repo, ".bole/contents"), func(p string, fi os.FileInfo, err error) error {
		if err != nil || !fi.Mode().IsRegular() {
			return err
		}
		b, err := os.ReadFile(p)
		check(t, err)
		i := strings.Index(string(b), string(data))
		if i < 0 {
			return nil
		}
		check(t, os.Chmod(p, 0o644))
		b[i+len(data)/2] ^= 0x20
		return os.WriteFile(p, b, 0o644)
	}))
}

// TestDamagedContent is EIO on that file alone and names it in the log.
func TestDamagedContent(t *testing.T) {
	for _, mode := range []IO{IOStateless, IOHandles, IOPassthrough} {
		b := newBuilder(t)
		b.dirAt("d", 0o755)
		bad, gone := noise(1, 1000), noise(2, 1000)
		hBad, hGone := b.file("d/bad", bad), b.file("d/gone", gone)
		b.lost[hGone] = true
		b.file("d/good", noise(3, 1000))
		b.file("d/short", noise(4, 500), func(e *merkle.Entry) { e.Size = 700 })
		b.file("d/long", noise(5, 500), func(e *merkle.Entry) { e.Size = 300 })
		b.file("d/wshort", noise(6, 300_000), func(e *merkle.Entry) { e.Size = 400_000 })
		b.file("d/wlong", noise(7, 300_000), func(e *merkle.Entry) { e.Size = 200_000 })
		dir, id := b.build()
		damageContent(t, dir, bad)
		m := mount(t, dir, id, func(c *daemonConfig) { c.IO = mode })
		for range 3 {
			for _, name := range []string{"bad", "gone", "short", "long", "wshort", "wlong"} {
				if data, err := os.ReadFile(m.path("d", name)); !errors.Is(err, unix.EIO) || len(data) > 0 {
					t.Errorf("%s, %s: %d bytes, %v", mode, name, len(data), err)
				}
			}
			if data, err := os.ReadFile(m.path("d/good")); err != nil || string(data) != string(noise(3, 1000)) {
				t.Errorf("%s, good: %d bytes, %v", mode, len(data), err)
			}
		}
		log := m.logWith(hBad.String(), hGone.String())
		for name, h := range map[string]merkle.Hash{"d/bad": hBad, "d/gone": hGone} {
			lines := 0
			for _, l := range strings.Split(log, "\n") {
				if strings.Contains(l, name) && strings.Contains(l, h.String()) {
					lines++
				}
			}
			if lines == 0 || lines > 2 { // one for opening, one for reading
				t.Errorf("%s: %d lines name %s and %s:\n%s", mode, lines, name, h, log)
			}
		}
		if strings.Contains(log, "panic") || strings.Contains(log, "d/good") {
			t.Errorf("log: %s", log)
		}
	}
}

func TestDamagedSymlinkTarget(t *testing.T) {
	b := newBuilder(t)
	target := strings.Repeat("abcdefgh", 40)
	b.symlink("link", target)
	for name, bytes := range map[string]string{"nul": strings.Repeat("x", 200) + "\x00" + strings.Repeat("y", 99), "size": strings.Repeat("z", 299)} {
		h := merkle.ContentHash([]byte(bytes))
		b.data[h] = []byte(bytes)
		b.set(name, merkle.Entry{Kind: merkle.KindSymlink, Perm: 0o777, Size: 300, Hash: h})
	}
	dir, id := b.build()
	damageContent(t, dir, []byte(target))
	m := mount(t, dir, id)
	for _, name := range []string{"link", "nul", "size"} {
		if got, err := os.Readlink(m.path(name)); !errors.Is(err, unix.EIO) {
			t.Errorf("%s: %q %v", name, got, err)
		}
	}
	if n := strings.Count(m.logWith(`"link"`, `"nul"`, `"size"`), "readlink"); n != 3 {
		t.Errorf("%d lines: %s", n, m.log)
	}
}

// hostileNodes are bytes that stand where a directory's node should be.
func hostileNodes(t testing.TB) map[string][]byte {
	t.Helper()
	store := merkle.NewMemStore()
	h := merkle.ContentHash(nil)
	entry := merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Hash: h}
	make2 := func(a, b string) []byte {
		root, _, err := merkle.Apply(store, store, merkle.Hash{}, func(yield func(merkle.Change, error) bool) {
			_ = yield(merkle.Change{Path: []byte(a), Op: merkle.OpSet, Entry: entry}, nil) &&
				yield(merkle.Change{Path: []byte(b), Op: merkle.OpSet, Entry: entry}, nil)
		})
		check(t, err)
		n, err := store.Node(&root)
		check(t, err)
		return append([]byte(nil), n...)
	}
	swap := func(n []byte, from, to string) []byte {
		i := strings.LastIndex(string(n), from) // names are last
		return []byte(string(n[:i]) + to + string(n[i+len(from):]))
	}
	good := make2("aaaa", "bbbb")
	out := map[string][]byte{
		"dot dot":    swap(make2("aa", "bb"), "aa", ".."),
		"dot":        swap(make2("aa", "b"), "b", "."),
		"slash":      swap(good, "aaaa", "a/aa"),
		"nul":        swap(good, "aaaa", "a\x00aa"),
		".bole":      swap(make2("aaaaa", "bbbbb"), "aaaaa", ".bole"),
		".BOLE":      swap(make2("aaaaa", "bbbbb"), "aaaaa", ".BOLE"),
		"duplicate":  swap(good, "bbbb", "aaaa"),
		"unsorted":   swap(good, "aaaa", "cccc"),
		"short":      good[:39],
		"cut":        good[:len(good)-3],
		"longer":     append(append([]byte(nil), good...), 0),
		"version":    append([]byte{good[0], 99}, good[2:]...),
		"kind":       append([]byte{'C'}, good[1:]...),
		"unknown":    append([]byte{'?'}, good[1:]...),
		"vnode":      append([]byte{'V'}, good[1:]...),
		"attributes": append([]byte{'A'}, good[1:]...),
	}
	for i := 4; i < 40; i++ { // counts and totals
		n := append([]byte(nil), good...)
		n[i] ^= 0xff
		out[fmt.Sprintf("header byte %d", i)] = n
	}
	return out
}

// TestHostileNodes: a bad directory is EIO by itself, with a line that names
// it, and its neighbours are served.
func TestHostileNodes(t *testing.T) {
	nodes := hostileNodes(t)
	b := newBuilder(t)
	hashes := map[string]merkle.Hash{}
	for name, n := range nodes {
		h := merkle.NodeHash(n)
		hashes[name], b.nodes[h] = h, n
	}
	missing := merkle.NodeHash([]byte("not there"))
	hashes["missing"] = missing
	dir, id := b.buildWith(hashes)
	m := mount(t, dir, id)
	for name, h := range hashes {
		p := m.path("h-" + strings.ReplaceAll(name, " ", "-"))
		if st := lstat(t, p); st.Mode != unix.S_IFDIR|0o755 {
			t.Errorf("%s: mode %o", name, st.Mode)
		}
		if _, err := os.ReadDir(p); !errors.Is(err, unix.EIO) {
			t.Errorf("%s: list: %v", name, err)
		}
		for _, child := range []string{"aaaa", "bbbb", "..x", "a"} {
			if _, err := os.Lstat(filepath.Join(p, child)); !errors.Is(err, unix.EIO) {
				t.Errorf("%s: look up %s: %v", name, child, err)
			}
		}
		if !strings.Contains(m.logWith(h.String()), h.String()) {
			t.Errorf("%s: the log does not name node %s", name, h)
		}
	}
	if data, err := os.ReadFile(m.path("good")); err != nil || string(data) != "x" {
		t.Errorf("good: %q %v", data, err)
	}
	if log := m.log.String(); strings.Contains(log, "panic") || strings.Contains(log, "goroutine") {
		t.Errorf("log: %s", log)
	}
}

// buildWith builds a root directory of one file "good" and a directory entry
// h-NAME for each node. It is encoded here, because nothing honest grafts a
// directory that it cannot read.
func (b *builder) buildWith(hashes map[string]merkle.Hash) (string, merkle.Hash) {
	b.t.Helper()
	h := merkle.ContentHash([]byte("x"))
	b.data[h] = []byte("x")
	le := binary.LittleEndian
	var records, heap []byte
	record := func(name string, hash merkle.Hash, kind merkle.Kind, size uint64, tail []byte) {
		heap = append(append(heap, name...), tail...)
		records = append(records, hash[:]...)
		records = le.AppendUint64(records, size)
		records = le.AppendUint64(records, 0)
		records = le.AppendUint32(records, uint32(len(heap)))
		records = le.AppendUint16(records, uint16(kind)<<12|0o755)
		records = append(records, byte(len(name)), 0)
	}
	record("good", h, merkle.KindFile, 1, nil)
	for _, name := range sortedKeys(hashes) {
		record("h-"+strings.ReplaceAll(name, " ", "-"), hashes[name], merkle.KindDir, 0, make([]byte, 16))
	}
	node := []byte{'D', 1, 0, 0}
	node = le.AppendUint32(node, uint32(len(hashes)+1))
	for _, n := range []int{len(hashes) + 1, 1, len(hashes), 1} { // entries, files, directories, bytes
		node = le.AppendUint64(node, uint64(n))
	}
	node = append(append(node, records...), heap...)
	b.root.Tree = merkle.NodeHash(node)
	b.root.Totals = merkle.Totals{Files: 1, Dirs: uint64(len(hashes)), Bytes: 1}
	b.nodes[b.root.Tree] = node
	return b.build()
}

func sortedKeys(m map[string]merkle.Hash) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slicesSort(keys)
	return keys
}

// TestHandlersNeverPanic: whatever id, offset or name comes.
func TestHandlersNeverPanic(t *testing.T) {
	dir, id, _ := xattrTree(t)
	f := open(t, dir, id)
	var out fuse.EntryOut
	if st := f.Lookup(nil, &fuse.InHeader{NodeId: rootID}, "dir", &out); !st.Ok() {
		t.Fatal(st)
	}
	var file fuse.EntryOut
	if st := f.Lookup(nil, &fuse.InHeader{NodeId: rootID}, "plain", &file); !st.Ok() {
		t.Fatal(st)
	}
	ids := []uint64{file.NodeId, 0, 1, 2, firstRow << slotBits, firstRow<<slotBits | 1, firstRow<<slotBits | slotMask, out.NodeId, out.NodeId | 1, 1 << 63, ^uint64(0)}
	offsets := []uint64{0, 1, 2, 3, 1 << 31, 1<<63 - 1, 1 << 63, ^uint64(0)}
	for _, id := range ids {
		h := fuse.InHeader{NodeId: id}
		for _, off := range offsets {
			in := fuse.ReadIn{InHeader: h, Offset: off}
			for _, size := range []int{0, 1, 23, 24, 100, 5000} {
				_ = f.ReadDir(nil, &in, fuse.NewDirEntryList(make([]byte, size), off))
				_ = f.ReadDirPlus(nil, &in, fuse.NewDirEntryList(make([]byte, size), off))
				_, _ = f.Read(nil, &in, make([]byte, size))
			}
			for _, whence := range []uint32{unix.SEEK_DATA, unix.SEEK_HOLE, 0, 99} {
				_ = f.Lseek(nil, &fuse.LseekIn{InHeader: h, Offset: off, Whence: whence}, &fuse.LseekOut{})
			}
		}
		for _, name := range []string{"", ".", "..", "a/b", "\x00", ".bole", strings.Repeat("x", 300)} {
			var out fuse.EntryOut
			if st := f.Lookup(nil, &h, name, &out); st.Ok() && out.NodeId != 0 {
				t.Errorf("id %#x has %q", id, name)
			}
		}
		_ = f.GetAttr(nil, &fuse.GetAttrIn{InHeader: h}, &fuse.AttrOut{})
		_, _ = f.Readlink(nil, &h)
		_, _ = f.ListXAttr(nil, &h, make([]byte, 3))
		_, _ = f.GetXAttr(nil, &h, "user.fork", make([]byte, 3))
		f.Forget(id, 0)
		f.Release(nil, &fuse.ReleaseIn{InHeader: h})
	}
	if f.rows.len() < 1 {
		t.Error("the root is gone")
	}
}
