package fs

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"bole/merkle"
	"bole/snapshot"
)

// smallContent is the size up to which a content is read whole, and verified,
// into the reply's own buffer or one like it. Larger ones are opened first.
const smallContent = 128 << 10

// cachedOpen makes the kernel keep pages from one open to the next and send nothing at close.
const cachedOpen = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_NOFLUSH

// fileEntry copies what is needed to read the file that an id stands for.
func (f *filesystem) fileEntry(op string, id uint64) (h merkle.Hash, size uint64, st fuse.Status) {
	st = f.node(op, id, func(_ merkle.Reader, _ *row, _ uint32, e *merkle.Entry) error {
		if e.Kind != merkle.KindFile {
			return fuseErrno(fuse.EINVAL)
		}
		h, size = e.Hash, e.Size
		return nil
	})
	return h, size, st
}

// Open answers by the mount's io mode. In stateless mode it is refused once for
// the whole mount, and then never asked again.
func (f *filesystem) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	f.counters.add(opOpen)
	if in.Flags&(unix.O_ACCMODE|unix.O_TRUNC) != unix.O_RDONLY {
		return fuse.EROFS
	}
	if f.io == IOStateless {
		return fuse.ENOSYS
	}
	out.OpenFlags = cachedOpen
	if f.io != IOPassthrough && !f.verify {
		return fuse.OK
	}
	h, size, st := f.fileEntry("open", in.NodeId)
	if !st.Ok() || size == 0 {
		return st
	}
	whole, err := f.repo.IsWhole(h)
	if err == nil && whole {
		err = f.openWhole(in.NodeId, h, size, out)
	}
	return f.contentStatus("open", in.NodeId, h, err)
}

func (f *filesystem) openWhole(id uint64, h merkle.Hash, size uint64, out *fuse.OpenOut) error {
	if err := f.check(h); err != nil {
		return err
	}
	if f.io != IOPassthrough {
		return nil
	}
	c, err := f.repo.OpenContent(h)
	if err != nil {
		return err
	}
	defer c.Release()
	if c.Size() != size {
		return errSize
	}
	f.openBacked(id, h, int(c.File().Fd()), out)
	return nil
}

// contentStatus is status for an error about a content: the log line names it.
func (f *filesystem) contentStatus(op string, id uint64, h merkle.Hash, err error) fuse.Status {
	if err == nil {
		return fuse.OK
	}
	if name := h.String(); !strings.Contains(err.Error(), name) {
		err = fmt.Errorf("content %s: %w", name, err)
	}
	r, slot, _ := f.rows.get(id)
	return f.status(op, r, slot, err)
}

// Flush has nothing to write back; the kernel need not ask again.
func (f *filesystem) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status {
	f.counters.add(opFlush)
	return fuse.ENOSYS
}

// Read answers with file bytes. Only the end of the file makes a short answer.
func (f *filesystem) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	f.counters.add(opRead)
	h, size, st := f.fileEntry("read", in.NodeId)
	if !st.Ok() {
		return nil, st
	}
	if in.Offset >= size || len(buf) == 0 {
		return &readReply{}, fuse.OK
	}
	buf = buf[:min(uint64(len(buf)), size-in.Offset)]
	err := f.readContent(h, size, buf, int64(in.Offset))
	if err != nil {
		return nil, f.contentStatus("read", in.NodeId, h, err)
	}
	f.counters.bytesRead.Add(uint64(len(buf)))
	a := &readReply{data: [1][]byte{buf}}
	if size <= smallContent && in.Offset == 0 {
		r, slot, _ := f.rows.get(in.NodeId)
		a.push, a.next = f.push, f.push.prepare(r, slot)
	}
	return a, fuse.OK
}

// readReply is the answer to a READ. It has Slices, so that go-fuse writes it as
// it is and calls Done when it is on its way to the program.
type readReply struct {
	data [1][]byte
	push *pusher
	next *window // to be pushed after it; nil for nothing
}

func (a *readReply) Slices() ([][]byte, fuse.Status)    { return a.data[:], fuse.OK }
func (a *readReply) Bytes([]byte) ([]byte, fuse.Status) { return a.data[0], fuse.OK }
func (a *readReply) Size() int                          { return len(a.data[0]) }
func (a *readReply) Done() {
	if a.next != nil {
		a.push.send(a.next)
	}
}

// readContent fills buf, which lies within the content, from an offset.
func (f *filesystem) readContent(h merkle.Hash, size uint64, buf []byte, off int64) error {
	if size <= smallContent {
		return f.readSmall(h, size, buf, off)
	}
	c, err := f.repo.OpenContent(h)
	if err != nil {
		return err
	}
	defer c.Release()
	if c.Size() != size {
		return errSize
	}
	if c.File() != nil {
		if err := f.check(h); err != nil {
			return err
		}
	}
	n, err := c.ReadAt(buf, off)
	if n == len(buf) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		return errSize
	}
	return err
}

// recordSlack is the room beyond a content that lets a store read it with what
// stands before it, without memory of its own.
const recordSlack = 128

// buffers hold contents that do not fit the reply's own memory.
var buffers = sync.Pool{New: func() any { return new([smallContent + recordSlack]byte) }}

// readSmall reads and verifies a whole small content for any part of it.
func (f *filesystem) readSmall(h merkle.Hash, size uint64, buf []byte, off int64) error {
	dst := buf
	if off != 0 || uint64(len(buf)) < size || cap(buf)-len(buf) < recordSlack {
		p := buffers.Get().(*[smallContent + recordSlack]byte)
		defer buffers.Put(p)
		dst = p[:size]
	}
	b, err := f.repo.ReadContent(h, dst)
	if err != nil {
		return err
	}
	if uint64(len(b)) != size {
		return errSize
	}
	if &b[0] != &buf[0] {
		copy(buf, b[off:])
	}
	return nil
}

// Lseek finds data and holes. A content in a pack has no holes.
func (f *filesystem) Lseek(_ <-chan struct{}, in *fuse.LseekIn, out *fuse.LseekOut) fuse.Status {
	f.counters.add(opLseek)
	h, size, st := f.fileEntry("lseek", in.NodeId)
	if !st.Ok() {
		return st
	}
	if in.Whence != unix.SEEK_DATA && in.Whence != unix.SEEK_HOLE {
		return fuse.EINVAL
	}
	if in.Offset >= size {
		return fuse.Status(unix.ENXIO)
	}
	out.Offset = in.Offset
	if in.Whence == unix.SEEK_HOLE {
		out.Offset = size
	}
	if size <= smallContent {
		return fuse.OK
	}
	c, err := f.repo.OpenContent(h)
	if err != nil {
		return f.contentStatus("lseek", in.NodeId, h, err)
	}
	defer c.Release()
	return seekBacking(c, in, size, out)
}

// seekBacking asks the disk. The shared position that this moves is used by nobody.
func seekBacking(c *snapshot.Content, in *fuse.LseekIn, size uint64, out *fuse.LseekOut) fuse.Status {
	if c.File() == nil {
		return fuse.OK
	}
	off, err := unix.Seek(int(c.File().Fd()), int64(in.Offset), int(in.Whence))
	if err != nil {
		return fuse.ToStatus(err) // ENXIO: no data after the offset
	}
	out.Offset = min(uint64(off), size)
	return fuse.OK
}
