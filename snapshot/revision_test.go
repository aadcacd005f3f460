package snapshot

import (
	"fmt"
	"strings"
	"testing"

	"bole/merkle"
)

func TestResolve(t *testing.T) {
	w := newWork(t)
	for _, rev := range []string{"HEAD", "@", "HEAD~0", "HEAD:x", ""} {
		_, err := w.Resolve(rev)
		wantErr(t, err, ErrUnborn)
	}
	_, err := w.Resolve("main")
	wantErr(t, err, ErrUnknownRevision, "main")
	var ids []merkle.Hash
	for i := range 4 {
		w.write("d/f", fmt.Sprint(i))
		ids = append(ids, w.save(fmt.Sprint(i)))
	}
	ok(t, w.CreateBranch("topic/x", ids[1], false))
	ok(t, w.CreateBranch("abcdef", ids[0], false)) // looks like a prefix
	hex := ids[2].String()
	for rev, want := range map[string]Revision{
		"HEAD":                   {Commit: ids[3], Branch: "main"},
		"@":                      {Commit: ids[3], Branch: "main"},
		"":                       {Commit: ids[3], Branch: "main"},
		"main":                   {Commit: ids[3], Branch: "main"},
		"refs/heads/main":        {Commit: ids[3], Branch: "main"},
		"HEAD~0":                 {Commit: ids[3], Branch: "main"},
		"HEAD~":                  {Commit: ids[2]},
		"HEAD^":                  {Commit: ids[2]},
		"HEAD^1":                 {Commit: ids[2]},
		"HEAD~2":                 {Commit: ids[1]},
		"HEAD~1~1":               {Commit: ids[1]},
		"HEAD^^~1":               {Commit: ids[0]},
		"@~3":                    {Commit: ids[0]},
		"~1":                     {Commit: ids[2]},
		"topic/x":                {Commit: ids[1], Branch: "topic/x"},
		"topic/x~1":              {Commit: ids[0]},
		"abcdef":                 {Commit: ids[0], Branch: "abcdef"},
		hex:                      {Commit: ids[2]},
		hex[:7]:                  {Commit: ids[2]},
		hex[:8] + "~1":           {Commit: ids[1]},
		hex[:33]:                 {Commit: ids[2]}, // longer than the key of the database
		hex[:63]:                 {Commit: ids[2]},
		"HEAD:":                  {Commit: ids[3], Branch: "main"},
		"HEAD:d/f":               {Commit: ids[3], Branch: "main", Path: "d/f"},
		"HEAD~1:./d//f/":         {Commit: ids[2], Path: "d/f"},
		":d":                     {Commit: ids[3], Branch: "main", Path: "d"},
		"main:a:b":               {Commit: ids[3], Branch: "main", Path: "a:b"},
		strings.ToUpper(hex[:9]): {Commit: ids[2]},
	} {
		got, err := w.Resolve(rev)
		if err != nil || got != want {
			t.Errorf("%q is %+v, %v; want %+v", rev, got, err, want)
		}
	}
	for rev, want := range map[string]error{
		"nope": ErrUnknownRevision, "HEAD~4": ErrUnknownRevision, "HEAD~99999999999999999999": ErrUnknownRevision,
		"HEAD^2": ErrUnknownRevision, "HEAD~x": ErrUnknownRevision, "HEAD~1x": ErrUnknownRevision, "HEAD~-1": ErrUnknownRevision,
		hex[:3]: ErrUnknownRevision, hex + "0": ErrUnknownRevision, "head": ErrUnknownRevision, "topic": ErrUnknownRevision,
		"HEAD:../x": ErrNoPath, "HEAD:d/../../x": ErrNoPath, "mai": ErrUnknownRevision, "\x00": ErrUnknownRevision,
		hex[:40] + strings.Repeat("0", 24): ErrUnknownRevision, "main@{0}": ErrUnknownRevision,
	} {
		if _, err := w.Resolve(rev); err == nil {
			t.Errorf("%q is something", rev)
		} else {
			wantErr(t, err, want)
		}
	}
}

// TestAmbiguousPrefix finds two commits that share four digits.
func TestAmbiguousPrefix(t *testing.T) {
	w := newWork(t)
	tree := w.emptyTree()
	seen := map[string]merkle.Hash{}
	for i := 0; ; i++ {
		c := merkle.Commit{Tree: tree, RootPerm: 0o755, Message: fmt.Sprint(i)}
		b, err := c.Encode()
		ok(t, err)
		id := merkle.NodeHash(b)
		other, twice := seen[id.String()[:4]]
		seen[id.String()[:4]] = id
		if !twice {
			continue
		}
		w.putCommit(c, nil)
		if _, err := w.Resolve(id.String()[:4]); err != nil {
			t.Fatal(err) // the other is not stored yet
		}
		for j := range i {
			c.Message = fmt.Sprint(j)
			if b, err := c.Encode(); err == nil && merkle.NodeHash(b) == other {
				w.putCommit(c, nil)
			}
		}
		_, err = w.Resolve(id.String()[:4])
		wantErr(t, err, ErrAmbiguous)
		for _, h := range []merkle.Hash{id, other} {
			n := 4
			for id.String()[:n] == other.String()[:n] {
				n++
			}
			if rev, err := w.Resolve(h.String()[:n]); err != nil || rev.Commit != h {
				t.Fatalf("%s: %+v, %v", h, rev, err)
			}
		}
		return
	}
}

func TestLog(t *testing.T) {
	w := newWork(t)
	var ids []merkle.Hash
	for i := range 5 {
		w.write("f", fmt.Sprint(i))
		ids = append(ids, w.save(fmt.Sprint(i)))
	}
	var got []merkle.Hash
	ok(t, w.Log(ids[4], func(id merkle.Hash, c *merkle.Commit) (bool, error) {
		if c.Message != fmt.Sprint(4-len(got)) {
			t.Errorf("%s is %q", id, c.Message)
		}
		got = append(got, id)
		return true, nil
	}))
	if len(got) != 5 || got[0] != ids[4] || got[4] != ids[0] {
		t.Fatalf("the log is %v", got)
	}
	n := 0
	ok(t, w.Log(ids[4], func(merkle.Hash, *merkle.Commit) (bool, error) { n++; return n < 2, nil }))
	if n != 2 {
		t.Fatalf("a stopped log called %d times", n)
	}
	wantErr(t, w.Log(merkle.Hash{9}, nil), merkle.ErrMissing)
}

// TestLookup walks to paths of a commit.
func TestLookup(t *testing.T) {
	w := newWork(t)
	w.write("d/e/f", "x")
	id := w.save("first")
	for path, kind := range map[string]merkle.Kind{"": merkle.KindDir, "d": merkle.KindDir, "d/e/f": merkle.KindFile} {
		if e, err := w.Lookup(id, path); err != nil || e.Kind != kind {
			t.Errorf("%q: %v, %v", path, e.Kind, err)
		}
	}
	for _, path := range []string{"x", "d/x", "d/e/f/g", "d//e", "/d", "..", "d/../d", strings.Repeat("n", 300)} {
		_, err := w.Lookup(id, path)
		wantErr(t, err, ErrNoPath)
	}
	_, err := w.Lookup(id, "d/e/f/g")
	wantErr(t, err, ErrNotDir)
}
