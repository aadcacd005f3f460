package merkle

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func sampleCommit() Commit {
	return Commit{
		Tree:      Hash{1, 2, 3},
		Totals:    Totals{Files: 4, Dirs: 5, Bytes: 6},
		RootPerm:  0o755,
		RootMtime: -1_000_000_001,
		RootAttrs: Hash{7},
		Parents:   []Hash{{8}, {9}},
		Author:    Signature{"Ada Lovelace", "ada@example.org", 1_700_000_000_123456789, 60},
		Committer: Signature{"Li", "", -5, -330},
		Message:   "first\n\nline\n",
		Fields:    []Field{{"source", []byte("import")}, {"tool.version", []byte{0, 1}}},
	}
}

func TestCommitRoundTrip(t *testing.T) {
	text := rapid.StringMatching(`[^\x00\n<>]{0,40}`)
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 8))
		sign := func() Signature {
			return Signature{text.Draw(rt, "name"), text.Draw(rt, "email"), rapid.Int64().Draw(rt, "when"), rapid.Int16Range(-1439, 1439).Draw(rt, "zone")}
		}
		c := Commit{
			Tree: Hash{byte(rng.Uint32()), 1}, Totals: Totals{rng.Uint64(), rng.Uint64(), rng.Uint64()},
			RootPerm: uint16(rng.IntN(0o1000)), RootMtime: int64(rng.Uint64()), RootAttrs: Hash{byte(rng.IntN(2))},
			Author: sign(), Committer: sign(), Message: strings.ReplaceAll(rapid.String().Draw(rt, "message"), "\x00", ""),
		}
		for i := range rng.IntN(4) {
			c.Parents = append(c.Parents, Hash{byte(i), 1})
		}
		for i := range rng.IntN(5) {
			c.Fields = append(c.Fields, Field{string(rune('a'+i)) + "-key", []byte(text.Draw(rt, "value"))})
		}
		b, err := c.Encode()
		if err != nil {
			rt.Fatal(err)
		}
		h := NodeHash(b)
		if kind, err := Check(&h, b); err != nil || kind != NodeCommit {
			rt.Fatal(kind, err)
		}
		got, err := DecodeCommit(&h, b)
		if err != nil {
			rt.Fatal(err)
		}
		for i := range got.Fields {
			if len(got.Fields[i].Value) == 0 {
				got.Fields[i].Value = []byte{}
			}
		}
		if !reflect.DeepEqual(*got, c) {
			rt.Fatalf("decoded %+v, want %+v", *got, c)
		}
	})
}

func TestCommitField(t *testing.T) {
	c := sampleCommit()
	if v, ok := c.Field("source"); !ok || string(v) != "import" {
		t.Errorf("source: %q, %v", v, ok)
	}
	for _, key := range []string{"", "a", "sourc", "sources", "zzz"} {
		if v, ok := c.Field(key); ok {
			t.Errorf("%q: %q", key, v)
		}
	}
}

func TestCommitRefuses(t *testing.T) {
	for name, change := range map[string]func(*Commit){
		"no tree":        func(c *Commit) { c.Tree = Hash{} },
		"mode":           func(c *Commit) { c.RootPerm = 0o1755 },
		"zero parent":    func(c *Commit) { c.Parents[1] = Hash{} },
		"parent twice":   func(c *Commit) { c.Parents[1] = c.Parents[0] },
		"many parents":   func(c *Commit) { c.Parents = make([]Hash, 257) },
		"NUL in message": func(c *Commit) { c.Message = "a\x00b" },
		"NUL in name":    func(c *Commit) { c.Author.Name = "a\x00" },
		"line in email":  func(c *Commit) { c.Committer.Email = "a\nb" },
		"bracket":        func(c *Commit) { c.Committer.Name = "a <b>" },
		"zone":           func(c *Commit) { c.Author.Zone = 1440 },
		"zone west":      func(c *Commit) { c.Committer.Zone = math.MinInt16 },
		"unsorted":       func(c *Commit) { c.Fields[0].Key = "zz" },
		"field twice":    func(c *Commit) { c.Fields[1].Key = c.Fields[0].Key },
		"empty key":      func(c *Commit) { c.Fields[0].Key = "" },
		"key upper case": func(c *Commit) { c.Fields[0].Key = "Source" },
		"long key":       func(c *Commit) { c.Fields[0].Key = strings.Repeat("k", 256) },
	} {
		c := sampleCommit()
		change(&c)
		if b, err := c.Encode(); !errors.Is(err, ErrBadCommit) {
			t.Errorf("%s: %d bytes, %v", name, len(b), err)
		}
	}
	c := sampleCommit()
	c.Message = strings.Repeat("m", MaxNode)
	if _, err := c.Encode(); !errors.Is(err, ErrTooLarge) {
		t.Errorf("large message: %v", err)
	}
}

// TestCommitCoversEverything: two commits that differ anywhere differ in name.
func TestCommitCoversEverything(t *testing.T) {
	seen := map[Hash]string{}
	for name, change := range map[string]func(*Commit){
		"nothing":   func(c *Commit) {},
		"tree":      func(c *Commit) { c.Tree[31]++ },
		"files":     func(c *Commit) { c.Totals.Files++ },
		"dirs":      func(c *Commit) { c.Totals.Dirs++ },
		"bytes":     func(c *Commit) { c.Totals.Bytes++ },
		"mode":      func(c *Commit) { c.RootPerm ^= 1 },
		"mtime":     func(c *Commit) { c.RootMtime++ },
		"attrs":     func(c *Commit) { c.RootAttrs[5]++ },
		"order":     func(c *Commit) { c.Parents[0], c.Parents[1] = c.Parents[1], c.Parents[0] },
		"parents":   func(c *Commit) { c.Parents = c.Parents[:1] },
		"name":      func(c *Commit) { c.Author.Name += "x" },
		"moved":     func(c *Commit) { c.Author.Name, c.Author.Email = c.Author.Name+"a", c.Author.Email[1:] },
		"when":      func(c *Commit) { c.Author.When++ },
		"zone":      func(c *Commit) { c.Author.Zone++ },
		"committer": func(c *Commit) { c.Committer.Zone++ },
		"later":     func(c *Commit) { c.Committer.When++ },
		"message":   func(c *Commit) { c.Message += "." },
		"field":     func(c *Commit) { c.Fields = c.Fields[:1] },
		"value":     func(c *Commit) { c.Fields[1].Value = []byte{0, 2} },
	} {
		c := sampleCommit()
		change(&c)
		b, err := c.Encode()
		if err != nil {
			t.Fatal(name, err)
		}
		h := NodeHash(b)
		if other, ok := seen[h]; ok {
			t.Errorf("%s and %s have one name", name, other)
		}
		seen[h] = name
	}
}
