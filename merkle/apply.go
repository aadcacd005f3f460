package merkle

import (
	"bytes"
	"fmt"
	"iter"
)

// MaxDepth is how many directories deep a path that Apply and Diff accept may
// lead. Linux can name half as many in one path.
const MaxDepth = 4096

// Op says what a Change does.
type Op uint8

const (
	// OpSet puts Entry at the path in place of whatever stands there. A
	// directory with a zero Hash is a fresh, empty one with the Perm, Mtime
	// and Attrs of Entry; one with a Hash is that Dir node, which must be
	// readable, with all below it. Changes below a directory that was set
	// may follow.
	OpSet Op = iota + 1

	// OpMeta sets Perm, Mtime and Attrs of a directory and keeps its
	// entries. What is no directory becomes an empty one.
	OpMeta

	// OpRemove removes the path and everything below it. That there is
	// nothing is no error, also when its directory is not there.
	OpRemove
)

// Change is one edit of a tree. Path is relative, "a/b/c", without a leading
// slash. Entry.Name is ignored, and so are the totals of a directory. All
// slices are read before the next change is pulled and not kept.
type Change struct {
	Path  []byte
	Op    Op
	Entry Entry
}

// Apply makes the changes on the tree whose root is the Dir node base (zero:
// the empty directory), writes all nodes that are new to w, and returns the
// root of the result with its totals. The root depends on the resulting
// entries alone, not on how they came about. Without changes it is base.
//
// Changes come in the order of ComparePaths, one per path, otherwise the error
// matches ErrUnsorted. A change below what is no directory gives ErrNoParent,
// a path with a name that CheckName refuses ErrBadName, an Entry with fields
// out of range ErrBadEntry, more than MaxDepth components ErrTooDeep; each of
// these names the path. An error of the sequence is returned as it is.
//
// r must be a stable snapshot, whose lent bytes stay valid until Apply
// returns; what is written to w need not be visible in it. Nodes may have been
// written when an error is returned; nothing refers to them. Memory is bounded
// by about 64 KiB for each directory on the way down to one change, whatever
// the size of the tree or the number of changes.
func Apply(r Reader, w Writer, base Hash, changes iter.Seq2[Change, error]) (Hash, Totals, error) {
	next, stop := iter.Pull2(changes)
	defer stop()
	a := newApplier(r, w)
	a.src.pull = next
	first, err := a.src.peek()
	if err != nil {
		return Hash{}, Totals{}, err
	}
	if first == nil && !base.IsZero() && base != a.empty {
		d, err := OpenDir(r, &base)
		return base, d.Totals(), err
	}
	return a.dir(base)
}

// source is the sequence of changes with one change of lookahead.
type source struct {
	pull func() (Change, error, bool)
	cur  Change
	have bool
	end  bool
	last []byte // path of the change before
}

// peek returns the next change, or nil at the end. The change stays valid
// until peek is called after consume.
func (s *source) peek() (*Change, error) {
	if s.have || s.end {
		if s.end {
			return nil, nil
		}
		return &s.cur, nil
	}
	c, err, ok := s.pull()
	if err != nil {
		return nil, err
	}
	if !ok {
		s.end = true
		return nil, nil
	}
	if err := checkPath(c.Path); err != nil {
		return nil, err
	}
	if len(s.last) > 0 && ComparePaths(s.last, c.Path) >= 0 {
		return nil, fmt.Errorf("%q after %q: %w", c.Path, s.last, ErrUnsorted)
	}
	s.last = append(s.last[:0], c.Path...)
	s.cur, s.have = c, true
	return &s.cur, nil
}

func (s *source) consume() { s.have = false }

func checkPath(path []byte) error {
	depth := 0
	for rest := path; ; depth++ {
		name, after, more := bytes.Cut(rest, []byte{'/'})
		if fault := nameFault(name); fault != "" {
			return fmt.Errorf("%q: %w %q: %s", path, ErrBadName, name, fault)
		}
		if !more {
			break
		}
		rest = after
	}
	if depth >= MaxDepth {
		return fmt.Errorf("%.300q…: %w", path, ErrTooDeep)
	}
	return nil
}

// applier is the state of one Apply.
type applier struct {
	r     Reader
	w     Writer
	src   source
	path  []byte // the directory being changed, each component followed by a slash
	empty Hash
	names nameHasher
	node  []byte // where nodes are encoded

	freeLevels []*level
	freeDirs   []*dirEdits
}

func newApplier(r Reader, w Writer) *applier {
	a := &applier{r: r, w: w}
	a.empty, _ = EmptyDir()
	a.names.p = newHashing()
	return a
}

// dirPath returns the path of the directory being changed, for errors.
func (a *applier) dirPath() []byte { return bytes.TrimSuffix(a.path, []byte{'/'}) }

// put writes a node.
func (a *applier) put(h Hash, b []byte) error {
	if err := a.w.PutNode(h, b); err != nil {
		return fmt.Errorf("writing directory %q: %w", a.dirPath(), err)
	}
	return nil
}

