package snapshot

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bole/merkle"
)

// hostile is a tree that no honest program writes.
type hostile struct {
	name string
	// make returns a Dir node's name, with all that belongs to it in nodes, and
	// the node that is to be named by errors.
	make func(t testing.TB, nodes map[merkle.Hash][]byte) (tree, bad merkle.Hash)
}

// plainFile is an entry whose content is in no store.
func plainFile(data string) merkle.Entry {
	return merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Size: uint64(len(data)), Hash: merkle.ContentHash([]byte(data)), Mtime: 1}
}

// dirNode encodes one directory.
func dirNode(t testing.TB, nodes map[merkle.Hash][]byte, entries map[string]merkle.Entry) (merkle.Hash, []byte) {
	t.Helper()
	store := merkle.NewMemStore()
	var grafts []merkle.Hash
	for p, e := range entries {
		if e.Kind == merkle.KindDir { // grafted below: built with an empty one
			grafts = append(grafts, e.Hash)
			e.Hash = merkle.Hash{}
			entries[p] = e
		}
	}
	if len(grafts) > 0 {
		t.Fatal("directories are put in by replaceHash")
	}
	root := buildEntries(t, store, entries)
	ok(t, eachNode(store, root.Hash, nodes))
	return root.Hash, bytes.Clone(nodes[root.Hash])
}

// alter takes a node, changes its bytes, and stores the result under its right name.
func alter(nodes map[merkle.Hash][]byte, b []byte, change func(b []byte) []byte) merkle.Hash {
	b = change(bytes.Clone(b))
	h := merkle.NodeHash(b)
	nodes[h] = b
	return h
}

// renamed makes trees in which a name was replaced by another of the same length.
func renamed(name, from, to string, others ...string) hostile {
	return hostile{name, func(t testing.TB, nodes map[merkle.Hash][]byte) (merkle.Hash, merkle.Hash) {
		entries := map[string]merkle.Entry{from: plainFile("victim")}
		for _, o := range others {
			entries[o] = plainFile(o)
		}
		_, b := dirNode(t, nodes, entries)
		if n := bytes.Count(b, []byte(from)); n != 1 {
			t.Fatalf("%q is %d times in the node", from, n)
		}
		h := alter(nodes, b, func(b []byte) []byte { return bytes.Replace(b, []byte(from), []byte(to), 1) })
		return h, h
	}}
}

// patched makes trees of one directory in which bytes were replaced.
func patched(name string, change func(b []byte) []byte) hostile {
	return hostile{name, func(t testing.TB, nodes map[merkle.Hash][]byte) (merkle.Hash, merkle.Hash) {
		_, b := dirNode(t, nodes, map[string]merkle.Entry{"file": plainFile("x"), "other": plainFile("y")})
		h := alter(nodes, b, change)
		return h, h
	}}
}

// Offsets in a Dir node; docs/FORMAT.md lists them.
const (
	headSize   = 40
	recordMode = 32 + 8 + 8 + 4
	recordLen  = recordMode + 2
)

// grafted makes trees whose entry "file" was turned into a directory of another name.
func grafted(name string, sub func(t testing.TB, nodes map[merkle.Hash][]byte) merkle.Hash) hostile {
	return hostile{name, func(t testing.TB, nodes map[merkle.Hash][]byte) (merkle.Hash, merkle.Hash) {
		bad := sub(t, nodes)
		store := merkle.NewMemStore()
		root := buildEntries(t, store, map[string]merkle.Entry{"sub": {Kind: merkle.KindDir, Perm: 0o755, Mtime: 1}})
		ok(t, eachNode(store, root.Hash, nodes))
		empty, _ := merkle.EmptyDir()
		h := alter(nodes, nodes[root.Hash], func(b []byte) []byte { return bytes.Replace(b, empty[:], bad[:], 1) })
		return h, bad
	}}
}

