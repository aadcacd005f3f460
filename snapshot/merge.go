package snapshot

import (
	"bytes"
	"errors"
	"strings"
	"sync"

	"bole/lmdbstore"
	"bole/merkle"
)

// merged is the comparison of one chunk: names on disk, the base directory, the
// stage and the stat table, all in name order.
type merged struct {
	s *scanner
	t *dirTask

	// What merge found in the last window:
	items     []item
	unchanged int

	kids []*dirTask
	left []foundName // names on disk that were not compared yet

	// Kept from chunk to chunk: most directories are small, and many.
	found  []foundName
	staged []stagedName
	stats  []statName
}

var mergeBuffers = sync.Pool{New: func() any { return new(merged) }}

// release gives the buffers back. Items and tasks are not among them.
func (m *merged) release() {
	clear(m.found)
	*m = merged{found: m.found[:0], staged: m.staged[:0], stats: m.stats[:0]}
	mergeBuffers.Put(m)
}

// stagedName and statName are records of one directory, lent.
type stagedName struct {
	name []byte
	rec  stageRecord
}

type statName struct {
	name []byte
	rec  statRecord
}

// merge compares one window of the chunk inside a read transaction; what it
// keeps is cloned. more: the chunk goes on behind it.
func (m *merged) merge(rd *lmdbstore.Reader, c *chunk) (more bool, err error) {
	m.items, m.unchanged = nil, 0
	hi, err := m.readStage(rd, c.lo, c.hi)
	if err == nil {
		hi, err = m.readStats(rd, c.lo, hi)
	}
	if err != nil {
		return false, err
	}
	var idx indexCursor
	if err := idx.open(rd, m.t.base, c.lo, hi, m.staged); err != nil {
		return false, err
	}
	stats := m.stats
	var last []byte
	for range limits.window {
		name, ok := idx.peek()
		onDisk := len(m.left) > 0 && (hi == nil || bytes.Compare(m.left[0].name, hi) <= 0)
		switch {
		case !ok && !onDisk:
			if hi == nil || bytes.Equal(hi, c.hi) {
				return false, nil
			}
			c.after(hi)
			return true, nil
		case !ok || onDisk && bytes.Compare(m.left[0].name, name) < 0:
			f := m.next()
			m.name(f, nil, nil, takeStat(&stats, f.name))
			last = f.name
			continue
		}
		last = name
		base, rec, err := idx.next()
		switch {
		case err != nil:
			return false, err
		case onDisk && bytes.Equal(m.left[0].name, name):
			m.name(m.next(), base, rec, takeStat(&stats, name))
		default:
			m.gone(string(name), base, rec)
		}
	}
	c.after(last)
	return true, nil
}

func (m *merged) next() *foundName {
	f := &m.left[0]
	m.left = m.left[1:]
	return f
}

// takeStat drops the records before a name and returns the one of the name.
func takeStat(stats *[]statName, name []byte) *statRecord {
	for len(*stats) > 0 {
		cmp := bytes.Compare((*stats)[0].name, name)
		if cmp > 0 {
			return nil
		}
		rec := &(*stats)[0].rec
		*stats = (*stats)[1:]
		if cmp == 0 {
			return rec
		}
	}
	return nil
}

// gone takes a name that the index may have and the disk has not.
func (m *merged) gone(name string, base *merkle.Entry, rec *stageRecord) {
	it := m.newItem(name, base, rec, nil)
	if it.index == nil {
		return
	}
	m.t.want.saw(name)
	if it.index.Kind == merkle.KindDir && !m.t.want.below(name).all {
		// Only something inside was asked for: the rest stays in the index.
		k := m.s.kid(m.t, joinPath(m.t.path, name), it)
		k.absent = true
		m.kids = append(m.kids, k)
		return
	}
	m.items = append(m.items, it)
}

// newItem lays the stage's record over the base entry.
func (m *merged) newItem(name string, base *merkle.Entry, rec *stageRecord, st *statRecord) item {
	it := item{name: name}
	if st != nil {
		rec := *st // lent until the next chunk
		it.rec = &rec
	}
	if base != nil {
		c := base.Clone()
		it.base, it.index = &c, &c
	}
	if rec != nil {
		it.op = rec.op
		it.index = nil
		if e, ok := rec.over(it.base); ok {
			e = e.Clone()
			it.index = &e
		}
	}
	return it
}

