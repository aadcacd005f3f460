package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"bole/internal/ignore"
	"bole/lmdbstore"
	"bole/merkle"
)

// IgnoreFile is the name of the file that lists patterns to leave out, in git's syntax.
const IgnoreFile = ".boleignore"

// Problem is something that a command left out, by name.
type Problem struct {
	Path   string // relative to the root, raw bytes
	Reason string
}

// item is one name that differs from the index, or may.
type item struct {
	name    string
	present bool // st is set
	st      fileStat
	target  []byte        // of a symlink
	index   *merkle.Entry // what the next commit would have here
	base    *merkle.Entry // what shows through when the stage has no record here
	op      stageOp       // of the stage's record, 0 when it has none
	rec     *statRecord
}

// indexKind is the kind of the index entry, 0 without one.
func (it *item) indexKind() merkle.Kind {
	if it.index == nil {
		return 0
	}
	return it.index.Kind
}

// dirTask is one directory to be scanned.
type dirTask struct {
	path    string
	parent  *dirTask
	want    *wanted
	ignore  *ignore.Stack
	ignored bool        // matches a pattern, and is here because something in it is tracked
	base    merkle.Hash // the Dir whose entries show through, zero for none
	staged  bool        // the stage may have records below
	self    item        // the directory's own entry
	absent  bool        // not on disk; only the index has it
	depth   int         // names in path

	mu      sync.Mutex
	marked  bool // the stage leads here
	touched bool // a name in it was recorded, or appeared, went away or changed kind

	fd     int // open from the first chunk to the last
	chunks chunker
}

// visitor is what add, its plan, and status do with what a scan finds. Its
// methods are called from several goroutines, for different directories.
type visitor interface {
	begin(t *dirTask) (ok bool, err error) // before the first name; not ok: leave the directory out
	items(t *dirTask, items []item) error  // names that are not proved unchanged
	unchanged(n int)
	done(t *dirTask) error // after the last name, before the last directories below
	ignoredName(path string, isDir bool)
}

// scanner compares a tree on disk with the index: the base commit under the stage.
type scanner struct {
	ctx      context.Context
	repo     *Repo
	led      ledger
	rootfd   int
	slack    int64
	visit    visitor
	skipped  func(Problem)
	failed   func(path string, err error)
	force    bool // ignored names too
	collapse bool // report an untracked directory, do not enter it
	outside  bool // the root is no working directory of this repository
	queue    *workQueue
}

// newScanner opens the root. Close it.
func (r *Repo) newScanner(ctx context.Context, root string, led ledger, v visitor) (*scanner, error) {
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", root, err)
	}
	return &scanner{ctx: ctx, repo: r, led: led, rootfd: fd, slack: clockSlack(fd), visit: v,
		skipped: func(Problem) {}, failed: func(string, error) {}}, nil
}

func (s *scanner) close() error { return unix.Close(s.rootfd) }

// run scans what is wanted below the root, whose own entries are given (nil without a commit).
func (s *scanner) run(want *wanted, base, index *merkle.Entry, rootOp stageOp, rec *statRecord) error {
	t := &dirTask{want: want, ignore: ignore.Defaults(), staged: true, fd: -1, marked: true,
		self: item{present: true, index: index, base: base, op: rootOp, rec: rec}}
	if index != nil {
		t.base = index.Hash
	}
	s.queue = newWorkQueue(max(2, runtime.GOMAXPROCS(0)))
	s.queue.push(t)
	return s.queue.run(func(t *dirTask) error {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		if err := s.step(t); err != nil {
			return fmt.Errorf("scan %q: %w", path.Join(".", t.path), err)
		}
		return nil
	}, func(t *dirTask) {
		if t.fd >= 0 {
			unix.Close(t.fd)
		}
	})
}

// step takes one chunk of a directory; the directories in it are scanned
// before the next chunk, so what waits stays bounded.
func (s *scanner) step(t *dirTask) error {
	if t.absent {
		t.chunks = chunker{only: t.want.sorted()}
		return s.stepAbsent(t)
	}
	if t.fd < 0 {
		ok, err := s.open(t)
		if err != nil || !ok {
			return err
		}
	}
	c, more := t.chunks.next()
	kids, err := s.chunk(t, c)
	if err != nil {
		return err
	}
	if more {
		s.queue.push(t)
	} else {
		err := s.visit.done(t)
		unix.Close(t.fd)
		t.fd, t.chunks = -1, chunker{}
		if err != nil {
			return err
		}
	}
	for i := len(kids) - 1; i >= 0; i-- { // the first is taken first
		s.queue.push(kids[i])
	}
	return nil
}

// stepAbsent compares a directory that only the index has with nothing.
func (s *scanner) stepAbsent(t *dirTask) error {
	for more := true; more; {
		var c chunk
		c, more = t.chunks.next()
		c.names = nil
		kids, err := s.chunk(t, c)
		if err != nil {
			return err
		}
		for _, k := range kids {
			s.queue.push(k)
		}
	}
	return nil
}

