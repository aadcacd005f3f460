package merkle

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// The files in testdata/golden hold the bytes of one node each, one field a
// line, with a comment. They change only with the version of the format: a
// repository that was made with one build of Bole must be the same to every
// other.

// readGolden returns the bytes of testdata/golden/name.txt: what stands before
// the '#' on each line, in hexadecimal.
func readGolden(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "golden", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	var b []byte
	for i, line := range strings.Split(string(text), "\n") {
		digits, comment, _ := strings.Cut(line, "#")
		digits = strings.ReplaceAll(digits, " ", "")
		field, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatalf("%s, line %d: %v", name, i+1, err)
		}
		if len(field) > 0 && strings.TrimSpace(comment) == "" {
			t.Fatalf("%s, line %d has no comment", name, i+1)
		}
		b = append(b, field...)
	}
	return b
}

// repeated returns a hash of 32 equal bytes, easy to find among others.
func repeated(b byte) Hash { return Hash(bytes.Repeat([]byte{b}, HashSize)) }

// goldenEntries are one entry of each kind, with and without what is optional.
func goldenEntries() []Entry {
	return []Entry{
		{Name: []byte("dir"), Kind: KindDir, Perm: 0o755, Size: 0x1234, Mtime: 1, Hash: repeated(0xd1), Files: 3, Dirs: 2},
		{Name: []byte("file"), Kind: KindFile, Perm: 0o644, Size: 5, Mtime: -1, Hash: repeated(0xf1), Attrs: repeated(0xa1)},
		{Name: []byte("link"), Kind: KindSymlink, Perm: 0o777, Size: 6, Mtime: 1700000000_123456789, Target: []byte("../dir")},
		{Name: []byte("long"), Kind: KindSymlink, Perm: 0o777, Size: 129, Hash: repeated(0x51)},
		{Name: []byte("\xff"), Kind: KindDir, Hash: repeated(0xd2), Attrs: repeated(0xa2)},
	}
}

