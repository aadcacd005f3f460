package merkle

import "bytes"

// frame is one node on a walk and the record that the walk stands at.
type frame struct {
	n node
	i int
}

// walk is a path from the root of a search tree down to a node of level stop,
// made to move between the nodes of that level. It is a value: a copy moves on
// its own. f[l] holds the node of level l for stop <= l <= top.
type walk struct {
	r    Reader
	hash Hash // name of the root, for errors
	top  int
	stop int
	f    [maxLevels]frame
}

// start puts w at the root; nothing below it is loaded.
func (w *walk) start(r Reader, root node, hash Hash, stop int) {
	w.r, w.hash, w.top, w.stop = r, hash, root.level, stop
	w.f[w.top] = frame{n: root}
}

// at returns the frame of level stop.
func (w *walk) at() *frame { return &w.f[w.stop] }

// fail returns a CorruptError that names the node of frame l.
func (w *walk) fail(l int, fault string) error {
	if h := w.f[l].n.h; h != nil {
		return corrupt(h, fault)
	}
	return corrupt(&w.hash, fault)
}

// load opens the child that frame l stands at, as frame l-1 at its record 0.
func (w *walk) load(l int) error {
	n, err := openChild(w.r, &w.f[l].n, w.f[l].i)
	if err != nil {
		return err
	}
	w.f[l-1] = frame{n: n}
	return nil
}

// seekName loads the node of level stop in which name would stand and puts its
// frame at the first record whose name is not before it; that may be one past
// the last. Nodes that are loaded already are not read again when reuse is
// set.
func (w *walk) seekName(name []byte, reuse bool) error {
	for l := w.top; l > w.stop; l-- {
		f := &w.f[l]
		i, ok := f.n.childFor(name)
		if !ok || f.n.count == 0 {
			return w.fail(l, "heap out of bounds")
		}
		same := reuse && f.i == i
		f.i = i
		if same && w.f[l-1].n.h == f.n.hash(i) {
			continue
		}
		reuse = false
		if err := w.load(l); err != nil {
			return err
		}
	}
	f := w.at()
	i, _, ok := f.n.lowerBound(name)
	if !ok {
		return w.fail(w.stop, "heap out of bounds")
	}
	f.i = i
	return nil
}

// next moves to the node after the current one on level stop, at its record 0.
// It reports false, and stays, when there is none. No single node shows that
// names are sorted across nodes, so this is verified here.
func (w *walk) next() (bool, error) {
	last, ok := w.at().n.lastName()
	if !ok && w.top > w.stop {
		return false, w.fail(w.stop, "heap out of bounds")
	}
	l := w.stop + 1
	for ; l <= w.top; l++ {
		if w.f[l].i+1 < w.f[l].n.count {
			break
		}
	}
	if l > w.top {
		return false, nil
	}
	w.f[l].i++
	first, ok := w.f[l].n.name(w.f[l].i)
	if !ok || bytes.Compare(last, first) >= 0 {
		return false, w.fail(w.stop, "its last name is not before the next node's first")
	}
	return true, w.down(l)
}

// down loads the first node of level stop below the record that frame l stands at.
func (w *walk) down(l int) error {
	for ; l > w.stop; l-- {
		if err := w.load(l); err != nil {
			return err
		}
	}
	return nil
}

// prev moves to the node before the current one on level stop, at its record
// 0. It reports false, and stays, when there is none.
func (w *walk) prev() (bool, error) {
	l := w.stop + 1
	for ; l <= w.top; l++ {
		if w.f[l].i > 0 {
			break
		}
	}
	if l > w.top {
		return false, nil
	}
	w.f[l].i--
	for ; l > w.stop; l-- {
		if err := w.load(l); err != nil {
			return false, err
		}
		if l-1 > w.stop {
			w.f[l-1].i = max(w.f[l-1].n.count-1, 0)
		}
	}
	return true, nil
}

// nextFirst returns the first name of the node after the current one without
// reading it, or nil when there is none.
func (w *walk) nextFirst() ([]byte, error) {
	for l := w.stop + 1; l <= w.top; l++ {
		if f := &w.f[l]; f.i+1 < f.n.count {
			name, ok := f.n.name(f.i + 1)
			if !ok {
				return nil, w.fail(l, "heap out of bounds")
			}
			return name, nil
		}
	}
	return nil, nil
}

// secondFirst returns a name that is not before the first name of the node two
// after the current one, without reading a node; nil when none is known.
func (w *walk) secondFirst() ([]byte, error) {
	skip := 2
	for l := w.stop + 1; l <= w.top; l++ {
		f := &w.f[l]
		if f.i+skip < f.n.count {
			name, ok := f.n.name(f.i + skip)
			if !ok {
				return nil, w.fail(l, "heap out of bounds")
			}
			return name, nil
		}
		if f.i+1 < f.n.count {
			skip = 1
		}
	}
	return nil, nil
}
