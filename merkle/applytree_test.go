package merkle

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// randomEntry makes any valid entry that is no directory.
func randomEntry(rng *rand.Rand) Entry {
	e := Entry{Kind: KindFile, Perm: uint16(rng.IntN(0o1000)), Mtime: int64(rng.Uint64()), Size: rng.Uint64() >> 24}
	e.Hash = ContentHash([]byte{byte(rng.IntN(256))})
	if rng.IntN(4) == 0 {
		e.Attrs = ContentHash([]byte("attrs"))
	}
	switch rng.IntN(6) {
	case 0:
		e.Kind, e.Hash = KindSymlink, Hash{}
		e.Target = []byte(strings.Repeat("t", 1+rng.IntN(InlineTarget)))
		e.Size = uint64(len(e.Target))
	case 1:
		e.Kind, e.Size = KindSymlink, uint64(InlineTarget+1+rng.IntN(1000))
	}
	return e
}

// treeModel draws changes for a tree and does the same to a refTree.
type treeModel struct {
	rng  *rand.Rand
	tree refTree
}

// path draws a path of which all directories are there after the changes so
// far; often one that exists.
func (m *treeModel) path() string {
	dir := ""
	for depth := 0; depth < 4; depth++ {
		name := fmt.Sprintf("%c%s", 'a'+rune(m.rng.IntN(4)), []string{"", "!", "0", "\xff"}[m.rng.IntN(4)])
		p := strings.TrimPrefix(dir+"/"+name, "/")
		if m.tree[p].Kind != KindDir || m.rng.IntN(4) == 0 {
			return p
		}
		dir = p
	}
	return dir
}

// change draws one change for path, or false when it would not be valid.
func (m *treeModel) change(path string) Change {
	c := Change{Path: []byte(path), Op: OpSet}
	// Few values, so that often only one of the three differs.
	meta := Entry{Kind: KindDir, Perm: uint16(m.rng.IntN(2)), Mtime: m.rng.Int64N(2), Attrs: Hash{byte(m.rng.IntN(2))}}
	switch m.rng.IntN(5) {
	case 0:
		c.Op = OpRemove
		m.tree.remove(path)
	case 1:
		c.Op, c.Entry = OpMeta, meta
		if m.tree[path].Kind != KindDir {
			m.tree.remove(path)
		}
		m.tree[path] = meta
	case 2:
		c.Entry = meta
		m.tree.set(path, meta)
	default:
		c.Entry = randomEntry(m.rng)
		m.tree.set(path, c.Entry)
	}
	return c
}

// batch draws changes in path order. They are drawn in that order too, so that
// each sees what those above it did.
func (m *treeModel) batch(n int) []Change {
	var cs []Change
	last := ""
	for range n * 4 {
		p := m.path()
		if last != "" && ComparePaths([]byte(last), []byte(p)) >= 0 {
			continue
		}
		cs = append(cs, m.change(p))
		if last = p; len(cs) == n {
			break
		}
	}
	return cs
}

func TestApplyTreeModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		m := treeModel{rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 2)), refTree{}}
		store := NewMemStore()
		var h Hash
		for range rapid.IntRange(1, 30).Draw(rt, "batches") {
			before, _, _ := m.tree.build()
			cs := m.batch(rapid.IntRange(1, 12).Draw(rt, "changes"))
			h = mustApply(rt, store, h, cs...)
			want, totals, nodes := m.tree.build()
			if h != want {
				rt.Fatalf("from %s by %v: applied %s, built %s", before, describe(cs), h, want)
			}
			if d, err := OpenDir(store, &h); err != nil || d.Totals() != totals {
				rt.Fatalf("totals %+v, %v; want %+v", d.Totals(), err, totals)
			}
			for h := range nodes {
				if _, err := store.Node(&h); err != nil {
					rt.Fatal(err)
				}
			}
		}
	})
}

func describe(cs []Change) []string {
	var s []string
	for _, c := range cs {
		s = append(s, fmt.Sprintf("%d %q %v", c.Op, c.Path, c.Entry.Kind))
	}
	return s
}