// name compares one name on disk with the index.
func (m *merged) name(f *foundName, base *merkle.Entry, rec *stageRecord, st *statRecord) {
	if !m.t.want.all {
		m.t.want.saw(string(f.name))
	}
	if base != nil && rec == nil && m.same(f, base, st) {
		m.unchanged++
		return
	}
	it := m.newItem(string(f.name), base, rec, st)
	path := joinPath(m.t.path, it.name)
	it.present, it.st, it.target = true, f.st, f.target
	if f.st.kind != merkle.KindDir && f.st.kind != kindUnknown && !m.t.want.below(it.name).all {
		// Only what the index has below this name was asked for, and that is gone.
		m.gone(it.name, base, rec)
		return
	}
	if !m.admit(path, &it) {
		return
	}
	if it.st.kind == merkle.KindDir && (it.indexKind() == merkle.KindDir || !m.s.collapse) {
		m.kids = append(m.kids, m.s.kid(m.t, path, it))
		if it.indexKind() != merkle.KindDir {
			m.t.touch()
		}
		return
	}
	if it.index != nil && m.same(f, it.index, it.rec) {
		m.unchanged++
		return
	}
	m.items = append(m.items, it)
}

// same says whether the stat table's record, if there is one, proves that a
// file is what the index has; a symlink proves itself by its target.
func (m *merged) same(f *foundName, e *merkle.Entry, st *statRecord) bool {
	if f.st.kind != e.Kind || f.st.kind == merkle.KindDir || f.st.mountRoot {
		return false
	}
	if e.Kind == merkle.KindSymlink {
		return bytes.Equal(f.target, e.Target) || len(e.Target) == 0 && merkle.ContentHash(f.target) == e.Hash
	}
	return st != nil && st.proves(&f.st) && st.hash == e.Hash && st.attrs == e.Attrs && f.st.perm == e.Perm && !f.st.farTime
}

// admit decides whether a name takes part at all: .bole, what patterns leave
// out, special files, and what is mounted here do not. An entry that is passed
// over so stays in the index as it is.
func (m *merged) admit(path string, it *item) bool {
	s, t := m.s, m.t
	if strings.EqualFold(it.name, DirName) {
		if t.path != "" || it.name != DirName || s.outside {
			s.skipped(Problem{path, "the name is reserved"})
		}
		return false
	}
	isDir := it.st.kind == merkle.KindDir
	if t.depth >= merkle.MaxDepth {
		s.failed(path, merkle.ErrTooDeep)
		return false
	}
	ignored := (t.ignored || t.ignore.Ignored(path, isDir)) && !s.force
	if it.index == nil && ignored {
		s.visit.ignoredName(path, isDir)
		return false
	}
	switch {
	case it.st.kind == kindUnknown:
		return false
	case it.st.mountRoot:
		s.skipped(Problem{path, mountedHere})
		return false
	case s.repo.isDatabase(t.fd, it.name, &it.st):
		s.skipped(Problem{path, ownDatabase})
		return false
	case it.st.farTime && !isDir:
		s.failed(path, errFarTime)
		return false
	case it.st.kind == 0:
		s.skipped(Problem{path, "neither a file, a folder nor a symlink"})
		it.present = false // what the index had here is gone
		return it.index != nil
	case isDir && s.collapse && it.index == nil && s.isNested(t.fd, it.name):
		s.skipped(Problem{path, nestedHere})
		return false
	}
	return true
}

// Reasons for leaving something out.
const (
	mountedHere = "something is mounted here"
	nestedHere  = "a repository of its own"
	ownDatabase = "another name of the repository's database"
)

var errFarTime = errors.New("its time of change does not lie between 1677 and 2262")

// kid is the task for a directory found in t.
func (s *scanner) kid(t *dirTask, path string, it item) *dirTask {
	k := &dirTask{path: path, parent: t, self: it, fd: -1, ignore: t.ignore, depth: t.depth + 1,
		want: t.want.below(it.name), ignored: t.ignored || t.ignore.Ignored(path, true) && !s.force}
	k.marked = it.op == stageInside || it.op == stageMeta || it.op == stageFresh
	k.staged = t.staged && k.marked // what else lies there, a killed command left
	if it.indexKind() == merkle.KindDir {
		k.base = it.index.Hash
	}
	return k
}

