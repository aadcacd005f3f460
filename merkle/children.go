package merkle

import "bytes"

// ChildKind says in which store a child is to be found.
type ChildKind uint8

// The kinds of child.
const (
	ChildNode    ChildKind = iota + 1 // a node
	ChildContent                      // the content of a file or of a long symlink target
)

// Child is one thing that a node refers to.
type Child struct {
	Hash Hash
	Kind ChildKind
	Node NodeKind // kind of a ChildNode
	Size uint64   // length of a ChildContent in bytes

	// Name is that of the entry, or for a VNode its first name; nil in a
	// Commit. It points into the node.
	Name  []byte
	Entry *Entry // the entry that refers to it, or nil; valid during the call

	Level   int    // of a VNode
	Entries uint64 // of a VNode: entries below it
	Totals  Totals // of a VNode or Dir
}

// Children calls fn for everything that the node b, named *h, refers to, in the
// order in which it stands there: a Commit to its tree, its root's attributes
// and its parents; a Dir or VNode to nodes below it, contents and attributes.
// b must have passed Check. An error of fn ends it and is returned as it is.
func Children(h *Hash, b []byte, fn func(Child) error) error {
	switch KindOf(b) {
	case NodeCommit:
		c, err := DecodeCommit(h, b)
		if err != nil {
			return err
		}
		return c.children(fn)
	case NodeDir, NodeVNode:
		n, fault := parseNode(b)
		if fault != "" {
			return corrupt(h, fault)
		}
		if n.level > 0 {
			return n.indexChildren(h, fn)
		}
		return n.entryChildren(h, fn)
	case NodeAttrs:
		return nil
	}
	return corrupt(h, "of no known kind")
}

func (c *Commit) children(fn func(Child) error) error {
	if err := fn(Child{Hash: c.Tree, Kind: ChildNode, Node: NodeDir, Totals: c.Totals}); err != nil {
		return err
	}
	if !c.RootAttrs.IsZero() {
		if err := fn(Child{Hash: c.RootAttrs, Kind: ChildNode, Node: NodeAttrs}); err != nil {
			return err
		}
	}
	for _, p := range c.Parents {
		if err := fn(Child{Hash: p, Kind: ChildNode, Node: NodeCommit}); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) indexChildren(h *Hash, fn func(Child) error) error {
	for i := 0; i < n.count; i++ {
		name, ok := n.name(i)
		if !ok {
			return corrupt(h, "heap out of bounds")
		}
		rec := n.record(i)
		c := Child{Hash: *n.hash(i), Kind: ChildNode, Node: NodeVNode, Name: name, Level: n.level - 1, Entries: n.below(i)}
		c.Totals = Totals{Files: le.Uint64(rec[40:]), Dirs: le.Uint64(rec[48:]), Bytes: le.Uint64(rec[56:])}
		if err := fn(c); err != nil {
			return err
		}
	}
	return nil
}

func (n *node) entryChildren(h *Hash, fn func(Child) error) error {
	var e Entry
	for i := 0; i < n.count; i++ {
		if fault := n.entry(i, &e); fault != "" {
			return corrupt(h, fault)
		}
		c := Child{Hash: e.Hash, Kind: ChildContent, Size: e.Size, Name: e.Name, Entry: &e}
		if e.Kind == KindDir {
			c.Kind, c.Node, c.Size, c.Totals = ChildNode, NodeDir, 0, e.Totals()
		}
		if !e.Hash.IsZero() {
			if err := fn(c); err != nil {
				return err
			}
		}
		if !e.Attrs.IsZero() {
			if err := fn(Child{Hash: e.Attrs, Kind: ChildNode, Node: NodeAttrs, Name: e.Name, Entry: &e}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Verify compares the node b, which was found under the name of the child, with
// what the parent says of it: its kind and, where the parent records them, its
// level, entries, totals and first name. It does not do what Check does. The
// error matches ErrCorrupt.
func (c *Child) Verify(b []byte) error {
	if c.Kind != ChildNode {
		return corrupt(&c.Hash, "a node where its parent has a content")
	}
	if KindOf(b) != c.Node {
		return corrupt(&c.Hash, "not of the kind that its parent records: a "+KindOf(b).String()+" for a "+c.Node.String())
	}
	if c.Node != NodeDir && c.Node != NodeVNode {
		return nil
	}
	n, fault := parseNode(b)
	switch {
	case fault != "":
	case n.totals() != c.Totals:
		fault = "its totals are not what its parent records"
	case c.Node == NodeVNode && (n.level != c.Level || n.entries() != c.Entries):
		fault = "its level or length is not what its parent records"
	case c.Node == NodeVNode:
		if first, ok := n.firstName(); !ok || !bytes.Equal(first, c.Name) {
			fault = "its first name is not what its parent records"
		}
	}
	if fault != "" {
		return corrupt(&c.Hash, fault)
	}
	return nil
}
