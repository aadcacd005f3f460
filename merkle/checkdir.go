package merkle

// CheckDir verifies the search tree of the directory *h as a whole, what Check
// cannot see in one node: that every node is what its parent records, that
// names are sorted across nodes, and that nodes are cut where they must be. It
// reads all nodes of this directory and none of its subdirectories. The error
// matches ErrCorrupt or is the Reader's.
func CheckDir(r Reader, h *Hash) error {
	d, err := OpenDir(r, h)
	if err != nil {
		return err
	}
	a := newApplier(r, discard{})
	c := d.Seek(0)
	var e Entry
	var out edit
	var last []byte
	pull := func() (*edit, error) {
		more, err := c.Next(&e)
		if err != nil || !more {
			return nil, err
		}
		if last != nil && string(e.Name) <= string(last) {
			return nil, corrupt(h, "names out of order between its nodes")
		}
		last = append(last[:0], e.Name...)
		out.hi = append(append(out.hi[:0], e.Name...), 0)
		out.lo = out.hi[:len(e.Name)]
		out.has = true
		out.fixed, out.item = appendEntry(out.fixed[:0], out.item[:0], e.Name, &e)
		out.name = out.item[:len(e.Name)]
		return &out, nil
	}
	got, t, err := a.tree(Hash{}, node{}, pull)
	if err != nil {
		return err
	}
	if t != d.Totals() || got != *h {
		return corrupt(h, "its search tree is not cut as its names ask for")
	}
	return nil
}

// discard is a Writer that forgets.
type discard struct{}

func (discard) PutNode(Hash, []byte) error { return nil }
