package merkle

import (
	"bytes"
	"encoding/binary"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// addNodes seeds f with nodes of every kind, good and hostile.
func addNodes(f *testing.F) {
	f.Helper()
	for _, name := range []string{"dir", "vnode", "index", "empty", "commit", "attrs"} {
		f.Add(readGolden(f, name))
	}
	for _, b := range hostileNodes() {
		if len(b) < 1000 {
			f.Add(b)
		}
	}
}

// mustBeCorrupt ends the test unless err names h as corrupt.
func mustBeCorrupt(t *testing.T, h Hash, err error) {
	t.Helper()
	var c *CorruptError
	if !errors.As(err, &c) || !errors.Is(err, ErrCorrupt) || c.Node != h {
		t.Fatalf("%v is not about %s", err, h)
	}
}

func FuzzCheck(f *testing.F) {
	addNodes(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		h := NodeHash(b)
		kind, err := Check(&h, b)
		if err != nil {
			mustBeCorrupt(t, h, err)
			return
		}
		if kind != KindOf(b) || !bytes.Equal(reencode(t, b), b) {
			t.Fatalf("%x is accepted and encodes to other bytes", b)
		}
		if err := Children(&h, b, func(c Child) error {
			if c.Hash.IsZero() {
				t.Fatalf("%x has a child without hash", b)
			}
			return nil
		}); err != nil {
			t.Fatalf("%x is accepted and its children give %v", b, err)
		}
	})
}

func FuzzChildren(f *testing.F) {
	addNodes(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		h := NodeHash(b)
		n := 0
		err := Children(&h, b, func(c Child) error {
			n++
			if err := c.Verify(b); err != nil {
				mustBeCorrupt(t, c.Hash, err)
			}
			return nil
		})
		if err != nil {
			mustBeCorrupt(t, h, err)
		}
		if n > len(b)/HashSize {
			t.Fatalf("%d children in %d bytes", n, len(b))
		}
	})
}

func FuzzDecodeCommit(f *testing.F) {
	addNodes(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		h := NodeHash(b)
		c, err := DecodeCommit(&h, b)
		if err != nil {
			mustBeCorrupt(t, h, err)
			return
		}
		again, err := c.Encode()
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x is decoded and encodes to %x, %v", b, again, err)
		}
	})
}

func FuzzDecodeAttrs(f *testing.F) {
	addNodes(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		h := NodeHash(b)
		attrs, err := DecodeAttrs(&h, b)
		if err != nil {
			mustBeCorrupt(t, h, err)
			return
		}
		again, err := EncodeAttrs(attrs)
		if err != nil || !bytes.Equal(again, b) {
			t.Fatalf("%x is decoded and encodes to %x, %v", b, again, err)
		}
		for _, a := range attrs {
			if v, ok, err := AttrValue(b, a.Name); !ok || err != nil || !bytes.Equal(v, a.Value) {
				t.Fatalf("AttrValue(%q) of %x: %q, %v, %v", a.Name, b, v, ok, err)
			}
		}
	})
}

func FuzzAttrValue(f *testing.F) {
	f.Add(readGolden(f, "attrs"), "user.a")
	f.Add(readGolden(f, "attrs"), "user.c")
	f.Add([]byte{'A', 1, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0, 3, 0, 0, 0, 'u'}, "user.a")
	f.Fuzz(func(t *testing.T, b []byte, name string) {
		v, ok, err := AttrValue(b, name)
		if err != nil {
			mustBeCorrupt(t, NodeHash(b), err)
		}
		if ok && (err != nil || !bytes.Contains(b, v)) || !ok && v != nil {
			t.Fatalf("AttrValue(%q) of %x: %q, %v, %v", name, b, v, ok, err)
		}
	})
}

// FuzzDirRead reads directories whose nodes, up to four of them, are any
// bytes: each is preceded by its length in two bytes. The first one is the
// root. Children of a record find them by the first byte of its hash.
func FuzzDirRead(f *testing.F) {
	pack := func(nodes ...[]byte) (b []byte) {
		for _, n := range nodes {
			b = append(binary.LittleEndian.AppendUint16(b, uint16(len(n))), n...)
		}
		return b
	}
	first, second := vnode(manyFiles(25, 4)...), vnode(file("5000"), file("6000"))
	f.Add(pack(index('D', 1, below(Hash{1}, first), below(Hash{2}, second)), first, second))
	inner := index('V', 1, below(Hash{2}, second))
	f.Add(pack(index('D', 2, below(Hash{1}, inner)), inner, second))
	f.Add(pack(readGolden(f, "dir"), readGolden(f, "empty")))
	f.Add(pack(readGolden(f, "index"), readGolden(f, "vnode")))
	f.Add(pack(leaf(refEntry(Entry{Name: []byte("d"), Kind: KindDir, Hash: Hash{0}}))))
	f.Fuzz(func(t *testing.T, b []byte) {
		r := anyReader{}
		for len(b) >= 2 && len(r.nodes) < 4 {
			n := min(int(binary.LittleEndian.Uint16(b)), len(b)-2)
			r.nodes = append(r.nodes, b[2:2+n])
			b = b[2+n:]
		}
		err := walkAll(&r, Hash{})
		for _, known := range []error{ErrCorrupt, ErrMissing, ErrTooDeep, ErrTooLarge, errEnough} {
			if errors.Is(err, known) {
				return
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	})
}

var errEnough = errors.New("read enough")

// anyReader finds a node by the first byte of its name, the empty directory by
// its whole name. It fails after many reads: bytes of which each directory
// refers to itself many times take for ever to compare, which no store with
// verified names can hold.
type anyReader struct {
	nodes [][]byte
	reads int
}

func (r *anyReader) Node(h *Hash) ([]byte, error) {
	if r.reads++; r.reads > 2000 {
		return nil, errEnough
	}
	if *h == emptyHash() {
		return emptyBytes(), nil
	}
	if int(h[0]) >= len(r.nodes) {
		return nil, &MissingError{*h}
	}
	return r.nodes[h[0]], nil
}

func FuzzParseHash(f *testing.F) {
	f.Add(Hash{}.String())
	f.Add(strings.ToUpper(ContentHash(nil).String()))
	f.Add("0123")
	f.Add(strings.Repeat("g", 64))
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ParseHash(s)
		if err == nil && !strings.EqualFold(h.String(), s) || err != nil && (!errors.Is(err, ErrBadHash) || !h.IsZero()) {
			t.Fatalf("ParseHash(%q): %s, %v", s, h, err)
		}
	})
}

