package merkle

import (
	"bytes"
	"fmt"
)

// edit says: the old records whose names are at least lo and before hi (nil:
// all that follow) give way to one record, or to none. Its bytes are valid
// until the next edit is pulled.
type edit struct {
	lo, hi []byte
	has    bool   // there is a record
	fixed  []byte // its fixed part, heap end not set
	item   []byte // its heap item
	name   []byte // its name, inside item
}

// level is one stage of Apply's pipeline for one directory. It pulls edits of
// the records of one level, in the order of names, merges them with the old
// records, cuts the result into nodes, and hands out edits of the records of
// the level above. Old nodes far from an edit are neither read nor written:
// work is done in regions. A region begins at an old boundary that the edits
// cannot move and ends at the next one where old and new nodes agree again.
//
// The level at which the old tree has its root, and those above it, have no old
// boundaries; there the whole level is one region, and it is cut at all only
// when it does not fit one node.
type level struct {
	a     *applier
	pull  func() (*edit, error)
	below *level
	k     int

	cur  *edit // pulled, not consumed
	have bool

	old    walk
	open   bool // a region is open
	done   bool // no edits are left and everything is handed out
	edited bool // at least one edit was consumed
	lo     []byte
	count  int // nodes handed out in this region
	since  int // old records passed since names last differed
	b      builder

	out   []edit
	outAt int

	// New nodes are held back, not written, until it is sure that the level
	// does not fit the root: small directories leave no garbage.
	held     []heldNode
	heldSize int
	over     bool // the level does not fit one node
}

type heldNode struct {
	hash  Hash
	bytes []byte
}

// peek returns the next edit, or nil when there is none.
func (l *level) peek() (*edit, error) {
	if !l.have {
		e, err := l.pull()
		if err != nil {
			return nil, err
		}
		l.cur, l.have = e, true
	}
	return l.cur, nil
}

// consume makes peek pull another edit.
func (l *level) consume() {
	l.have = l.cur == nil // the end stays the end
}

// next hands out an edit of the level above, or nil at the end.
func (l *level) next() (*edit, error) {
	for l.outAt == len(l.out) {
		l.out, l.outAt = l.out[:0], 0
		if l.done {
			return nil, nil
		}
		if err := l.step(); err != nil {
			return nil, err
		}
	}
	l.outAt++
	return &l.out[l.outAt-1], nil
}

func (l *level) step() error {
	if !l.open {
		return l.openRegion()
	}
	end, err := l.advance()
	if err != nil {
		return err
	}
	if end {
		return l.closeRegion(nil, atEnd)
	}
	return nil
}

// gather merges all edits of a level without old boundaries and reports
// whether its records fit the root. If not, next goes on from there.
func (l *level) gather() (fits bool, err error) {
	l.begin(nil, false)
	for !l.b.cutting {
		end, err := l.advance()
		if err != nil || end {
			return true, err
		}
	}
	return false, nil
}

// advance moves an open region on by one old record or one edit. It reports
// true when neither is left.
func (l *level) advance() (end bool, err error) {
	e, err := l.peek()
	if err != nil {
		return false, err
	}
	f := l.old.at()
	if f.i >= f.n.count {
		if closed, err := l.tryClose(e); err != nil || closed {
			return false, err
		}
		more, err := l.old.next()
		if err != nil || more {
			return false, err
		}
		if e == nil {
			return true, nil
		}
		return false, l.apply(e)
	}
	name, ok := f.n.name(f.i)
	if !ok {
		return false, l.old.fail(l.k, "heap out of bounds")
	}
	if e != nil && bytes.Compare(name, e.lo) >= 0 {
		return false, l.apply(e)
	}
	return false, l.copyOld()
}

// copyOld takes the old record that the region stands at.
func (l *level) copyOld() error {
	f := l.old.at()
	item, ok := f.n.item(f.i)
	if !ok {
		return l.old.fail(l.k, "heap out of bounds")
	}
	var first *Hash
	if f.i == 0 {
		first = f.n.h
	}
	rec := f.n.record(f.i)
	f.i++
	l.since++
	return l.add(rec, item, first)
}