var hostileTrees = []hostile{
	renamed("dot dot", "xx", ".."),
	renamed("dot", "q", "."),
	renamed("slash", "axb", "a/b"),
	renamed("absolute", "xetcxpasswd", "/etc/passwd"),
	renamed("NUL", "axb", "a\x00b"),
	renamed("reserved", "xbole", ".bole"),
	renamed("reserved in capitals", "xBOLE", ".BOLE"),
	renamed("duplicate", "bb", "aa", "aa"),
	renamed("unsorted", "aa", "zz", "bb"),
	patched("empty name", func(b []byte) []byte { b[headSize+recordLen] = 0; return b }),
	patched("unknown kind", func(b []byte) []byte { b[headSize+recordMode+1] = 0x70; return b }),
	patched("kind 0", func(b []byte) []byte { b[headSize+recordMode+1] = 0; return b }),
	patched("set-user-id", func(b []byte) []byte { b[headSize+recordMode+1] |= 0x08; return b }),
	patched("cut off", func(b []byte) []byte { return b[:len(b)-1] }),
	patched("header alone", func(b []byte) []byte { return b[:headSize] }),
	patched("trailing bytes", func(b []byte) []byte { return append(b, 0) }),
	patched("absurd count", func(b []byte) []byte { binary.LittleEndian.PutUint32(b[4:], 1<<30); return b }),
	patched("absurd entries", func(b []byte) []byte { binary.LittleEndian.PutUint64(b[8:], 1<<60); return b }),
	patched("wrong totals", func(b []byte) []byte { binary.LittleEndian.PutUint64(b[32:], 7); return b }),
	patched("absurd heap", func(b []byte) []byte { binary.LittleEndian.PutUint32(b[headSize+48:], 1<<31); return b }),
	patched("another version", func(b []byte) []byte { b[1] = 9; return b }),
	patched("an index node", func(b []byte) []byte { b[2] = 1; return b }),
	patched("no node at all", func([]byte) []byte { return []byte("#!/bin/sh\n") }),
	grafted("missing directory", func(t testing.TB, _ map[merkle.Hash][]byte) merkle.Hash { return merkle.NodeHash([]byte("nowhere")) }),
	grafted("a commit for a directory", func(t testing.TB, nodes map[merkle.Hash][]byte) merkle.Hash {
		h, eb := merkle.EmptyDir()
		nodes[h] = eb
		b, err := (&merkle.Commit{Tree: h, RootPerm: 0o755}).Encode()
		ok(t, err)
		nodes[merkle.NodeHash(b)] = b
		return merkle.NodeHash(b)
	}),
	grafted("attributes for a directory", func(t testing.TB, nodes map[merkle.Hash][]byte) merkle.Hash {
		b, err := merkle.EncodeAttrs([]merkle.Attr{{Name: "user.x", Value: []byte("y")}})
		ok(t, err)
		nodes[merkle.NodeHash(b)] = b
		return merkle.NodeHash(b)
	}),
	grafted("hostile below", func(t testing.TB, nodes map[merkle.Hash][]byte) merkle.Hash {
		h, _ := renamed("", "xx", "..").make(t, nodes)
		return h
	}),
}

// isHostile says whether an error is the one for a node that cannot be used.
func isHostile(t tb, what string, err error, bad merkle.Hash) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s went well", what)
	}
	key := bad.Key()
	if !strings.Contains(err.Error(), fmt.Sprintf("%x", key)) {
		t.Fatalf("%s: error %q does not name node %x", what, err, key)
	}
}