// TestApplyInOneGoOrMany applies the files of a tree in one batch and in many
// of random members.
func TestApplyInOneGoOrMany(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(rt, "seed"), 3))
		store := NewMemStore()
		var dirs, files []Change
		for i := range 12 {
			dirs = append(dirs, setDir(fmt.Sprintf("d%02d", i)))
			for j := range rng.IntN(400) {
				files = append(files, setFile(fmt.Sprintf("d%02d/f%04d", i, j), fmt.Sprint(i*j)))
			}
		}
		want := mustApply(rt, store, Hash{}, slices.Concat(dirs, files)...)
		h := mustApply(rt, store, Hash{}, dirs...)
		rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		for len(files) > 0 {
			n := min(len(files), 1+rng.IntN(900))
			h = mustApply(rt, store, h, files[:n]...)
			files = files[n:]
		}
		if h != want {
			rt.Fatalf("in one go %s, in many %s", want, h)
		}
	})
}

func TestApplyOperations(t *testing.T) {
	store := NewMemStore()
	link := Entry{Kind: KindSymlink, Perm: 0o777, Target: []byte("x/y")}
	base := mustApply(t, store, Hash{}, setDir("d"), setFile("d/f", "one"), setDir("d/sub"), setFile("d/sub/g", "two"), setFile("e", "three"))
	lookup := func(h Hash, path string) (Entry, bool) {
		t.Helper()
		var e Entry
		for _, name := range strings.Split(path, "/") {
			d, err := OpenDir(store, &h)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Lookup([]byte(name), &e); err != nil {
				return Entry{}, false
			}
			h = e.Hash
		}
		return e.Clone(), true
	}
	d, _ := lookup(base, "d")
	if d.Files != 2 || d.Dirs != 1 || d.Size != 6 || d.Perm != 0o755 || d.Mtime != 5 {
		t.Fatalf("d is %+v", d)
	}
	for name, c := range map[string]struct {
		changes []Change
		path    string
		want    func(Entry, bool) bool
	}{
		"meta keeps the entries": {
			[]Change{{Path: []byte("d"), Op: OpMeta, Entry: Entry{Perm: 0o700, Mtime: -9, Attrs: Hash{1}}}},
			"d", func(e Entry, ok bool) bool {
				return e.Hash == d.Hash && e.Perm == 0o700 && e.Mtime == -9 && e.Attrs == Hash{1} && e.Size == 6
			}},
		"meta with changes below": {
			[]Change{{Path: []byte("d"), Op: OpMeta, Entry: Entry{Perm: 0o700}}, remove("d/f")},
			"d", func(e Entry, ok bool) bool { return e.Perm == 0o700 && e.Files == 1 && e.Size == 3 }},
		"meta on a file": {
			[]Change{{Path: []byte("e"), Op: OpMeta, Entry: Entry{Perm: 0o711, Mtime: 1}}},
			"e", func(e Entry, ok bool) bool {
				return e.Kind == KindDir && e.Files == 0 && e.Perm == 0o711 && e.Size == 0
			}},
		"meta on nothing": {
			[]Change{{Path: []byte("new"), Op: OpMeta, Entry: Entry{Perm: 0o711}}, setFile("new/x", "1")},
			"new", func(e Entry, ok bool) bool { return e.Kind == KindDir && e.Files == 1 }},
		"set empties a directory":   {[]Change{setDir("d")}, "d", func(e Entry, ok bool) bool { return e.Files == 0 && e.Dirs == 0 }},
		"set and changes below":     {[]Change{setDir("d"), setFile("d/x", "1")}, "d/x", func(e Entry, ok bool) bool { return ok }},
		"graft":                     {[]Change{{Path: []byte("copy"), Op: OpSet, Entry: d}}, "copy/sub/g", func(e Entry, ok bool) bool { return e.Size == 3 }},
		"graft over a file":         {[]Change{{Path: []byte("e"), Op: OpSet, Entry: d}}, "e", func(e Entry, ok bool) bool { return e.Hash == d.Hash && e.Files == 2 && e.Size == 6 }},
		"graft and changes below":   {[]Change{{Path: []byte("copy"), Op: OpSet, Entry: d}, remove("copy/sub")}, "copy", func(e Entry, ok bool) bool { return e.Files == 1 && e.Dirs == 0 }},
		"a file over a directory":   {[]Change{setFile("d", "1")}, "d", func(e Entry, ok bool) bool { return e.Kind == KindFile && e.Files == 0 }},
		"remove a directory":        {[]Change{remove("d")}, "d", func(e Entry, ok bool) bool { return !ok }},
		"remove in no directory":    {[]Change{remove("e/x"), remove("nowhere/x")}, "e", func(e Entry, ok bool) bool { return ok && e.Kind == KindFile }},
		"remove twice":              {[]Change{remove("d"), remove("d/f"), remove("d/sub/g")}, "d", func(e Entry, ok bool) bool { return !ok }},
		"removing leaves the dir":   {[]Change{remove("d/sub/g")}, "d/sub", func(e Entry, ok bool) bool { return e.Kind == KindDir && e.Files == 0 }},
		"a symlink gets its length": {[]Change{{Path: []byte("l"), Op: OpSet, Entry: link}}, "l", func(e Entry, ok bool) bool { return e.Size == 3 && string(e.Target) == "x/y" }},
	} {
		h := mustApply(t, store, base, c.changes...)
		if e, ok := lookup(h, c.path); !c.want(e, ok) {
			t.Errorf("%s: %q is %+v, %v", name, c.path, e, ok)
		}
	}
}

