package snapshot

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"bole/blobstore"
	"bole/lmdbstore"
	"bole/merkle"
)

// repoBytes hashes every file of .bole but LMDB's table of readers.
func repoBytes(t testing.TB, root string) map[string]string {
	t.Helper()
	out := map[string]string{}
	base := filepath.Join(root, DirName)
	ok(t, filepath.WalkDir(base, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock.mdb" {
			return err
		}
		b, err := os.ReadFile(p)
		out[strings.TrimPrefix(p, base)] = fmt.Sprintf("%d %x", len(b), sha256.Sum256(b))
		return err
	}))
	return out
}

// fsckWork is a repository with a bit of everything: small and large contents,
// attributes, long links, several commits, a stage.
func fsckWork(t *testing.T) *work {
	t.Helper()
	w := newWork(t)
	w.write("d/small", "small content")
	w.write("large", strings.Repeat("large", 40_000))
	w.link("long", strings.Repeat("l", 500))
	for i := range 400 { // a directory of several nodes
		w.write(fmt.Sprintf("many/%s%03d", strings.Repeat("n", 100), i), "m")
	}
	w.save("first")
	w.write("d/small", "other content")
	w.save("second")
	w.write("staged", "staged content")
	w.add()
	return w
}

// rewrite changes the record of a key in a table; nil removes it.
func (w *work) rewrite(t lmdbstore.Table, key, val []byte) {
	w.t.Helper()
	ok(w.t, w.db.Update(func(tx *lmdbstore.Writer) error {
		if val == nil {
			return tx.Delete(t, key)
		}
		return tx.Put(t, key, val)
	}))
}

func (w *work) locationOf(data string) (merkle.Hash, blobstore.Location) {
	w.t.Helper()
	h := merkle.ContentHash([]byte(data))
	loc, err := w.locate(&h)
	ok(w.t, err)
	return h, loc
}

// flip changes one byte of a file.
func flip(t testing.TB, path string, off int64) {
	t.Helper()
	ok(t, os.Chmod(path, 0o644))
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	ok(t, err)
	defer f.Close()
	var b [1]byte
	_, err = f.ReadAt(b[:], off)
	ok(t, err)
	b[0] ^= 0xff
	_, err = f.WriteAt(b[:], off)
	ok(t, err)
}

func (w *work) packPath(n uint32) string {
	return filepath.Join(w.ContentsDir(), "packs", fmt.Sprintf("%08x.pack", n))
}

