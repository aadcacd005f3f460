package merkle

import "bytes"

// begin opens a region at lo.
func (l *level) begin(lo []byte, cutting bool) {
	l.open, l.count, l.since = true, 0, window
	l.lo = append(l.lo[:0], lo...)
	l.b.reset(l.k, cutting)
}

// openRegion opens the region for the next edit that changes anything. It
// begins at the last natural start that has at least a window of records
// between itself and the edit, so that neither this nor a later edit can
// unmake it. An old node of fewer than maxRun records is always followed by a
// natural start; one of maxRun may be, and is taken not to be.
func (l *level) openRegion() error {
	e, err := l.peek()
	if err != nil {
		return err
	}
	if e == nil {
		l.done = true
		return nil
	}
	if err := l.old.seekName(e.lo, true); err != nil {
		return err
	}
	if idle, err := l.changesNothing(e); err != nil || idle {
		l.consume()
		return err
	}
	distance := l.old.at().i
	for {
		before := l.old
		more, err := before.prev()
		if err != nil {
			return err
		}
		if !more {
			l.old.at().i = 0
			l.begin(nil, true)
			return nil
		}
		if distance > window && before.at().n.count != maxRun {
			l.old.at().i = 0
			first, ok := l.old.at().n.name(0)
			if !ok {
				return l.old.fail(l.k, "heap out of bounds")
			}
			l.begin(first, true)
			return nil
		}
		l.old = before
		distance += l.old.at().n.count
	}
}

// changesNothing compares an edit with the old records, which stand at its lo.
func (l *level) changesNothing(e *edit) (bool, error) {
	f := l.old.at()
	at := f.i
	if e.has {
		if at >= f.n.count {
			return false, nil
		}
		item, ok := f.n.item(at)
		if !ok {
			return false, l.old.fail(l.k, "heap out of bounds")
		}
		size := heapEndOffset(l.k)
		if !bytes.Equal(item, e.item) || !bytes.Equal(f.n.record(at)[:size], e.fixed[:size]) ||
			!bytes.Equal(f.n.record(at)[size+4:], e.fixed[size+4:]) {
			return false, nil
		}
		at++
	}
	var after []byte
	var err error
	if at < f.n.count {
		var ok bool
		if after, ok = f.n.name(at); !ok {
			err = l.old.fail(l.k, "heap out of bounds")
		}
	} else {
		after, err = l.old.nextFirst()
	}
	return err == nil && (after == nil || e.hi != nil && bytes.Compare(after, e.hi) >= 0), err
}

func heapEndOffset(level int) int {
	if level == 0 {
		return offEntryEnd
	}
	return offIndexEnd
}

// tryClose ends the region before the next old node when that node's start is
// the same in the new level: a natural one, with a window of unchanged names
// on its left and no edit within a window on its right. Edits that do not reach
// the node after it are far enough, because a natural start has a window of
// records that are no starts.
func (l *level) tryClose(e *edit) (bool, error) {
	hi, err := l.old.nextFirst()
	if err != nil || hi == nil {
		return false, err
	}
	if l.old.at().n.count == maxRun || l.since < window {
		return false, nil
	}
	if e != nil {
		after, err := l.old.secondFirst()
		if err != nil || after == nil || bytes.Compare(e.lo, after) < 0 {
			return false, err
		}
	}
	return true, l.closeRegion(hi, atNatural)
}

// closeRegion hands out what is left of a region that ends before hi, nil
// standing for the end of the level.
func (l *level) closeRegion(hi []byte, c closing) error {
	for {
		m := l.b.cut(c)
		if m == 0 {
			break
		}
		end := hi
		if m < l.b.n {
			end = l.b.name(m)
		}
		if err := l.emit(m, end); err != nil {
			return err
		}
	}
	if l.count == 0 {
		e := l.newOut(hi)
		e.has = false
	}
	l.open = false
	l.done = c == atEnd
	return nil
}