// touch notes that a name of the directory was recorded, or will be.
func (t *dirTask) touch() {
	t.mu.Lock()
	t.touched = true
	t.mu.Unlock()
}

// readStage collects the stage's records of a window and returns how far it
// goes: to hi, or to the last record when there are too many.
func (m *merged) readStage(rd *lmdbstore.Reader, lo, hi []byte) ([]byte, error) {
	m.staged = m.staged[:0]
	if !m.t.staged {
		return hi, nil
	}
	dir := m.s.led.stageDir(m.t.path)
	err := rd.Scan(m.s.led.stage, dir[:], lo, func(k, v []byte) error {
		name := k[dirKeySize:]
		if len(name) == 0 {
			return nil
		}
		if hi != nil && bytes.Compare(name, hi) > 0 {
			return lmdbstore.ErrStop
		}
		rec, err := decodeStage(v)
		m.staged = append(m.staged, stagedName{name, rec})
		if err == nil && len(m.staged) == limits.window {
			hi, err = name, lmdbstore.ErrStop
		}
		return err
	})
	return hi, err
}

// readStats does the same with the stat table.
func (m *merged) readStats(rd *lmdbstore.Reader, lo, hi []byte) ([]byte, error) {
	m.stats = m.stats[:0]
	dir := m.s.led.statDir(m.t.path)
	err := rd.Scan(m.s.led.stat, dir[:], lo, func(k, v []byte) error {
		name := k[dirKeySize:]
		if len(name) == 0 {
			return nil
		}
		if hi != nil && bytes.Compare(name, hi) > 0 {
			return lmdbstore.ErrStop
		}
		rec, err := decodeStat(v)
		m.stats = append(m.stats, statName{name, rec})
		if err == nil && len(m.stats) == limits.window {
			hi, err = name, lmdbstore.ErrStop
		}
		return err
	})
	return hi, err
}

// indexCursor walks base directory and stage together.
type indexCursor struct {
	cur    merkle.Cursor
	dir    merkle.Dir
	has    bool // entry holds the next base entry
	entry  merkle.Entry
	given  merkle.Entry // what next returned last
	hi     []byte
	staged []stagedName
	err    error
}

// open puts the cursor before the first name from lo on, up to hi; nil bounds are open.
func (x *indexCursor) open(rd merkle.Reader, base merkle.Hash, lo, hi []byte, staged []stagedName) (err error) {
	for hi != nil && len(staged) > 0 && bytes.Compare(staged[len(staged)-1].name, hi) > 0 {
		staged = staged[:len(staged)-1]
	}
	x.hi, x.staged = hi, staged
	if base.IsZero() {
		return nil
	}
	if x.dir, err = merkle.OpenDir(rd, &base); err != nil {
		return err
	}
	x.cur = x.dir.SeekName(lo)
	x.advance()
	return x.err
}

func (x *indexCursor) advance() {
	x.has, x.err = x.cur.Next(&x.entry)
	if x.has && x.hi != nil && bytes.Compare(x.entry.Name, x.hi) > 0 {
		x.has = false
	}
}

// peek is the next name of either side.
func (x *indexCursor) peek() ([]byte, bool) {
	switch {
	case x.has && (len(x.staged) == 0 || bytes.Compare(x.entry.Name, x.staged[0].name) <= 0):
		return x.entry.Name, true
	case len(x.staged) > 0:
		return x.staged[0].name, true
	}
	return nil, false
}

// next returns what both sides have for the name that peek gave, lent until the next call.
func (x *indexCursor) next() (base *merkle.Entry, rec *stageRecord, err error) {
	name, _ := x.peek()
	if len(x.staged) > 0 && bytes.Equal(x.staged[0].name, name) {
		rec = &x.staged[0].rec
		x.staged = x.staged[1:]
	}
	if x.has && bytes.Equal(x.entry.Name, name) {
		x.given = x.entry
		base = &x.given
		x.advance()
	}
	return base, rec, x.err
}