// apply drops the old records that an edit covers and adds its own.
func (l *level) apply(e *edit) error {
	dropped, replaced, first, err := l.dropOld(e)
	if err != nil {
		return err
	}
	if replaced && dropped == 1 {
		l.since++ // only its value changed
	} else if e.has || dropped > 0 {
		l.since = 0
	}
	l.edited = true
	if e.has {
		if err := l.add(e.fixed, e.item, first); err != nil {
			return err
		}
	}
	l.consume()
	return nil
}

// dropOld passes over the old records that an edit covers and returns how many
// there were, whether the edit's own was among them, and if so and it was the
// first of an old node, that node.
func (l *level) dropOld(e *edit) (dropped int, replaced bool, first *Hash, err error) {
	for {
		name, loaded, err := l.peekOld()
		if err != nil {
			return 0, false, nil, err
		}
		if name == nil || e.hi != nil && bytes.Compare(name, e.hi) >= 0 {
			return dropped, replaced, first, nil
		}
		if !loaded {
			if _, err := l.old.next(); err != nil {
				return 0, false, nil, err
			}
			continue
		}
		f := l.old.at()
		if e.has && bytes.Equal(name, e.name) {
			replaced = true
			if f.i == 0 {
				first = f.n.h
			}
		}
		f.i++
		dropped++
	}
}

// peekOld returns the name of the old record that comes next, nil at the end,
// and whether its node is loaded.
func (l *level) peekOld() (name []byte, loaded bool, err error) {
	f := l.old.at()
	if f.i >= f.n.count {
		name, err = l.old.nextFirst()
		return name, false, err
	}
	name, ok := f.n.name(f.i)
	if !ok {
		err = l.old.fail(l.k, "heap out of bounds")
	}
	return name, true, err
}

// add adds a record to the new level and hands out what that completes.
func (l *level) add(fixed, item []byte, first *Hash) error {
	if !l.b.add(fixed, item, first) {
		return l.old.fail(l.k, "its names are not in order with those of the nodes before")
	}
	if !l.b.cutting {
		if l.b.size() > rootLimit {
			l.over = true
			l.b.startCutting()
		}
		return nil
	}
	for {
		m := l.b.cut(open)
		if m == 0 {
			return nil
		}
		if err := l.emit(m, l.b.name(m)); err != nil {
			return err
		}
	}
}

// newOut makes room for an edit that is handed out and sets its range.
func (l *level) newOut(hi []byte) *edit {
	if len(l.out) < cap(l.out) {
		l.out = l.out[:len(l.out)+1]
	} else {
		l.out = append(l.out, edit{})
	}
	e := &l.out[len(l.out)-1]
	e.lo = append(e.lo[:0], l.lo...)
	l.lo = append(l.lo[:0], hi...)
	if hi == nil {
		e.hi = nil
	} else {
		e.hi = append(e.hi[:0], hi...)
	}
	l.count++
	return e
}

// emit encodes the first m records of the builder as a node that ends before
// hi, keeps it, and hands out its record.
func (l *level) emit(m int, hi []byte) error {
	b, entries, t, err := l.b.node(l.a.node[:0], kindVNode, m)
	l.a.node = b
	if err != nil {
		return fmt.Errorf("directory %q: %w", l.a.dirPath(), err)
	}
	h := NodeHash(b)
	e := l.newOut(hi)
	e.has = true
	e.fixed = appendIndex(e.fixed[:0], h, entries, t)
	e.item = append(e.item[:0], l.b.name(0)...)
	e.name = e.item
	first := l.b.firsts[0]
	l.b.drop(m)
	if first != nil && *first == h {
		return nil
	}
	return l.keep(h, b)
}

// keep holds a new node back or, once the level is known to exceed the root,
// writes it.
func (l *level) keep(h Hash, b []byte) error {
	if l.over {
		return l.a.put(h, b)
	}
	l.held = append(l.held, heldNode{h, bytes.Clone(b)})
	if l.heldSize += len(b) - headerSize; l.heldSize > rootLimit-headerSize {
		l.over = true
		return l.flush()
	}
	return nil
}

// flush writes the nodes held back.
func (l *level) flush() error {
	for _, n := range l.held {
		if err := l.a.put(n.hash, n.bytes); err != nil {
			return err
		}
	}
	l.held, l.heldSize = l.held[:0], 0
	return nil
}