func TestApplyRefuses(t *testing.T) {
	store := NewMemStore()
	base := mustApply(t, store, Hash{}, setDir("d"), setFile("d/f", "one"), setFile("e", "two"))
	bad := errors.New("from the sequence")
	with := func(change func(*Entry)) Change {
		c := setFile("x", "x")
		change(&c.Entry)
		return c
	}
	for name, c := range map[string]struct {
		changes []Change
		want    error
	}{
		"unsorted":             {[]Change{setFile("b", ""), setFile("a", "")}, ErrUnsorted},
		"unsorted components":  {[]Change{setFile("d!", ""), setFile("d/f", "")}, ErrUnsorted},
		"twice":                {[]Change{setFile("a", ""), remove("a")}, ErrUnsorted},
		"below nothing":        {[]Change{setFile("a/b", "")}, ErrNoParent},
		"below a file":         {[]Change{setFile("e/b", "")}, ErrNoParent},
		"below a new file":     {[]Change{setFile("d", ""), setFile("d/f", "")}, ErrNoParent},
		"below a removed":      {[]Change{remove("d"), setFile("d/f", "")}, ErrNoParent},
		"deep below a removed": {[]Change{remove("d"), remove("d/a"), setDir("d/f/g")}, ErrNoParent},
		"empty path":           {[]Change{setFile("", "")}, ErrBadName},
		"leading slash":        {[]Change{setFile("/a", "")}, ErrBadName},
		"trailing slash":       {[]Change{setFile("d/", "")}, ErrBadName},
		"double slash":         {[]Change{setFile("d//f", "")}, ErrBadName},
		"dot":                  {[]Change{setFile("d/./f", "")}, ErrBadName},
		"dot dot":              {[]Change{setFile("d/../f", "")}, ErrBadName},
		"reserved":             {[]Change{setFile("d/.Bole", "")}, ErrBadName},
		"NUL":                  {[]Change{setFile("d/\x00", "")}, ErrBadName},
		"long name":            {[]Change{setFile(strings.Repeat("x", 256), "")}, ErrBadName},
		"removal of a bad one": {[]Change{remove("..")}, ErrBadName},
		"too deep":             {[]Change{remove(strings.Repeat("d/", MaxDepth) + "f")}, ErrTooDeep},
		"no operation":         {[]Change{{Path: []byte("a")}}, ErrBadEntry},
		"no kind":              {[]Change{with(func(e *Entry) { e.Kind = 0 })}, ErrBadEntry},
		"setuid":               {[]Change{with(func(e *Entry) { e.Perm = 0o4755 })}, ErrBadEntry},
		"no content":           {[]Change{with(func(e *Entry) { e.Hash = Hash{} })}, ErrBadEntry},
		"negative size":        {[]Change{with(func(e *Entry) { e.Size = 1 << 63 })}, ErrBadEntry},
		"target on a file":     {[]Change{with(func(e *Entry) { e.Target = []byte("x") })}, ErrBadEntry},
		"totals on a file":     {[]Change{with(func(e *Entry) { e.Files = 1 })}, ErrBadEntry},
		"symlink to nothing":   {[]Change{with(func(e *Entry) { *e = Entry{Kind: KindSymlink} })}, ErrBadEntry},
		"symlink to NUL":       {[]Change{with(func(e *Entry) { *e = Entry{Kind: KindSymlink, Target: []byte{0}} })}, ErrBadEntry},
		"long inline symlink":  {[]Change{with(func(e *Entry) { *e = Entry{Kind: KindSymlink, Target: make([]byte, 129)} })}, ErrBadEntry},
		"root dir mode":        {[]Change{{Path: []byte("d"), Op: OpMeta, Entry: Entry{Perm: 0o1000}}}, ErrBadEntry},
		"missing graft":        {[]Change{{Path: []byte("g"), Op: OpSet, Entry: Entry{Kind: KindDir, Hash: Hash{1}}}}, ErrMissing},
		"sizes overflow": {[]Change{
			with(func(e *Entry) { e.Size = MaxSize }),
			{Path: []byte("y"), Op: OpSet, Entry: Entry{Kind: KindFile, Size: MaxSize, Hash: Hash{1}}},
			{Path: []byte("z"), Op: OpSet, Entry: Entry{Kind: KindFile, Size: MaxSize, Hash: Hash{1}}},
		}, ErrTooLarge},
	} {
		before := store.Len()
		_, _, err := Apply(store, NewMemStore(), base, asGiven(c.changes))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
		if store.Len() != before {
			t.Errorf("%s: the tree read from was changed", name)
		}
	}
	_, _, err := Apply(store, store, base, func(yield func(Change, error) bool) {
		if yield(setFile("a", ""), nil) {
			yield(Change{}, bad)
		}
	})
	if err != bad {
		t.Errorf("error of the sequence: got %v", err)
	}
	if _, _, err := Apply(store, store, Hash{1}, asGiven(nil)); !errors.Is(err, ErrMissing) {
		t.Errorf("missing base: got %v", err)
	}
	if _, _, err := Apply(store, failing{bad}, base, asGiven([]Change{setFile("d/x", "")})); !errors.Is(err, bad) || !strings.Contains(err.Error(), `"d"`) {
		t.Errorf("failing writer: got %v", err)
	}
}