// dir makes the changes whose paths begin with a.path on the directory base.
func (a *applier) dir(base Hash) (Hash, Totals, error) {
	if base == a.empty {
		base = Hash{} // it need not be in the store
	}
	var root node
	if !base.IsZero() {
		var err error
		if root, err = openRoot(a.r, &base); err != nil {
			return Hash{}, Totals{}, err
		}
	}
	d := a.newDirEdits(base, root)
	h, t, err := a.tree(base, root, d.next)
	a.freeDirs = append(a.freeDirs, d)
	return h, t, err
}

// tree makes the edits that pull gives on the search tree with that root.
func (a *applier) tree(base Hash, root node, pull func() (*edit, error)) (Hash, Totals, error) {
	l := a.newLevel(nil, pull, base, root)
	for l.k < root.level {
		l = a.newLevel(l, l.next, base, root)
	}
	for {
		fits, err := l.gather()
		if err != nil {
			return Hash{}, Totals{}, err
		}
		if fits {
			break
		}
		if l.k+1 == maxLevels {
			return Hash{}, Totals{}, fmt.Errorf("directory %q: %w", a.dirPath(), ErrTooLarge)
		}
		l = a.newLevel(l, l.next, base, root)
	}
	defer a.release(l)
	if !l.edited && !base.IsZero() {
		return base, root.totals(), nil
	}
	return a.root(l, base)
}

// root finds the lowest level that fits one node, from top downwards, and
// writes that node and what was held back below it.
func (a *applier) root(top *level, base Hash) (Hash, Totals, error) {
	for top.below != nil {
		fits, err := top.collapse()
		if err != nil {
			return Hash{}, Totals{}, err
		}
		if !fits {
			break
		}
		top = top.below
	}
	for l := top.below; l != nil; l = l.below {
		if err := l.flush(); err != nil {
			return Hash{}, Totals{}, err
		}
	}
	b, _, t, err := top.b.node(a.node[:0], kindDir, top.b.n)
	a.node = b
	if err != nil {
		return Hash{}, Totals{}, fmt.Errorf("directory %q: %w", a.dirPath(), err)
	}
	h := NodeHash(b)
	if h != base {
		err = a.put(h, b)
	}
	return h, t, err
}

// newLevel returns the level above below, over the old tree with that root.
func (a *applier) newLevel(below *level, pull func() (*edit, error), base Hash, root node) *level {
	var l *level
	if n := len(a.freeLevels); n > 0 {
		l, a.freeLevels = a.freeLevels[n-1], a.freeLevels[:n-1]
	} else {
		l = &level{a: a}
		l.b.names = &a.names
	}
	l.below, l.pull, l.k = below, pull, 0
	if below != nil {
		l.k = below.k + 1
	}
	if root.b != nil && l.k <= root.level {
		l.old.start(a.r, root, base, l.k)
	} else {
		l.old = walk{top: l.k, stop: l.k}
	}
	return l
}

// release keeps the levels from top down for other directories.
func (a *applier) release(top *level) {
	for l := top; l != nil; l = l.below {
		l.cur, l.have, l.open, l.done, l.edited, l.over = nil, false, false, false, false, false
		l.out, l.outAt = l.out[:0], 0
		l.held, l.heldSize = l.held[:0], 0
		a.freeLevels = append(a.freeLevels, l)
	}
}

// collapse takes the records of the level below into its builder when they all
// fit one node, after much was removed. It reads few nodes: one that is neither
// the first nor the last of a level has more than 20 records.
func (l *level) collapse() (fits bool, err error) {
	below := l.below
	if below.over {
		return false, nil
	}
	nodes, size := make([]node, 0, 16), headerSize
	for i := 0; i < l.b.n; i++ {
		n, err := l.child(i)
		if err != nil {
			return false, err
		}
		if size += len(n.b) - headerSize; size > rootLimit {
			return false, nil
		}
		nodes = append(nodes, n)
	}
	below.b.reset(below.k, false)
	for _, n := range nodes {
		for i := 0; i < n.count; i++ {
			item, ok := n.item(i)
			if !ok {
				return false, corrupt(n.h, "heap out of bounds")
			}
			if !below.b.add(n.record(i), item, nil) {
				return false, corrupt(n.h, "its names are not in order with those of the nodes before")
			}
		}
	}
	return true, nil
}

// child returns the node below record i, held back or read.
func (l *level) child(i int) (node, error) {
	h := (*Hash)(l.b.record(i))
	for _, held := range l.below.held {
		if held.hash == *h {
			n, _ := parseNode(held.bytes)
			n.h = h
			return n, nil
		}
	}
	b, err := l.a.r.Node(h)
	if err != nil {
		return node{}, err
	}
	n, fault := parseNode(b)
	if fault == "" && (b[0] != kindVNode || n.level != l.below.k ||
		!bytes.Equal(b[offEntries:headerSize], l.b.record(i)[32:64])) {
		fault = "not what its parent records"
	}
	if fault != "" {
		return node{}, corrupt(h, fault)
	}
	n.h = h
	return n, nil
}