// TestFsck does each kind of damage and wants it found and named, what it
// touches listed, and not a byte of the repository changed.
func TestFsck(t *testing.T) {
	head := func(w *work) merkle.Hash {
		h, err := w.Head()
		ok(t, err)
		return h.Commit
	}
	for name, c := range map[string]struct {
		harm    func(w *work) (hash string)
		touches string // behind "HEAD:", or whole
		shallow bool   // found without reading contents
	}{
		"byte of a small content": {func(w *work) string {
			h, loc := w.locationOf("other content")
			flip(t, w.packPath(loc.Pack), int64(loc.Offset)+blobstore.RecordHeader+3)
			return h.String()
		}, "HEAD:d/small", false},
		"header of a small content": {func(w *work) string {
			h, loc := w.locationOf("other content")
			flip(t, w.packPath(loc.Pack), int64(loc.Offset)+1)
			return h.String()
		}, "HEAD:d/small", true},
		"byte of a large content": {func(w *work) string {
			h, _ := w.locationOf(strings.Repeat("large", 40_000))
			flip(t, filepath.Join(w.ContentsDir(), "whole", h.String()[:2], h.String()[2:]), 100_000)
			return h.String()
		}, "HEAD:large", false},
		"large content cut off": {func(w *work) string {
			h, _ := w.locationOf(strings.Repeat("large", 40_000))
			p := filepath.Join(w.ContentsDir(), "whole", h.String()[:2], h.String()[2:])
			ok(t, os.Chmod(p, 0o644))
			ok(t, os.Truncate(p, 10))
			return h.String()
		}, "HEAD:large", true},
		"large content gone": {func(w *work) string {
			h, _ := w.locationOf(strings.Repeat("large", 40_000))
			ok(t, os.Remove(filepath.Join(w.ContentsDir(), "whole", h.String()[:2], h.String()[2:])))
			return h.String()
		}, "HEAD:large", true},
		"pack cut off": {func(w *work) string {
			h, loc := w.locationOf("staged content") // the last one
			ok(t, os.Truncate(w.packPath(loc.Pack), int64(loc.Offset)+blobstore.RecordHeader+3))
			return h.String()
		}, "stage:staged", true},
		"pack gone": {func(w *work) string {
			h, loc := w.locationOf("other content")
			ok(t, os.Remove(w.packPath(loc.Pack)))
			return h.String()
		}, "HEAD:d/small", true},
		"content not in the index": {func(w *work) string {
			h, _ := w.locationOf("other content")
			w.rewrite(lmdbstore.Blobs, h[:], nil)
			return h.String()
		}, "HEAD:d/small", true},
		"content of a long link not in the index": {func(w *work) string {
			h := merkle.ContentHash(bytes.Repeat([]byte("l"), 500))
			w.rewrite(lmdbstore.Blobs, h[:], nil)
			return h.String()
		}, "HEAD:long", true},
		"index names another place": {func(w *work) string {
			h, _ := w.locationOf("other content")
			_, loc := w.locationOf("small content")
			w.rewrite(lmdbstore.Blobs, h[:], loc.Encode())
			return h.String()
		}, "HEAD:d/small", true},
		"malformed entry of the index": {func(w *work) string {
			h, _ := w.locationOf("other content")
			w.rewrite(lmdbstore.Blobs, h[:], []byte("x"))
			return h.String()
		}, "HEAD:d/small", true},
		"malformed record of the stage": {func(w *work) string {
			k := worktreeLedger().stageKey("staged")
			w.rewrite(lmdbstore.Stage, k, []byte("?"))
			return fmt.Sprintf("stage/%x", k)
		}, "", true},
		"name of a record of the stage": {func(w *work) string {
			k := worktreeLedger().stageKey("..")
			w.rewrite(lmdbstore.Stage, k, []byte("X"))
			return fmt.Sprintf("stage/%x", k)
		}, "", true},
		"malformed record of the stat table": {func(w *work) string {
			k := worktreeLedger().statKey("large")
			w.rewrite(lmdbstore.Stat, k, []byte("?"))
			return fmt.Sprintf("stat/%x", k)
		}, "", true},
		"malformed record of the reflog": {func(w *work) string {
			k := reflogKey("refs/heads/main", 5)
			w.rewrite(lmdbstore.Reflog, k, []byte("?"))
			return fmt.Sprintf("reflog/%x", k)
		}, "", true},
		"malformed ref": {func(w *work) string {
			w.rewrite(lmdbstore.Refs, []byte("refs/heads/x"), []byte("h?"))
			return "refs/heads/x"
		}, "", true},
		"ref to nothing": {func(w *work) string {
			h := merkle.NodeHash([]byte("nothing"))
			w.rewrite(lmdbstore.Refs, []byte("refs/heads/x"), encodeDirect(h))
			return nodeName(h.Key())
		}, "refs/heads/x", true},
		"base of the working directory": {func(w *work) string {
			h := merkle.NodeHash([]byte("nothing"))
			w.rewrite(lmdbstore.Meta, baseKey, h[:])
			return nodeName(h.Key())
		}, "the working directory", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := fsckWork(t)
			hash := c.harm(w)
			want := strings.ReplaceAll(c.touches, "HEAD:", head(w).String()+":")
			before := repoBytes(t, w.root)
			for _, contents := range []bool{false, true} {
				found := map[string]Damage{}
				res, err := w.Fsck(ctx, FsckOptions{Contents: contents, Damage: func(d Damage) { found[d.Hash] = d }})
				ok(t, err)
				if !contents && !c.shallow {
					continue
				}
				d, isThere := found[hash]
				if !isThere || d.Reason == "" || res.Damaged != uint64(len(found)) {
					t.Fatalf("with contents %v found %+v, not %s", contents, found, hash)
				}
				if want != "" && !slices.Contains(d.Touches, want) {
					t.Fatalf("%s touches %q, want %q", hash, d.Touches, want)
				}
			}
			if now := repoBytes(t, w.root); fmt.Sprint(now) != fmt.Sprint(before) {
				t.Fatalf("fsck changed the repository:\n%v\nbefore:\n%v", now, before)
			}
		})
	}
}

