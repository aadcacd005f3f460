package snapshot

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bole/merkle"
)

// FuzzDecodeStage: any bytes are refused as corrupt or are exactly what encode makes.
func FuzzDecodeStage(f *testing.F) {
	file := merkle.Entry{Kind: merkle.KindFile, Perm: 0o640, Size: 5, Mtime: -7, Hash: merkle.Hash{1}, Attrs: merkle.Hash{2}}
	link := merkle.Entry{Kind: merkle.KindSymlink, Perm: 0o777, Size: 6, Mtime: 7, Target: []byte("target")}
	dir := merkle.Entry{Kind: merkle.KindDir, Perm: 0o700, Mtime: 1 << 60, Attrs: merkle.Hash{3}}
	for _, s := range []stageRecord{{op: stageRemoved}, {op: stageInside}, {op: stageEntry, entry: file}, {op: stageEntry, entry: link},
		{op: stageMeta, entry: dir}, {op: stageFresh, entry: dir}} {
		f.Add(s.encode())
	}
	f.Add([]byte("E"))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeStage(b)
		if err != nil {
			if !errors.Is(err, merkle.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again := s.encode(); !bytes.Equal(again, b) {
			t.Fatalf("%x is decoded, and encoded as %x", b, again)
		}
		base := merkle.Entry{Kind: merkle.KindDir, Hash: merkle.Hash{9}, Files: 3}
		for _, under := range []*merkle.Entry{nil, &base, &file} {
			if e, ok := s.over(under); ok && (e.Kind < merkle.KindFile || e.Kind > merkle.KindSymlink) {
				t.Fatalf("%x over %+v is of kind %d", b, under, e.Kind)
			}
		}
		if c, ok := s.change("p"); ok && c.Op == 0 {
			t.Fatalf("%x is a change that does nothing", b)
		}
	})
}

func FuzzDecodeStat(f *testing.F) {
	rec := statRecord{kind: merkle.KindFile, size: 5, mtime: -1, ctime: 1, ino: 1 << 63, hash: merkle.Hash{1}, attrs: merkle.Hash{2}}
	f.Add(rec.encode())
	rec.racy = true
	f.Add(rec.encode())
	f.Add([]byte("x"))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := decodeStat(b)
		if err != nil {
			if !errors.Is(err, merkle.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if again := s.encode(); !bytes.Equal(again, b) {
			t.Fatalf("%x is decoded, and encoded as %x", b, again)
		}
	})
}

func FuzzDecodeReflog(f *testing.F) {
	f.Add(reflogKey("refs/heads/main", 5), encodeReflog(ReflogEntry{Old: merkle.Hash{1}, New: merkle.Hash{2}, Who: "who", Why: "why"}))
	f.Add([]byte("k"), []byte("v"))
	f.Fuzz(func(t *testing.T, key, val []byte) {
		e, err := decodeReflog(key, val)
		if err != nil {
			if !errors.Is(err, merkle.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		ref := string(key[:len(key)-9])
		if !bytes.Equal(reflogKey(ref, e.When), key) || !bytes.Equal(encodeReflog(e), val) {
			t.Fatalf("%x = %x is decoded as %+v of %q, and encoded as another", key, val, e, ref)
		}
	})
}

func FuzzDecodeRef(f *testing.F) {
	f.Add(encodeDirect(merkle.Hash{1}))
	f.Add(encodeSymbolic("refs/heads/main"))
	f.Add([]byte("h"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, sym, err := decodeRef("x", b)
		if err != nil {
			if !errors.Is(err, merkle.ErrCorrupt) {
				t.Fatal(err)
			}
			return
		}
		again := encodeDirect(h)
		if sym != "" {
			again = encodeSymbolic(sym)
		}
		if !bytes.Equal(again, b) {
			t.Fatalf("%x is decoded, and encoded as %x", b, again)
		}
	})
}

// FuzzReadConfig: what is read is what is written back and read again.
func FuzzReadConfig(f *testing.F) {
	f.Add([]byte("[core]\nbare = true\nnode_store = 'lmdb'\n[user]\nname = \"A\"\n"))
	f.Add([]byte("[core]\ncontents = \"\\u0000\\n\"\n"))
	f.Add([]byte("x = 1"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, b []byte) {
		path := filepath.Join(dir, "config.toml")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := ReadConfig(path)
		if err != nil {
			return
		}
		if err := WriteConfig(path, c); err != nil {
			t.Fatal(err)
		}
		if again, err := ReadConfig(path); err != nil || again != c {
			t.Fatalf("%q is %+v, and read again %+v, %v", b, c, again, err)
		}
	})
}

// FuzzParseIdentity: what is taken for an identity can stand in a commit and is read back.
func FuzzParseIdentity(f *testing.F) {
	f.Add("Ada Lovelace <ada@example.org>")
	f.Add("A <<b>> c")
	f.Fuzz(func(t *testing.T, s string) {
		id, err := ParseIdentity(s)
		if err != nil {
			if !errors.Is(err, ErrIdentity) {
				t.Fatal(err)
			}
			return
		}
		again, err := ParseIdentity(id.Name + " <" + id.Email + ">")
		if err != nil || again.Name != id.Name || again.Email != id.Email {
			t.Fatalf("%q is %+v, and again %+v, %v", s, id, again, err)
		}
		if _, err := (&merkle.Commit{Tree: merkle.Hash{1}, RootPerm: 0o755, Author: id, Committer: id}).Encode(); err != nil {
			t.Fatalf("%q cannot stand in a commit: %v", s, err)
		}
	})
}

// FuzzRevision: any text is a revision or an error, of a repository with little in it.
func FuzzRevision(f *testing.F) {
	for _, s := range []string{"HEAD~1^0:a/b", "main", "refs/heads/main", "@", "~^", "00000000", ":..", "abcdef~999999999999999999999"} {
		f.Add(s)
	}
	root := filepath.Join(f.TempDir(), "r")
	if err := Init(root, InitOptions{}); err != nil {
		f.Fatal(err)
	}
	w := openWork(f, root)
	w.write("a", "x")
	w.save("first")
	f.Fuzz(func(t *testing.T, s string) {
		rev, err := w.Resolve(s)
		if err != nil {
			return
		}
		if rev.Commit.IsZero() {
			t.Fatalf("%q is %+v", s, rev)
		}
		if _, err := w.ReadCommit(rev.Commit); err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		if _, err := w.Lookup(rev.Commit, rev.Path); err != nil && !errors.Is(err, ErrNoPath) {
			t.Fatalf("%q: %v", s, err)
		}
		if err := CheckRefName(s); err == nil && len(s) < 200 {
			if err := w.CreateBranch(s, rev.Commit, true); err != nil && !errors.Is(err, ErrCurrentBranch) && !errors.Is(err, ErrRefExists) {
				t.Fatalf("branch %q: %v", s, err)
			}
		}
	})
}
