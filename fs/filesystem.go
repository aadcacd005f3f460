package fs

import (
	"errors"
	"fmt"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/sirupsen/logrus"

	"bole/merkle"
	"bole/snapshot"
)

// filesystem answers the kernel's requests for one mounted directory of one
// commit. It implements fuse.RawFileSystem completely and on purpose, without
// the library's default, which answers ENOSYS: the kernel takes that for an
// answer about the whole mount, for ever.
type filesystem struct {
	repo   *snapshot.Repo
	commit merkle.Hash
	root   merkle.Entry // of the mount's root directory, a clone
	owner  fuse.Owner   // of everything: who mounted
	verify bool         // whole files are hashed before they are served
	io     IO           // never IOAuto
	noDirs bool         // the kernel may be told ENOSYS to OPENDIR
	log    *logrus.Logger

	server   *fuse.Server
	rows     *rows
	files    openFiles
	counters counters
	push     *pusher
	journal  journal
	verified verified
}

func (f *filesystem) String() string            { return "bole" }
func (f *filesystem) SetDebug(bool)             {}
func (f *filesystem) Init(s *fuse.Server)       { f.server = s }
func (f *filesystem) OnUnmount()                {}
func (f *filesystem) Forget(id, nlookup uint64) { f.counters.add(opForget); f.rows.forget(id, nlookup) }

// errStale is an id that the kernel cannot hold. It never happens with a sound kernel.
var errStale = errors.New("unknown node id")

// errSlots is a directory of more entries than a node id can tell apart.
var errSlots = errors.New("too many entries in one directory")

// dir finds the row of a directory's node id.
func (f *filesystem) dir(id uint64) (*row, error) {
	r, slot, ok := f.rows.get(id)
	if !ok || slot != 0 {
		return nil, fmt.Errorf("node %#x: %w", id, errStale)
	}
	return r, nil
}

// entry finds the entry that a node id stands for. What e points to dies with
// the view that lent rd.
func (f *filesystem) entry(rd merkle.Reader, r *row, slot uint32, e *merkle.Entry) error {
	if slot == 0 {
		if r.parent == nil {
			*e = f.root
			return nil
		}
		r, slot = r.parent, r.slot
	}
	d, err := merkle.OpenDir(rd, &r.hash)
	if err != nil {
		return err
	}
	return d.At(uint64(slot-1), e)
}

// node is entry for a handler that has an id, in a view of its own: fn gets
// the lent entry and must copy what it keeps.
func (f *filesystem) node(op string, id uint64, fn func(rd merkle.Reader, r *row, slot uint32, e *merkle.Entry) error) fuse.Status {
	r, slot, ok := f.rows.get(id)
	if !ok {
		return f.status(op, nil, 0, fmt.Errorf("node %#x: %w", id, errStale))
	}
	err := f.repo.View(func(rd merkle.Reader) error {
		var e merkle.Entry
		if err := f.entry(rd, r, slot, &e); err != nil {
			return err
		}
		return fn(rd, r, slot, &e)
	})
	return f.status(op, r, slot, err)
}

// inode is the number of the entry in a slot of r, or of r itself.
func (r *row) inode(slot uint32, e *merkle.Entry) uint64 {
	if slot == 0 {
		return r.ino
	}
	return inodeNumber(r.ino, e.Name)
}

// slotOf is the slot of the entry with an ordinal; false when ids cannot tell it apart.
func slotOf(ordinal uint64) (uint32, bool) {
	return uint32(ordinal) + 1, ordinal < maxSlot
}

// Lookup answers with the entry of a name, or that there is none, both for ever.
func (f *filesystem) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	f.counters.add(opLookup)
	r, err := f.dir(h.NodeId)
	if err != nil {
		return f.status("lookup", nil, 0, err)
	}
	if len(name) > 255 {
		return fuse.Status(enametoolong)
	}
	err = f.repo.View(func(rd merkle.Reader) error {
		d, err := merkle.OpenDir(rd, &r.hash)
		if err != nil {
			return err
		}
		var e merkle.Entry
		ordinal, err := d.Lookup([]byte(name), &e)
		if errors.Is(err, merkle.ErrNotFound) {
			out.EntryValid = forever // node id 0: the name is not there
			return nil
		}
		if err != nil {
			return err
		}
		return f.name(r, ordinal, &e, out)
	})
	return f.status("lookup", r, 0, err)
}

// name fills the reply that names an entry of r, and counts it.
func (f *filesystem) name(r *row, ordinal uint64, e *merkle.Entry, out *fuse.EntryOut) error {
	slot, ok := slotOf(ordinal)
	if !ok {
		return errSlots
	}
	ino := inodeNumber(r.ino, e.Name)
	if e.Kind != merkle.KindDir {
		f.rows.hold(r, 1)
		f.fillEntry(e, r.entryID(slot), ino, out)
		return nil
	}
	child, ok := f.rows.enter(r, slot, &e.Hash, ino)
	if !ok {
		return errSlots
	}
	f.fillEntry(e, child.id(), ino, out)
	return nil
}

// GetAttr answers what stat shows; the kernel keeps it for ever.
func (f *filesystem) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	f.counters.add(opGetAttr)
	return f.node("getattr", in.NodeId, func(_ merkle.Reader, r *row, slot uint32, e *merkle.Entry) error {
		out.AttrValid = forever
		f.fillAttr(e, r.inode(slot, e), &out.Attr)
		return nil
	})
}

// Readlink answers where a symlink points; the kernel keeps it.
func (f *filesystem) Readlink(_ <-chan struct{}, h *fuse.InHeader) ([]byte, fuse.Status) {
	f.counters.add(opReadlink)
	var target []byte
	var content merkle.Hash
	var size uint64
	st := f.node("readlink", h.NodeId, func(_ merkle.Reader, _ *row, _ uint32, e *merkle.Entry) error {
		if e.Kind != merkle.KindSymlink {
			return fuseErrno(fuse.EINVAL)
		}
		target, content, size = append([]byte(nil), e.Target...), e.Hash, e.Size
		return nil
	})
	if !st.Ok() || len(target) > 0 {
		return target, st
	}
	target, err := f.repo.ReadContent(content, nil)
	if err == nil {
		err = checkTarget(target, size)
	}
	return target, f.contentStatus("readlink", h.NodeId, content, err)
}
