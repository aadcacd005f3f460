package merkle

import "bytes"

// NodeKind is the kind of a node.
type NodeKind uint8

// The kinds of node; 0 stands for bytes that are none.
const (
	NodeCommit NodeKind = iota + 1
	NodeDir
	NodeVNode
	NodeAttrs
)

// String returns the name of the kind as docs/FORMAT.md has it.
func (k NodeKind) String() string {
	switch k {
	case NodeCommit:
		return "Commit"
	case NodeDir:
		return "Dir"
	case NodeVNode:
		return "VNode"
	case NodeAttrs:
		return "Attrs"
	}
	return "no node"
}

// KindOf returns the kind that the bytes of a node claim by their first byte,
// or 0.
func KindOf(b []byte) NodeKind {
	if len(b) == 0 {
		return 0
	}
	switch b[0] {
	case kindCommit:
		return NodeCommit
	case kindDir:
		return NodeDir
	case kindVNode:
		return NodeVNode
	case kindAttrs:
		return NodeAttrs
	}
	return 0
}

// Check verifies that b is the canonical encoding of one node and returns its
// kind: every field in range, names valid and strictly sorted, totals equal to
// the sums of the records, not a byte left over; encoding what b says would
// give b. It does not compute the name of b; *h is used for the error alone,
// which matches ErrCorrupt. A node that passes is safe to decode, but whether
// its children are what it says only they can show: see Child.Verify and
// CheckDir. Check of a Dir, VNode or Attrs does not allocate.
func Check(h *Hash, b []byte) (NodeKind, error) {
	var fault string
	kind := KindOf(b)
	switch kind {
	case NodeDir, NodeVNode:
		fault = checkNode(b)
	case NodeCommit:
		_, fault = decodeCommit(b)
	case NodeAttrs:
		fault = checkAttrs(b)
	default:
		fault = "of no known kind"
	}
	if fault != "" {
		return 0, corrupt(h, fault)
	}
	return kind, nil
}

// checkNode returns what is wrong with a Dir or VNode, or "".
func checkNode(b []byte) string {
	n, fault := parseNode(b)
	switch {
	case fault != "":
		return fault
	case b[3] != 0:
		return "reserved byte is not zero"
	case b[0] == kindDir && len(b) > rootLimit:
		return "a Dir over 8176 bytes"
	case b[0] == kindDir && n.count == 0 && n.level > 0:
		return "an index without records"
	case b[0] == kindVNode && n.count > maxRun:
		return "a VNode of more than 160 records"
	case b[0] == kindVNode && n.count == 0:
		return "a VNode without records"
	}
	if fault := n.checkRecords(); fault != "" {
		return fault
	}
	entries, t, fault := n.sum()
	if fault != "" {
		return fault
	}
	if entries != n.entries() || t != n.totals() {
		return "totals are not the sums of its records"
	}
	return ""
}

// checkRecords looks at each record, and at the order of their names.
func (n *node) checkRecords() string {
	var last []byte
	end := 0
	for i := 0; i < n.count; i++ {
		name, ok := n.name(i)
		if !ok {
			return "heap out of bounds, or a record without name"
		}
		if fault := nameFault(name); fault != "" {
			return "a name is invalid: " + fault
		}
		if i > 0 && bytes.Compare(last, name) >= 0 {
			return "names not sorted, or one twice"
		}
		last = name
		end = n.heapEnd(i)
		var fault string
		if n.level == 0 {
			fault = n.checkEntry(i)
		} else {
			fault = n.checkIndex(i)
		}
		if fault != "" {
			return fault
		}
	}
	if len(n.b) != headerSize+n.count*n.recordSize()+end {
		return "bytes after the last record"
	}
	return ""
}

func (n *node) checkEntry(i int) string {
	var e Entry
	if fault := n.entry(i, &e); fault != "" {
		return fault
	}
	rec := n.record(i)
	if le.Uint16(rec[offMode:]) != uint16(e.Kind)<<modeShift|e.Perm {
		return "mode has unknown bits"
	}
	if rec[offFlags]&^flagAttrs != 0 {
		return "unknown flags"
	}
	if (rec[offFlags]&flagAttrs != 0) == e.Attrs.IsZero() {
		return "attributes without hash"
	}
	// What entry passes over must not be there.
	item, _ := n.item(i)
	size := len(e.Name) + len(e.Target)
	if e.Kind == KindDir {
		size += 16
	}
	if rec[offFlags]&flagAttrs != 0 {
		size += HashSize
	}
	if size != len(item) {
		return "bytes after an entry"
	}
	return e.fault()
}

func (n *node) checkIndex(i int) string {
	if n.hash(i).IsZero() {
		return "record without child"
	}
	if n.below(i) == 0 {
		return "record of an empty child"
	}
	return ""
}