// FuzzApply makes changes with any paths, one a line, each after a byte that
// says what it does. Whatever is accepted must give a tree of valid nodes.
func FuzzApply(f *testing.F) {
	f.Add([]byte("Da\nFa/b\nFa/c\nRb\nFz"))
	f.Add([]byte("Fd/new\nMe\nFe/x\nRd/f"))
	f.Add([]byte("Fa/../b\nF.bole\nF"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m := NewMemStore()
		base := mustApply(t, m, Hash{}, setDir("d"), setFile("d/f", "one"), setFile("e", "two"))
		var cs []Change
		for _, line := range bytes.Split(b, []byte{'\n'}) {
			if len(line) == 0 {
				continue
			}
			c := Change{Path: line[1:], Op: OpSet, Entry: fileEntry("x")}
			switch line[0] {
			case 'D':
				c.Entry = dirEntry(1)
			case 'M':
				c.Op, c.Entry = OpMeta, Entry{Perm: 0o700}
			case 'R':
				c.Op = OpRemove
			}
			cs = append(cs, c)
		}
		h, totals, err := Apply(m, m, base, asGiven(cs))
		if err != nil {
			return
		}
		n := Totals{}
		if err := Diff(m, Hash{}, h, func(d DiffEntry) error {
			for _, name := range bytes.Split(d.Path, []byte{'/'}) {
				if err := CheckName(name); err != nil {
					return err
				}
			}
			w, _ := d.New.weight()
			if d.New.Kind == KindDir {
				w = Totals{Dirs: 1}
			}
			n.add(w)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if n != totals {
			t.Fatalf("totals %+v, counted %+v", totals, n)
		}
	})
}

func FuzzCheckName(f *testing.F) {
	for _, s := range []string{"", ".", "..", "a/b", ".BoLe", "a\x00", "ok", "\xff"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		bad := len(b) == 0 || len(b) > 255 || bytes.ContainsAny(b, "/\x00") || string(b) == "." || string(b) == ".." || string(bytes.ToLower(b)) == ".bole"
		if err := CheckName(b); (err != nil) != bad {
			t.Fatalf("CheckName(%q): %v", b, err)
		}
		attr := "user." + string(b)
		fits := len(b) > 0 && len(b) <= 250 && bytes.IndexByte(b, 0) < 0 && !bytes.HasPrefix(b, []byte("bole."))
		if err := CheckAttrName(attr); (err == nil) != fits {
			t.Fatalf("CheckAttrName(%q): %v", attr, err)
		}
	})
}

func FuzzComparePaths(f *testing.F) {
	f.Add([]byte("a/b"), []byte("a!"), []byte("a"))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		ab, ba, bc, ac := ComparePaths(a, b), ComparePaths(b, a), ComparePaths(b, c), ComparePaths(a, c)
		if ab != -ba || (ab == 0) != bytes.Equal(a, b) || ab <= 0 && bc <= 0 && ac > 0 {
			t.Fatalf("no order: %q %q %q: %d %d %d %d", a, b, c, ab, ba, bc, ac)
		}
	})
}

// TestEveryDecoderIsFuzzed: each exported function that takes bytes, text or a
// Reader is called in this file or in walkAll, or is listed as an encoder here.
func TestEveryDecoderIsFuzzed(t *testing.T) {
	notDecoders := map[string]bool{
		"NodeHash": true, "ContentHash": true, // take any bytes, look at none
		"EncodeAttrs": true, // takes what the caller made; its refusals have a test
	}
	calls := map[string]bool{}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]*ast.File{}
	for _, name := range names {
		if files[name], err = parser.ParseFile(token.NewFileSet(), name, nil, 0); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"fuzz_test.go", "hostile_test.go"} {
		ast.Inspect(files[name], func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok {
				if id, ok := c.Fun.(*ast.Ident); ok {
					calls[id.Name] = true
				}
			}
			return true
		})
	}
	decoders := 0
	for name, file := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		for _, d := range file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !fn.Name.IsExported() || notDecoders[fn.Name.Name] || !takesInput(fn) {
				continue
			}
			decoders++
			if !calls[fn.Name.Name] {
				t.Errorf("%s in %s has no fuzz target", fn.Name.Name, name)
			}
		}
	}
	if decoders < 10 {
		t.Errorf("only %d decoders were found", decoders)
	}
}

// takesInput reports whether a parameter is []byte, string or Reader.
func takesInput(fn *ast.FuncDecl) bool {
	for _, p := range fn.Type.Params.List {
		switch x := p.Type.(type) {
		case *ast.Ident:
			if x.Name == "string" || x.Name == "Reader" {
				return true
			}
		case *ast.ArrayType:
			if e, ok := x.Elt.(*ast.Ident); ok && e.Name == "byte" {
				return true
			}
		}
	}
	return false
}
