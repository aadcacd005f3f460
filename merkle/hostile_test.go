package merkle

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// hostileTree is a search tree whose nodes each pass Check (or were made not
// to), under names that need not be their hashes: what a store that verifies
// nothing would give.
type hostileTree struct {
	r    *trusting
	root Hash
}

// index encodes an index node above children with those records of their own.
func index(kind byte, level int, children ...refRecord) []byte {
	b, _ := refEncode(kind, level, children)
	return b
}

// below returns the index record of the node b under the name h.
func below(h Hash, b []byte) refRecord {
	n, _ := parseNode(b)
	name, _ := n.firstName()
	counts := [4]uint64{n.entries(), n.totals().Files, n.totals().Dirs, n.totals().Bytes}
	fixed := slices.Concat(h[:], u64(counts[0]), u64(counts[1]), u64(counts[2]), u64(counts[3]), u32(0))
	return refRecord{fixed, 64, name, string(name), counts}
}

func vnode(rs ...refRecord) []byte {
	b, _ := refEncode('V', 0, rs)
	return b
}

// hostileTrees each have a root of level 1 or 2 that is fine by itself.
func hostileTrees() map[string]hostileTree {
	first, second := vnode(manyFiles(60, 4)...), vnode(file("5000"), file("6000"))
	build := func(change func(nodes map[Hash][]byte, rs []refRecord) []refRecord) hostileTree {
		nodes := map[Hash][]byte{{1}: first, {2}: second}
		rs := []refRecord{below(Hash{1}, first), below(Hash{2}, second)}
		rs = change(nodes, rs)
		nodes[Hash{99}] = index('D', 1, rs...)
		return hostileTree{&trusting{nodes: nodes}, Hash{99}}
	}
	replace := func(b []byte) hostileTree {
		return build(func(nodes map[Hash][]byte, rs []refRecord) []refRecord {
			nodes[Hash{2}] = b
			return rs
		})
	}
	inner := func() []byte { return index('V', 1, below(Hash{2}, second)) }
	return map[string]hostileTree{
		"a Dir for a VNode":          replace(edited(second, func(b []byte) { b[0] = 'D' })),
		"a commit for a VNode":       replace(mustCommit()),
		"attributes for a VNode":     replace(mustAttrs("user.a")),
		"nothing for a VNode":        replace(nil),
		"a child cut short":          replace(second[:len(second)-1]),
		"a child with a wrong level": replace(edited(second, func(b []byte) { b[2] = 1 })),
		"another number of entries":  replace(vnode(file("5000"))),
		"another size":               replace(edited(second, func(b []byte) { b[32]++ })),
		"another first name":         replace(vnode(file("4999"), file("6000"))),
		"itself":                     build(func(n map[Hash][]byte, rs []refRecord) []refRecord { copy(rs[1].fixed, hashBytes(99)); return rs }),
		"order across nodes": build(func(n map[Hash][]byte, rs []refRecord) []refRecord {
			n[Hash{1}] = vnode(append(manyFiles(60, 4), file("5500"))...)
			return []refRecord{below(Hash{1}, n[Hash{1}]), rs[1]}
		}),
		"a name in two nodes": build(func(n map[Hash][]byte, rs []refRecord) []refRecord {
			n[Hash{1}] = vnode(append(manyFiles(60, 4), file("5000"))...)
			return []refRecord{below(Hash{1}, n[Hash{1}]), rs[1]}
		}),
		"level skipped": func() hostileTree {
			nodes := map[Hash][]byte{{1}: first, {2}: second, {3}: inner()}
			nodes[Hash{99}] = index('D', 2, below(Hash{1}, first), below(Hash{3}, inner()))
			return hostileTree{&trusting{nodes: nodes}, Hash{99}}
		}(),
		"an inner node is itself": func() hostileTree {
			nodes := map[Hash][]byte{{1}: first, {3}: inner()}
			copy(nodes[Hash{3}][headerSize:], hashBytes(3))
			nodes[Hash{99}] = index('D', 2, below(Hash{3}, inner()))
			return hostileTree{&trusting{nodes: nodes}, Hash{99}}
		}(),
	}
}

// walkAll reads a directory in every way there is.
func walkAll(r Reader, h Hash) error {
	d, err := OpenDir(r, &h)
	if err != nil {
		return err
	}
	var e Entry
	var errs []error
	note := func(err error) {
		if err != nil && err != ErrNotFound {
			errs = append(errs, err)
		}
	}
	for _, name := range []string{"", "0", "0030", "5000", "5500", "6000", "7000"} {
		_, err := d.Lookup([]byte(name), &e)
		note(err)
		c := d.SeekName([]byte(name))
		_, err = c.Next(&e)
		note(err)
	}
	for ord := uint64(0); ord < min(d.Len(), 100)+2; ord += 3 {
		note(d.At(ord, &e))
	}
	note(d.At(1<<63, &e))
	c := d.Seek(0)
	c.LeavesAhead(c.DirsAhead(d.NodeHashes(nil)))
	for {
		ok, err := c.Next(&e)
		note(err)
		if !ok {
			break
		}
	}
	note(CheckDir(r, &h))
	note(Diff(r, Hash{}, h, func(DiffEntry) error { return nil }))
	note(Diff(r, h, emptyHash(), func(DiffEntry) error { return nil }))
	for _, name := range []string{"0001", "3000", "5000", "9"} {
		_, _, err = Apply(r, discard{}, h, asGiven([]Change{setFile(name, "new")}))
		note(err)
		_, _, err = Apply(r, discard{}, h, asGiven([]Change{remove(name)}))
		note(err)
	}
	return errors.Join(errs...)
}

