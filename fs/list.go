package fs

import (
	"unsafe"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

// The offset that stands with an entry of a listing is where to go on after it:
// 1 after ".", 2 after "..", ordinal+3 after an entry. So every offset of a
// directory means the same for ever, whoever asks and with whatever buffer.
const (
	offDotDot = 1
	offFirst  = 2
)

// OpenDir is refused once: the kernel then opens directories by itself and
// keeps their listings.
func (f *filesystem) OpenDir(_ <-chan struct{}, _ *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	f.counters.add(opOpenDir)
	if f.noDirs {
		return fuse.ENOSYS
	}
	out.OpenFlags = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_CACHE_DIR
	return fuse.OK
}

// ReleaseDir has nothing to release.
func (f *filesystem) ReleaseDir(*fuse.ReleaseIn) { f.counters.add(opReleaseDir) }

// FsyncDir has nothing to write.
func (f *filesystem) FsyncDir(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	f.counters.add(opFsyncDir)
	return fuse.OK
}

// ReadDir lists names, kinds and inode numbers.
func (f *filesystem) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	f.counters.add(opReadDir)
	return f.list(in, &listing{out: out})
}

// ReadDirPlus lists entries with their attributes, as if each had been looked up.
func (f *filesystem) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	f.counters.add(opReadDirPlus)
	return f.list(in, &listing{out: out, plus: true})
}

// listing is one reply that is being filled.
type listing struct {
	out   *fuse.DirEntryList
	plus  bool
	names int    // entries in it
	files uint64 // of these, files and symlinks with a node id
}

func (f *filesystem) list(in *fuse.ReadIn, l *listing) fuse.Status {
	r, err := f.dir(in.NodeId)
	if err != nil {
		return f.status("list", nil, 0, err)
	}
	if !l.dots(r, in.Offset) {
		return fuse.OK
	}
	err = f.repo.View(func(rd merkle.Reader) error {
		d, err := merkle.OpenDir(rd, &r.hash)
		if err != nil {
			return err
		}
		from := max(in.Offset, offFirst) - offFirst
		if from >= d.Len() {
			return nil
		}
		c := d.Seek(from)
		f.fetchAhead(rd, r, &c)
		return f.fill(r, &c, l)
	})
	f.rows.hold(r, l.files)
	if err != nil && l.names > 0 {
		return fuse.OK // what was read is sent; going on from its end meets the damage again
	}
	return f.status("list", r, 0, err)
}

// dots adds "." and ".."; false when the reply is full before.
func (l *listing) dots(r *row, offset uint64) bool {
	up := r
	if r.parent != nil {
		up = r.parent
	}
	if offset < offDotDot && !l.add(".", unix.S_IFDIR, r.ino, offDotDot) {
		return false
	}
	return offset >= offFirst || l.add("..", unix.S_IFDIR, up.ino, offFirst)
}

// add adds a name without a node id.
func (l *listing) add(name string, mode uint32, ino, off uint64) bool {
	e := fuse.DirEntry{Name: name, Mode: mode, Ino: ino, Off: off}
	if l.plus {
		return l.out.AddDirLookupEntry(e) != nil
	}
	return l.out.AddDirEntry(e)
}

// fill adds entries until the reply is full or the directory ends.
func (f *filesystem) fill(r *row, c *merkle.Cursor, l *listing) error {
	var e merkle.Entry
	for {
		ordinal := c.Ordinal()
		ok, err := c.Next(&e)
		if err != nil || !ok {
			return err
		}
		ino := inodeNumber(r.ino, e.Name)
		d := fuse.DirEntry{Name: unsafe.String(unsafe.SliceData(e.Name), len(e.Name)), Mode: mode(&e), Ino: ino, Off: ordinal + offFirst + 1}
		if !l.plus {
			if !l.out.AddDirEntry(d) {
				return nil
			}
			l.names++
			continue
		}
		out := l.out.AddDirLookupEntry(d)
		if out == nil {
			return nil
		}
		l.names++
		f.identify(r, ordinal, &e, ino, l, out)
	}
}

// identify gives a listed entry its node id. One that cannot have an id stays
// with id 0, which the kernel takes for "look it up".
func (f *filesystem) identify(r *row, ordinal uint64, e *merkle.Entry, ino uint64, l *listing, out *fuse.EntryOut) {
	slot, ok := slotOf(ordinal)
	if !ok {
		return
	}
	if e.Kind != merkle.KindDir {
		l.files++
		f.fillEntry(e, r.entryID(slot), ino, out)
		return
	}
	if child, ok := f.rows.enter(r, slot, &e.Hash, ino); ok {
		f.fillEntry(e, child.id(), ino, out)
	}
}

// fetchAhead asks, once in a row's life, for the nodes that a walk needs next:
// the directory's own further nodes and its child directories, in one batch.
func (f *filesystem) fetchAhead(rd merkle.Reader, r *row, c *merkle.Cursor) {
	if !f.rows.first(r) {
		return
	}
	var buf [128]merkle.Hash
	ahead := c.DirsAhead(c.LeavesAhead(buf[:0]))
	if len(ahead) > 1 {
		f.repo.Prefetch(rd, ahead)
	}
}