func goldenLevel0(t testing.TB, kind byte) []byte {
	t.Helper()
	var b builder
	b.reset(0, false)
	for _, e := range goldenEntries() {
		if fault := e.fault(); fault != "" {
			t.Fatal(fault)
		}
		rec, item := appendEntry(nil, nil, e.Name, &e)
		b.add(rec, item, nil)
	}
	out, _, _, err := b.node(nil, kind, b.n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func goldenIndex(t testing.TB) []byte {
	t.Helper()
	var b builder
	b.reset(1, false)
	b.add(appendIndex(nil, repeated(0xe1), 41, Totals{Files: 40, Dirs: 1, Bytes: 0x100}), []byte("a"), nil)
	b.add(appendIndex(nil, repeated(0xe2), 2, Totals{Files: 2, Bytes: 0x23}), []byte("name"), nil)
	out, _, _, err := b.node(nil, kindDir, b.n)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func goldenCommit() Commit {
	return Commit{
		Tree: repeated(0xd1), Totals: Totals{Files: 3, Dirs: 2, Bytes: 0x1234},
		RootPerm: 0o755, RootMtime: -2, RootAttrs: repeated(0xa1),
		Parents:   []Hash{repeated(0xc2), repeated(0xc1)},
		Author:    Signature{"Ada", "ada@example.org", 1700000000_123456789, 60},
		Committer: Signature{"Li", "", -3, -330},
		Message:   "first\n",
		Fields:    []Field{{"source", []byte("/data")}, {"tool", nil}},
	}
}

func goldenAttrs() []Attr {
	return []Attr{{"user.a", []byte("value")}, {"user.b", nil}}
}

func TestGoldenBytes(t *testing.T) {
	commit := goldenCommit()
	commitBytes, err := commit.Encode()
	if err != nil {
		t.Fatal(err)
	}
	attrsBytes, err := EncodeAttrs(goldenAttrs())
	if err != nil {
		t.Fatal(err)
	}
	_, empty := EmptyDir()
	for name, got := range map[string][]byte{
		"dir":    goldenLevel0(t, kindDir),
		"vnode":  goldenLevel0(t, kindVNode),
		"index":  goldenIndex(t),
		"empty":  empty,
		"commit": commitBytes,
		"attrs":  attrsBytes,
	} {
		want := readGolden(t, name)
		if !bytes.Equal(got, want) {
			t.Errorf("%s encodes as\n%x\nwant\n%x", name, got, want)
		}
		if _, err := Check(&Hash{}, want); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestGoldenDecode reads the files without the encoder.
func TestGoldenDecode(t *testing.T) {
	m := NewMemStore()
	for _, name := range []string{"dir", "index", "commit", "attrs"} {
		b := readGolden(t, name)
		if err := m.PutNode(NodeHash(b), b); err != nil {
			t.Fatal(err)
		}
	}
	h := NodeHash(readGolden(t, "dir"))
	d, err := OpenDir(m, &h)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Totals{Files: 6, Dirs: 4, Bytes: 0x1239}); d.Totals() != want || d.Len() != 5 {
		t.Errorf("dir: %+v, %d entries", d.Totals(), d.Len())
	}
	c := d.Seek(0)
	expectEntries(t, &c, goldenEntries(), 0, 6)

	h = NodeHash(readGolden(t, "index"))
	if d, err = OpenDir(m, &h); err != nil {
		t.Fatal(err)
	}
	if want := (Totals{Files: 42, Dirs: 1, Bytes: 0x123}); d.Totals() != want || d.Len() != 43 {
		t.Errorf("index: %+v, %d entries", d.Totals(), d.Len())
	}
	commit, err := DecodeCommit(&h, readGolden(t, "commit"))
	if err != nil {
		t.Fatal(err)
	}
	for i := range commit.Fields {
		if len(commit.Fields[i].Value) == 0 {
			commit.Fields[i].Value = nil
		}
	}
	if want := goldenCommit(); !reflect.DeepEqual(*commit, want) {
		t.Errorf("commit is %+v, want %+v", *commit, want)
	}
	attrs, err := DecodeAttrs(&h, readGolden(t, "attrs"))
	if err != nil || len(attrs) != 2 || attrs[0].Name != "user.a" || string(attrs[0].Value) != "value" || attrs[1].Name != "user.b" || len(attrs[1].Value) != 0 {
		t.Errorf("attributes are %+v, %v", attrs, err)
	}
}

// TestGoldenRoots builds one tree of every kind of entry, with directories of
// one, two and three levels, and compares its root with the last line of
// testdata/golden/roots.txt: the version of the format and its root.
func TestGoldenRoots(t *testing.T) {
	m := NewMemStore()
	var cs []Change
	ref := refTree{}
	for _, dir := range []struct {
		name string
		n    int
	}{{"empty", 0}, {"small", 10}, {"medium", 1000}, {"large", 20_000}} {
		cs = append(cs, setDir(dir.name))
		for i := range dir.n {
			c := setFile(fmt.Sprintf("%s/%06d.dat", dir.name, i*7), fmt.Sprint(i))
			c.Entry.Mtime = int64(i) * 1_000_000_007
			switch i % 10 {
			case 3:
				c.Entry = Entry{Kind: KindSymlink, Perm: 0o777, Target: []byte(fmt.Sprint("to ", i))}
			case 5:
				c.Entry = Entry{Kind: KindDir, Perm: 0o700, Mtime: -int64(i)}
			case 7:
				c.Entry.Attrs = repeated(byte(i))
			}
			cs = append(cs, c)
		}
	}
	for _, name := range risingNames()[:400] {
		cs = append(cs, setFile("small/"+name, ""))
	}
	for _, c := range cs {
		c.Entry.Size = max(c.Entry.Size, uint64(len(c.Entry.Target)))
		ref[string(c.Path)] = c.Entry
	}
	h := mustApply(t, m, Hash{}, cs...)
	if want, _, _ := ref.build(); h != want {
		t.Errorf("applied %s, built from the format %s", h, want)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "golden", "roots.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var version int
	var root string
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		if _, err := fmt.Sscan(line, &version, &root); err != nil {
			t.Fatal(err)
		}
	}
	if version != formatVersion || root != h.String() {
		t.Errorf("version %d has the root %s, this is version %d with %s", version, root, formatVersion, h)
	}
}