// TestHostileTrees reads, checks and checks out each tree: an error names the
// node, and nothing is written outside of the working directory.
func TestHostileTrees(t *testing.T) {
	for _, h := range hostileTrees {
		t.Run(h.name, func(t *testing.T) {
			w := newWork(t)
			w.write("file", "mine")
			w.save("first")
			around := readDisk(t, filepath.Dir(w.root)+"/..")
			nodes := map[merkle.Hash][]byte{}
			tree, bad := h.make(t, nodes)
			c := merkle.Commit{Tree: tree, RootPerm: 0o755, Totals: headTotals(nodes[tree])}
			id := w.putCommit(c, nodes)
			root, err := w.Lookup(id, "")
			if err == nil {
				err = w.Walk("", root, func(string, *merkle.Entry) error { return nil })
			}
			isHostile(t, "Walk", err, bad)
			head, err := w.Head()
			ok(t, err)
			isHostile(t, "Diff", w.Diff(head.Commit, id, "", func(PathChange) error { return nil }), bad)
			for _, force := range []bool{false, true} {
				_, err = w.Checkout(ctx, Revision{Commit: id}, CheckoutOptions{Force: force})
				isHostile(t, "Checkout", err, bad)
			}
			wantTree(t, "what lies around", withoutRepo(readDisk(t, filepath.Dir(w.root)+"/..")), withoutRepo(around))
			ok(t, w.CreateBranch("bad", id, false))
			found := w.damage()
			if d := found[nodeName(bad.Key())]; d == nil {
				t.Fatalf("fsck does not name node %x: %v", bad.Key(), found)
			}
			w.mustCheckout("main") // the rest goes on
			w.wantClean()
		})
	}
}

// headTotals reads a node's own totals, so that a commit does not contradict it.
func headTotals(b []byte) merkle.Totals {
	if len(b) < headSize {
		return merkle.Totals{}
	}
	le := binary.LittleEndian
	return merkle.Totals{Files: le.Uint64(b[16:]), Dirs: le.Uint64(b[24:]), Bytes: le.Uint64(b[32:])}
}

// withoutRepo leaves out what commands may change: the database.
func withoutRepo(tr tree) tree {
	for p := range tr {
		if strings.Contains(p, DirName+"/") || strings.HasSuffix(p, DirName) {
			delete(tr, p)
		}
	}
	return tr
}

// damage runs fsck and returns what it found by its hash.
func (w *work) damage() map[string]*Damage {
	w.t.Helper()
	found := map[string]*Damage{}
	res, err := w.Fsck(ctx, FsckOptions{Contents: true, Damage: func(d Damage) { found[d.Hash] = &d }})
	ok(w.t, err)
	if res.Damaged != uint64(len(found)) {
		w.t.Fatalf("%d kinds of damage are counted, %d told", res.Damaged, len(found))
	}
	return found
}

// TestContradictions are trees whose nodes are well-formed one by one.
func TestContradictions(t *testing.T) {
	for name, e := range map[string]merkle.Entry{
		"no content":       plainFile("not stored"),
		"content too long": {Kind: merkle.KindFile, Perm: 0o644, Size: 3, Hash: merkle.ContentHash([]byte("mine")), Mtime: 1},
		"content absurd":   {Kind: merkle.KindFile, Perm: 0o644, Size: 1 << 60, Hash: merkle.ContentHash([]byte("mine")), Mtime: 1},
		"link too short":   {Kind: merkle.KindSymlink, Perm: 0o777, Size: 200, Hash: merkle.ContentHash([]byte("mine")), Mtime: 1},
		"no attributes":    {Kind: merkle.KindFile, Perm: 0o644, Size: 4, Hash: merkle.ContentHash([]byte("mine")), Mtime: 1, Attrs: merkle.NodeHash([]byte("x"))},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t)
			w.write("file", "mine")
			first := w.save("first")
			id := w.putTree(first, map[merkle.Hash][]byte{}, map[string]merkle.Entry{"bad": e, "file": plainFile("mine")})
			rev, err := w.Resolve(id.String())
			ok(t, err)
			_, err = w.Checkout(ctx, rev, CheckoutOptions{})
			if err == nil || !strings.Contains(err.Error(), `"bad"`) {
				t.Fatalf("checkout: %v", err)
			}
			if _, err := os.Lstat(w.at("bad")); !os.IsNotExist(err) {
				t.Fatalf("bad is on disk: %v", err)
			}
			ok(t, w.CreateBranch("bad", id, false))
			touched := false
			for _, d := range w.damage() {
				for _, p := range d.Touches {
					touched = touched || p == id.String()+":bad"
				}
			}
			if !touched {
				t.Fatalf("fsck does not say that bad is damaged: %v", w.damage())
			}
			w.mustCheckout("main")
			w.wantClean()
		})
	}
}
