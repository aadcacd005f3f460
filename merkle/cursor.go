package merkle

// Cursor steps through the entries of a directory in the order of their names.
// It is a value; a copy steps on its own. It points to one node per level of
// the search tree and so takes less than 1 KiB whatever the directory's size.
type Cursor struct {
	w    walk
	ord  uint64
	end  bool
	fail error
}

// Seek returns a cursor before the entry with that ordinal, or at the end when
// there are not so many. It reads one node per level; an error is returned by
// the first Next. It does not allocate.
func (d *Dir) Seek(ordinal uint64) Cursor {
	c := Cursor{ord: min(ordinal, d.Len())}
	if ordinal >= d.Len() {
		c.end = true
		return c
	}
	c.w.start(d.r, d.root, d.hash, 0)
	for l := c.w.top; l > 0; l-- {
		f := &c.w.f[l]
		for f.i < f.n.count && ordinal >= f.n.below(f.i) {
			ordinal -= f.n.below(f.i)
			f.i++
		}
		if f.i == f.n.count {
			c.fail = c.w.fail(l, "fewer entries than its header says")
			return c
		}
		if c.fail = c.w.load(l); c.fail != nil {
			return c
		}
	}
	f := c.w.at()
	if ordinal >= uint64(f.n.count) {
		c.fail = c.w.fail(0, "fewer entries than its header says")
		return c
	}
	f.i = int(ordinal)
	return c
}

// SeekName returns a cursor before the first entry whose name is not before
// name. It reads one node per level; an error is returned by the first Next.
// It does not allocate.
func (d *Dir) SeekName(name []byte) Cursor {
	var c Cursor
	if d.Len() == 0 {
		c.end = true
		return c
	}
	c.w.start(d.r, d.root, d.hash, 0)
	if c.fail = c.w.seekName(name, false); c.fail != nil {
		return c
	}
	for l := c.w.top; l > 0; l-- {
		c.ord += c.w.f[l].n.entriesBefore(c.w.f[l].i)
	}
	c.ord += uint64(c.w.f[0].i)
	return c
}

// Ordinal returns the ordinal of the entry that Next will return: the number
// of entries before it.
func (c *Cursor) Ordinal() uint64 { return c.ord }

// Next decodes the next entry into e. It reports false at the end or with an
// error; the cursor does not move past an error. It does not allocate.
func (c *Cursor) Next(e *Entry) (bool, error) {
	if c.fail != nil || c.end {
		return false, c.fail
	}
	f := c.w.at()
	for f.i >= f.n.count {
		more, err := c.w.next()
		if err != nil || !more {
			c.fail, c.end = err, true
			return false, err
		}
	}
	if fault := f.n.entry(f.i, e); fault != "" {
		c.fail = c.w.fail(0, fault)
		return false, c.fail
	}
	f.i++
	c.ord++
	return true, nil
}

// LeavesAhead appends to dst the names of the nodes that the cursor will read
// after the current one, as far as the index node above it knows them (about
// 40), for reading ahead.
func (c *Cursor) LeavesAhead(dst []Hash) []Hash {
	if c.end || c.fail != nil || c.w.top == 0 {
		return dst
	}
	f := &c.w.f[1]
	for i := f.i + 1; i < f.n.count; i++ {
		dst = append(dst, *f.n.hash(i))
	}
	return dst
}

// DirsAhead appends to dst the names of the Dir nodes of the subdirectories
// that follow in the current node, for reading ahead.
func (c *Cursor) DirsAhead(dst []Hash) []Hash {
	if c.end || c.fail != nil {
		return dst
	}
	f := c.w.at()
	for i := f.i; i < f.n.count; i++ {
		if Kind(le.Uint16(f.n.record(i)[offMode:])>>modeShift) == KindDir {
			dst = append(dst, *f.n.hash(i))
		}
	}
	return dst
}