func TestHostileTrees(t *testing.T) {
	for name, tree := range hostileTrees() {
		tree.r.nodes[emptyHash()] = emptyBytes()
		err := walkAll(tree.r, tree.root)
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: reading gives %v", name, err)
		}
		var e Entry
		d, err := OpenDir(tree.r, &tree.root)
		if err != nil {
			t.Errorf("%s: the root by itself: %v", name, err)
			continue
		}
		c := d.Seek(0)
		for err = nil; err == nil; {
			var ok bool
			if ok, err = c.Next(&e); !ok {
				break
			}
		}
		if !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: listing gives %v", name, err)
		}
		if _, again := c.Next(&e); again != err {
			t.Errorf("%s: after the error Next gives %v", name, again)
		}
		if err := CheckDir(tree.r, &tree.root); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: CheckDir gives %v", name, err)
		}
	}
}

func hashBytes(b byte) []byte { h := Hash{b}; return h[:] }

func emptyHash() Hash    { h, _ := EmptyDir(); return h }
func emptyBytes() []byte { _, b := EmptyDir(); return b }

// TestHostileNodesDoNotPanic reads nodes that Check would refuse, as the root
// and as a child.
func TestHostileNodesDoNotPanic(t *testing.T) {
	for name, b := range hostileNodes() {
		nodes := map[Hash][]byte{{1}: b, emptyHash(): emptyBytes()}
		if err := walkAll(&trusting{nodes: nodes}, Hash{1}); err != nil && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrMissing) && !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
		_ = Children(&Hash{1}, b, func(c Child) error { return c.Verify(b) })
		if len(b) < headerSize {
			continue
		}
		child := edited(b, func(b []byte) { b[0], b[2] = 'V', 0 })
		n, fault := parseNode(child)
		if fault != "" || n.count == 0 {
			continue
		}
		if _, ok := n.firstName(); !ok {
			continue
		}
		nodes = map[Hash][]byte{{2}: child, {1}: index('D', 1, below(Hash{2}, child)), emptyHash(): emptyBytes()}
		_ = walkAll(&trusting{nodes: nodes}, Hash{1})
	}
}

