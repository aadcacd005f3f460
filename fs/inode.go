package fs

import (
	"encoding/binary"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

// forever is the timeout of names, missing names and attributes, in seconds: a
// commit never changes. The kernel cuts it to what its clock can count.
const forever = 1 << 40

// inodeNumber is the number of the entry name in the directory numbered
// parent: the first 63 bits of a hash of both. So a path has the same number in
// every mount of every machine. Neither it nor its low 32 bits are 0 (programs
// take 0 for "deleted"); the top bit is kept for files that no commit holds.
func inodeNumber(parent uint64, name []byte) uint64 {
	var b [8 + 255]byte
	binary.LittleEndian.PutUint64(b[:], parent)
	n := copy(b[8:], name)
	sum := blake3.Sum256(b[:8+n])
	h := binary.LittleEndian.Uint64(sum[:]) >> 1
	if uint32(h) == 0 {
		h |= 1
	}
	return h
}

// mode is an entry's st_mode.
func mode(e *merkle.Entry) uint32 {
	perm := uint32(e.Perm) & 0o777
	switch e.Kind {
	case merkle.KindDir:
		return unix.S_IFDIR | perm
	case merkle.KindSymlink:
		return unix.S_IFLNK | perm
	default:
		return unix.S_IFREG | perm
	}
}

// fillAttr sets the attributes that stat shows. A directory has size 0, so that
// sizes below a folder add up to the bytes of its files; every link count is 1.
func (f *filesystem) fillAttr(e *merkle.Entry, ino uint64, a *fuse.Attr) {
	*a = fuse.Attr{Ino: ino, Mode: mode(e), Nlink: 1, Owner: f.owner}
	if e.Kind != merkle.KindDir {
		a.Size = e.Size
	}
	if e.Kind == merkle.KindFile {
		a.Blocks = e.Size/512 + min(e.Size%512, 1)
	}
	sec, nsec := e.Mtime/1e9, e.Mtime%1e9
	if nsec < 0 { // times before 1970: seconds are rounded down, nanoseconds count up
		sec, nsec = sec-1, nsec+1e9
	}
	a.Mtime, a.Mtimensec = uint64(sec), uint32(nsec)
	a.Atime, a.Atimensec = a.Mtime, a.Mtimensec
	a.Ctime, a.Ctimensec = a.Mtime, a.Mtimensec
}

func (f *filesystem) fillEntry(e *merkle.Entry, id, ino uint64, out *fuse.EntryOut) {
	out.NodeId, out.Generation = id, 1
	out.EntryValid, out.AttrValid = forever, forever
	f.fillAttr(e, ino, &out.Attr)
}