// open opens a directory and lists it; false when it is to be left out.
func (s *scanner) open(t *dirTask) (bool, error) {
	fd, err := openDirAt(s.rootfd, t.path)
	if err == nil {
		err = lstatAt(fd, "", &t.self.st)
	}
	if err != nil {
		if errors.Is(err, unix.ENOENT) && t.path != "" {
			return false, nil // went away since it was listed; the next scan sees that
		}
		if t.path == "" {
			return false, err
		}
		s.failed(t.path, err)
		return false, nil
	}
	t.fd = fd
	ok, err := s.list(t)
	if err == nil && ok {
		ok, err = s.visit.begin(t)
	}
	if err != nil || !ok {
		unix.Close(fd)
		t.fd = -1
	}
	return ok, err
}

func (s *scanner) list(t *dirTask) (bool, error) {
	mayNest := t.path != ""
	if !t.want.all {
		t.chunks = chunker{only: t.want.sorted()}
	} else {
		l, err := readListing(t.fd)
		if err != nil {
			s.failed(t.path, err)
			return false, nil
		}
		t.chunks = chunker{list: l}
		if mayNest {
			_, mayNest = l.find(DirName)
		}
	}
	if mayNest && s.isNested(t.fd, "") {
		s.skipped(Problem{t.path, nestedHere})
		return false, nil
	}
	return true, s.pushIgnore(t)
}

// pushIgnore adds the directory's own pattern file, when that is a regular file.
func (s *scanner) pushIgnore(t *dirTask) error {
	if l := t.chunks.list; l != nil {
		if _, ok := l.find(IgnoreFile); !ok {
			return nil
		}
	}
	f, err := openFileAt(t.fd, IgnoreFile, joinPath(t.path, IgnoreFile))
	if err != nil {
		return nil // absent, a link, or unreadable: then it is reported as a file
	}
	defer f.Close()
	fi, err := f.Stat()
	if err != nil || !fi.Mode().IsRegular() {
		return nil
	}
	if fi.Size() > 16<<20 {
		return fmt.Errorf("%s has %d bytes", f.Name(), fi.Size())
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("read %s: %w", f.Name(), err)
	}
	t.ignore = t.ignore.Push(t.path, b)
	return nil
}

// isNested says whether a directory is a repository.
func (s *scanner) isNested(dirfd int, name string) bool {
	var st fileStat
	at := DirName
	if name != "" {
		at = name + "/" + DirName
	}
	return lstatAt(dirfd, at, &st) == nil && st.kind == merkle.KindDir
}

// chunk stats the names of a chunk, compares them with the index under short
// read transactions, and hands what differs to the visitor.
func (s *scanner) chunk(t *dirTask, c chunk) ([]*dirTask, error) {
	m := mergeBuffers.Get().(*merged)
	defer m.release()
	m.s, m.t = s, t
	m.found = s.stat(t, c, m.found)
	m.left = m.found
	for more := true; more; {
		err := s.repo.db.View(func(rd *lmdbstore.Reader) (err error) {
			more, err = m.merge(rd, &c)
			return err
		})
		if err != nil {
			return nil, err
		}
		s.visit.unchanged(m.unchanged)
		if len(m.items) > 0 {
			if err := s.visit.items(t, m.items); err != nil {
				return nil, err
			}
		}
	}
	return m.kids, nil
}

// foundName is a name on disk.
type foundName struct {
	name   []byte
	st     fileStat
	target []byte
}

// stat looks at every name of the chunk; names that went away are left out,
// names that cannot be looked at are reported and kept out of the comparison.
func (s *scanner) stat(t *dirTask, c chunk, found []foundName) []foundName {
	for _, name := range c.names {
		f := foundName{name: name}
		err := lstatAt(t.fd, string(name), &f.st)
		if err == nil && f.st.kind == merkle.KindSymlink {
			f.target, err = readLinkAt(t.fd, string(name))
		}
		switch {
		case errors.Is(err, unix.ENOENT):
			continue
		case err != nil:
			s.failed(joinPath(t.path, name), err)
			f.st = fileStat{kind: kindUnknown}
		}
		found = append(found, f)
	}
	return found
}

// kindUnknown marks a name that is there and could not be looked at: it is
// neither compared nor taken for deleted.
const kindUnknown merkle.Kind = 255

// chunk is a run of names and the bounds, both inclusive, between which the
// index is compared; a nil bound is open.
type chunk struct {
	names  [][]byte
	lo, hi []byte
}

// after moves the beginning of the chunk behind a name.
func (c *chunk) after(name []byte) { c.lo = append(append(c.lo[:0:0], name...), 0) }

// chunker cuts a listing, or the few names that are wanted, into chunks.
type chunker struct {
	list *listing
	only []string
	pos  int
}

func (c *chunker) next() (ch chunk, more bool) {
	if c.list == nil {
		if len(c.only) == 0 {
			return chunk{lo: []byte{0}, hi: []byte{0}}, false // no name is that
		}
		n := []byte(c.only[0])
		c.only = c.only[1:]
		return chunk{names: [][]byte{n}, lo: n, hi: n}, len(c.only) > 0
	}
	end := min(c.pos+limits.chunk, len(c.list.names))
	if c.pos > 0 {
		ch.lo = append(append([]byte(nil), c.list.name(c.pos-1)...), 0)
	}
	for i := c.pos; i < end; i++ {
		ch.names = append(ch.names, c.list.name(i))
	}
	c.pos = end
	if end < len(c.list.names) {
		ch.hi = c.list.name(end - 1)
		return ch, true
	}
	return ch, false
}