// TestWrongCutIsFound: a tree that holds the right entries in the wrong nodes.
func TestWrongCutIsFound(t *testing.T) {
	rs := manyFiles(300, 4)
	starts := append(refStarts(0, rs), len(rs))
	for name, at := range map[string][]int{
		"right":          starts,
		"one more node":  slices.Sorted(slices.Values(append(slices.Clone(starts), starts[1]+1))),
		"one node less":  slices.Delete(slices.Clone(starts), 1, 2),
		"a node shifted": slices.Concat(starts[:1], []int{starts[1] + 1}, starts[2:]),
	} {
		nodes := map[Hash][]byte{}
		var up []refRecord
		for i := range at[:len(at)-1] {
			b := vnode(rs[at[i]:at[i+1]]...)
			h := NodeHash(b)
			nodes[h] = b
			up = append(up, below(h, b))
		}
		b := index('D', 1, up...)
		h := NodeHash(b)
		nodes[h] = b
		m := &MemStore{nodes: nodes}
		err := CheckDir(m, &h)
		if name == "right" && err != nil || name != "right" && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// A small directory must be one node.
	small := vnode(file("a"), file("b"))
	h := NodeHash(small)
	b := index('D', 1, below(h, small))
	root := NodeHash(b)
	m := &MemStore{nodes: map[Hash][]byte{h: small, root: b}}
	if err := CheckDir(m, &root); !errors.Is(err, ErrCorrupt) {
		t.Errorf("small directory in two nodes: %v", err)
	}
}

// TestCyclesEnd: directories that contain themselves, which no store with
// verified names can hold.
func TestCyclesEnd(t *testing.T) {
	cycle := func(perm uint16) []byte {
		e := Entry{Name: []byte("d"), Kind: KindDir, Perm: perm, Hash: Hash{byte(perm)}}
		return leaf(refEntry(e))
	}
	r := &trusting{nodes: map[Hash][]byte{{1}: cycle(1), {2}: cycle(2)}}
	if err := Diff(r, Hash{1}, Hash{}, func(DiffEntry) error { return nil }); !errors.Is(err, ErrTooDeep) {
		t.Errorf("removed cycle: %v", err)
	}
	if err := Diff(r, Hash{1}, Hash{2}, func(DiffEntry) error { return nil }); !errors.Is(err, ErrTooDeep) {
		t.Errorf("two cycles: %v", err)
	}
}

func TestChildren(t *testing.T) {
	for _, b := range goodNodes(t) {
		h := NodeHash(b)
		var refs, want int
		for at := 0; at+HashSize <= len(b) && KindOf(b) == NodeCommit; at++ {
			if bytes.Equal(b[at:at+HashSize], append([]byte{7}, make([]byte, 31)...)) {
				want++
			}
		}
		if err := Children(&h, b, func(c Child) error {
			if c.Hash.IsZero() || c.Kind == ChildNode && c.Node == 0 || c.Kind == ChildContent && c.Node != 0 {
				t.Fatalf("child %+v", c)
			}
			if c.Kind == ChildNode && c.Node == NodeAttrs && KindOf(b) == NodeCommit {
				refs++
			}
			if !bytes.Contains(b, c.Hash[:]) || !bytes.Contains(b, c.Name) {
				t.Fatalf("child %+v is not in the node", c)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if refs != want {
			t.Fatalf("%d attributes of a commit's root, want %d", refs, want)
		}
	}
	var got []string
	b := mustCommit()
	h := NodeHash(b)
	if err := Children(&h, b, func(c Child) error {
		got = append(got, fmt.Sprint(c.Node, c.Hash[0]))
		return nil
	}); err != nil || !slices.Equal(got, []string{"Dir 1", "Attrs 7", "Commit 8", "Commit 9"}) {
		t.Errorf("children of a commit: %v, %v", got, err)
	}
	all := leaf(
		refEntry(Entry{Name: []byte("a"), Kind: KindFile, Hash: Hash{1}, Size: 5, Attrs: Hash{2}}),
		refEntry(Entry{Name: []byte("b"), Kind: KindDir, Hash: Hash{3}, Files: 6, Dirs: 7, Size: 8, Attrs: Hash{4}}),
		refEntry(Entry{Name: []byte("c"), Kind: KindSymlink, Size: 1, Target: []byte("t")}),
		refEntry(Entry{Name: []byte("d"), Kind: KindSymlink, Size: 200, Hash: Hash{5}}),
	)
	got = nil
	if err := Children(&h, all, func(c Child) error {
		got = append(got, fmt.Sprintf("%s %s %d %v %d %d %v", c.Name, c.Entry.Name, c.Kind, c.Node, c.Hash[0], c.Size, c.Totals))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if want := []string{
		"a a 2 no node 1 5 {0 0 0}", "a a 1 Attrs 2 0 {0 0 0}", "b b 1 Dir 3 0 {6 7 8}", "b b 1 Attrs 4 0 {0 0 0}", "d d 2 no node 5 200 {0 0 0}",
	}; !slices.Equal(got, want) {
		t.Errorf("children: %q, want %q", got, want)
	}
	stop := errors.New("stop")
	for _, b := range [][]byte{b, all} {
		if err := Children(&h, b, func(Child) error { return stop }); err != stop {
			t.Errorf("stopping: %v", err)
		}
	}
}

func TestChildVerify(t *testing.T) {
	leafNode := vnode(manyFiles(60, 4)...)
	root := index('D', 1, below(Hash{1}, leafNode))
	dir := leaf(file("a"))
	parent := leaf(refEntry(Entry{Name: []byte("d"), Kind: KindDir, Hash: Hash{1}, Files: 1, Size: 1}))
	commit := sampleCommit()
	commit.Totals = Totals{Files: 1, Bytes: 1}
	commit.RootAttrs, commit.Parents = Hash{}, nil
	cb, err := commit.Encode()
	if err != nil {
		t.Fatal(err)
	}
	put := func(b []byte, at int, v byte) []byte { return edited(b, func(b []byte) { b[at] = v }) }
	for name, c := range map[string]struct {
		parent, child []byte
		ok            bool
	}{
		"VNode":               {root, leafNode, true},
		"VNode wrong level":   {root, put(leafNode, 2, 1), false},
		"VNode wrong entries": {root, put(leafNode, 8, 1), false},
		"VNode wrong files":   {root, put(leafNode, 16, 1), false},
		"VNode wrong bytes":   {root, put(leafNode, 32, 1), false},
		"VNode wrong name":    {root, vnode(append([]refRecord{file("#")}, manyFiles(60, 4)[1:]...)...), false},
		"VNode is a Dir":      {root, put(leafNode, 0, 'D'), false},
		"Dir":                 {parent, dir, true},
		"Dir is a VNode":      {parent, put(dir, 0, 'V'), false},
		"Dir wrong totals":    {parent, leaf(file("a"), file("b")), false},
		"Dir is a commit":     {parent, mustCommit(), false},
		"tree":                {cb, dir, true},
		"tree wrong totals":   {cb, leaf(), false},
		"content":             {dir, dir, false},
	} {
		h := NodeHash(c.parent)
		err := Children(&h, c.parent, func(ch Child) error { return ch.Verify(c.child) })
		if c.ok && err != nil || !c.ok && !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