type failing struct{ err error }

func (f failing) PutNode(Hash, []byte) error { return f.err }

func TestApplyWithoutEffectWritesNothing(t *testing.T) {
	store := NewMemStore()
	var cs []Change
	for i := range 3000 {
		cs = append(cs, setFile(fmt.Sprintf("d/f%06d", i), fmt.Sprint(i)))
	}
	cs = append(cs, setDir("d"), setDir("empty"))
	base := mustApply(t, store, Hash{}, cs...)
	for name, cs := range map[string][]Change{
		"no change":           nil,
		"the same file":       {setFile("d/f001000", "1000")},
		"the same files":      cs[:3000],
		"a missing file":      {remove("d/g"), remove("nowhere")},
		"the same directory":  {{Path: []byte("d"), Op: OpMeta, Entry: dirEntry(5)}},
		"below and the same":  {{Path: []byte("d"), Op: OpMeta, Entry: dirEntry(5)}, setFile("d/f000000", "0")},
		"removal from empty":  {remove("empty/x")},
		"removal of the base": {remove("d/f001000x")},
	} {
		w := NewMemStore()
		h, totals, err := Apply(store, w, base, inPathOrder(cs))
		if err != nil || h != base || totals != (Totals{3000, 2, 10890}) {
			t.Errorf("%s: %s, %+v, %v; want the base %s", name, h, totals, err, base)
		}
		for h, b := range w.nodes {
			if empty, _ := EmptyDir(); h != empty {
				t.Errorf("%s: wrote a node of %d bytes", name, len(b))
			}
		}
	}
}

func TestApplyEmptyDir(t *testing.T) {
	store := NewMemStore()
	empty, bytes := EmptyDir()
	if len(bytes) != 40 || NodeHash(bytes) != empty || empty.String() != "e2d42bec2333bad4b259c0fdebc904640a0be919c70a5f57455277fef5e3e0ad" {
		t.Fatalf("EmptyDir gives %d bytes named %s", len(bytes), empty)
	}
	for _, base := range []Hash{empty, {}} {
		store := NewMemStore()
		h, totals, err := Apply(store, store, base, asGiven(nil))
		if err != nil || h != empty || totals != (Totals{}) {
			t.Errorf("nothing on %s: %s, %+v, %v", base, h, totals, err)
		}
		if _, err := store.Node(&h); err != nil {
			t.Errorf("nothing on %s: %v", base, err)
		}
	}
	h := mustApply(t, store, Hash{}, setFile("a", "x"))
	if h = mustApply(t, store, h, remove("a")); h != empty {
		t.Errorf("emptied: %s", h)
	}
	// An empty directory that no store has yet can be put anywhere.
	store = NewMemStore()
	mustApply(t, store, Hash{}, Change{Path: []byte("d"), Op: OpSet, Entry: Entry{Kind: KindDir, Hash: empty}})
	if _, err := store.Node(&empty); err != nil {
		t.Error(err)
	}
}