// TestFsckSound: a sound repository has no damage, and everything is counted.
func TestFsckSound(t *testing.T) {
	w := fsckWork(t)
	before := repoBytes(t, w.root)
	res := w.wantSound()
	if res.Commits != 2 || res.Contents != 6 || res.Nodes < 8 || res.Bytes < 200_000 {
		t.Fatalf("counts: %+v", res)
	}
	if now := repoBytes(t, w.root); fmt.Sprint(now) != fmt.Sprint(before) {
		t.Fatal("fsck changed the repository")
	}
}

// TestFsckGoesOnAfterAMissingNode damages two parts of one large directory: both
// are found, and nothing that lies beside them is lost from sight.
func TestFsckGoesOnAfterAMissingNode(t *testing.T) {
	w := newWork(t)
	entries := map[string]merkle.Entry{"many": {Kind: merkle.KindDir, Perm: 0o755, Mtime: 1}}
	for i := range 2000 {
		entries[fmt.Sprintf("many/%s%04d", strings.Repeat("n", 60), i)] = plainFile("")
	}
	entries["many/zz"] = plainFile("missing content")
	w.write("empty", "")
	w.save("first")
	store := merkle.NewMemStore()
	root := buildEntries(t, store, entries)
	nodes := map[merkle.Hash][]byte{}
	ok(t, eachNode(store, root.Hash, nodes))
	var leaves []merkle.Hash
	ok(t, eachVNode(store, root.Hash, func(h merkle.Hash) { leaves = append(leaves, h) }))
	if len(leaves) < 8 {
		t.Fatalf("the directory has %d nodes", len(leaves))
	}
	gone := []merkle.Hash{leaves[1], leaves[4]}
	for _, h := range gone {
		delete(nodes, h)
	}
	id := w.putCommit(merkle.Commit{Tree: root.Hash, Totals: root.Totals(), RootPerm: 0o755}, nodes)
	ok(t, w.CreateBranch("bad", id, false))
	found := w.damage()
	for _, h := range gone {
		if d := found[nodeName(h.Key())]; d == nil || len(d.Touches) == 0 || !strings.HasPrefix(d.Touches[0], id.String()+":many") {
			t.Fatalf("node %s: %+v", h, d)
		}
	}
	if d := found[merkle.ContentHash([]byte("missing content")).String()]; d == nil || d.Touches[0] != id.String()+":many/zz" {
		t.Fatalf("the content behind them: %+v", d)
	}
	if len(found) != 3 {
		t.Fatalf("found %v", found)
	}
}

// eachVNode calls fn for the leaves of the directories in a tree that have several nodes.
func eachVNode(r merkle.Reader, h merkle.Hash, fn func(merkle.Hash)) error {
	b, err := r.Node(&h)
	if err != nil {
		return err
	}
	return merkle.Children(&h, b, func(c merkle.Child) error {
		if c.Kind != merkle.ChildNode || c.Node != merkle.NodeDir && c.Node != merkle.NodeVNode {
			return nil
		}
		if c.Node == merkle.NodeVNode && c.Level == 0 {
			fn(c.Hash)
		}
		return eachVNode(r, c.Hash, fn)
	})
}

// TestDamagedNode flips bytes of nodes in the database: readers say which node it is.
func TestDamagedNode(t *testing.T) {
	w := fsckWork(t)
	head, err := w.Head()
	ok(t, err)
	e, err := w.Lookup(head.Commit, "d")
	ok(t, err)
	dir, db := w.root, w.file("db/data.mdb")
	var node []byte
	ok(t, w.View(func(rd merkle.Reader) error {
		b, err := rd.Node(&e.Hash)
		node = bytes.Clone(b)
		return err
	}))
	ok(t, w.db.Close())
	data, err := os.ReadFile(db)
	ok(t, err)
	for at := 0; ; at++ { // pages that are free hold copies
		i := bytes.Index(data[at:], node)
		if i < 0 {
			break
		}
		at += i
		flip(t, db, int64(at)+50)
	}
	again, err := lmdbstore.Open(filepath.Dir(db), lmdbstore.Options{})
	ok(t, err)
	w.db = again
	_, err = w.Lookup(head.Commit, "d/small")
	wantErr(t, err, merkle.ErrCorrupt, e.Hash.String())
	found := w.damage()
	d := found[nodeName(e.Hash.Key())]
	if d == nil || !slices.Contains(d.Touches, head.Commit.String()+":d") {
		t.Fatalf("found %+v in %s", found, dir)
	}
	if _, err := w.Lookup(head.Commit, "large"); err != nil {
		t.Fatal(err)
	}
}
