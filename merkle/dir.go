package merkle

// Dir reads one directory: a search tree of nodes sorted by the bytes of the
// names. It is a small value and may be copied; it is valid as long as the bytes
// that its Reader lends.
type Dir struct {
	r    Reader
	root node
	hash Hash
}

// OpenDir opens the directory whose Dir node is named *h and reads that node
// alone. The error matches ErrMissing, or ErrCorrupt when *h names another
// kind of node. h is passed on to the Reader; a caller that must not allocate
// keeps the hash where it does not lie on the stack.
func OpenDir(r Reader, h *Hash) (Dir, error) {
	root, err := openRoot(r, h)
	if err != nil {
		return Dir{}, err
	}
	return Dir{r: r, root: root, hash: *h}, nil
}

// Hash returns the name of the Dir node.
func (d *Dir) Hash() Hash { return d.hash }

// Len returns the number of entries.
func (d *Dir) Len() uint64 {
	if d.root.b == nil {
		return 0
	}
	return d.root.entries()
}

// Totals returns what lies below the directory at any depth.
func (d *Dir) Totals() Totals {
	if d.root.b == nil {
		return Totals{}
	}
	return d.root.totals()
}

// fail returns a CorruptError that names n.
func (d *Dir) fail(n *node, fault string) error {
	if n.h != nil {
		return corrupt(n.h, fault)
	}
	return corrupt(&d.hash, fault)
}

// Lookup finds the entry called name, decodes it into e and returns its
// ordinal, the number of entries before it. It reads one node per level. The
// error is ErrNotFound when there is no such entry. It does not allocate.
func (d *Dir) Lookup(name []byte, e *Entry) (ordinal uint64, err error) {
	n := d.root
	for n.level > 0 {
		i, ok := n.childFor(name)
		if !ok || n.count == 0 {
			return 0, d.fail(&n, "heap out of bounds")
		}
		ordinal += n.entriesBefore(i)
		if n, err = openChild(d.r, &n, i); err != nil {
			return 0, err
		}
	}
	i, equal, ok := n.lowerBound(name)
	if !ok {
		return 0, d.fail(&n, "heap out of bounds")
	}
	if !equal {
		return 0, ErrNotFound
	}
	if fault := n.entry(i, e); fault != "" {
		return 0, d.fail(&n, fault)
	}
	return ordinal + uint64(i), nil
}

// At decodes the entry with that ordinal (0 for the first) into e. The error is
// ErrNotFound when there are not so many. It does not allocate.
func (d *Dir) At(ordinal uint64, e *Entry) error {
	if ordinal >= d.Len() {
		return ErrNotFound
	}
	n := d.root
	for n.level > 0 {
		i := 0
		for ; i < n.count && ordinal >= n.below(i); i++ {
			ordinal -= n.below(i)
		}
		if i == n.count {
			return d.fail(&n, "fewer entries than its header says")
		}
		var err error
		if n, err = openChild(d.r, &n, i); err != nil {
			return err
		}
	}
	if ordinal >= uint64(n.count) {
		return d.fail(&n, "fewer entries than its header says")
	}
	if fault := n.entry(int(ordinal), e); fault != "" {
		return d.fail(&n, fault)
	}
	return nil
}

// NodeHashes appends to dst the names of the nodes right below the root of the
// directory's search tree, for reading ahead; none when the directory is a
// single node.
func (d *Dir) NodeHashes(dst []Hash) []Hash {
	if d.root.level == 0 {
		return dst
	}
	for i := 0; i < d.root.count; i++ {
		dst = append(dst, *d.root.hash(i))
	}
	return dst
}
