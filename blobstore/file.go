package blobstore

import (
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"bole/merkle"
)

// putTries is how often a file that changes while it is read is tried.
const putTries = 3

// PutFile stores the bytes of the regular file f from its beginning, unless they are stored
// already, and returns their hash and number. path is for messages only. The position of f moves; f
// stays open. Files up to Limit go to a pack, larger ones become whole files: shared with the
// source where the disk can (FICLONE), else copied, holes as holes. What is stored always matches
// the hash; a file whose size, mtime or ctime moves while it is read is read again, and after the
// third time ErrChanged. Other errors: ErrNotRegular, ErrClosed, the system's; all name path.
func (b *Batch) PutFile(f *os.File, path string) (h merkle.Hash, size int64, err error) {
	for range putTries {
		h, size, err = b.putOnce(f, path)
		if !errors.Is(err, errMoved) {
			break
		}
		err = ErrChanged
	}
	if err != nil {
		return merkle.Hash{}, 0, fmt.Errorf("store %s: %w", path, err)
	}
	return h, size, nil
}

// errMoved says that one attempt met a file that changed meanwhile.
var errMoved = errors.New("file moved on")

func (b *Batch) putOnce(f *os.File, path string) (merkle.Hash, int64, error) {
	before, err := fstat(f)
	if err != nil {
		return merkle.Hash{}, 0, err
	}
	if !before.regular {
		return merkle.Hash{}, 0, ErrNotRegular
	}
	settle(f, before)
	var h merkle.Hash
	if before.size <= b.s.limit {
		h, err = b.putSmall(f, before)
	} else {
		h, err = b.putLarge(f, before, path)
	}
	return h, before.size, err
}

// tick is the longest step in which kernels without fine time stamps move a file's ctime (HZ=100).
const tick = 10 * time.Millisecond

// settle waits, where time stamps are coarse, until a change from now on gives the file another
// ctime than it has, so that the comparison afterwards cannot miss one made in the same tick.
func settle(f *os.File, st fileStat) {
	if age := time.Since(time.Unix(0, st.ctime)); age >= 0 && age < tick && !fineTimes(f) {
		time.Sleep(tick - age)
	}
}

// unchanged returns errMoved when the file is not what it was.
func unchanged(f *os.File, before fileStat) error {
	after, err := fstat(f)
	if err == nil && after.fileID != before.fileID {
		err = errMoved
	}
	return err
}

// smallBuffers hold one small file each and one byte more, by which growth is noticed.
var smallBuffers = sync.Pool{New: func() any { return new([]byte) }}

func (b *Batch) putSmall(f *os.File, before fileStat) (h merkle.Hash, err error) {
	bp := smallBuffers.Get().(*[]byte)
	defer smallBuffers.Put(bp)
	if int64(len(*bp)) <= b.s.limit {
		*bp = make([]byte, b.s.limit+1)
	}
	data, err := readUpTo(f, (*bp)[:before.size+1])
	if err != nil {
		return h, err
	}
	if b.s.midRead != nil {
		b.s.midRead()
	}
	if int64(len(data)) != before.size {
		return h, errMoved
	}
	if err := unchanged(f, before); err != nil {
		return h, err
	}
	return b.PutBytes(data)
}

// readUpTo reads the file from its beginning until buf is full or the file ends.
func readUpTo(f *os.File, buf []byte) ([]byte, error) {
	n := 0
	for n < len(buf) {
		m, err := f.ReadAt(buf[n:], int64(n))
		n += m
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return buf[:n], nil
}

// putLarge brings a file into tmp/, hashes it there, and leaves it for Sync.
func (b *Batch) putLarge(f *os.File, before fileStat, path string) (merkle.Hash, error) {
	w, err := b.temps.create(path)
	if err != nil {
		return merkle.Hash{}, err
	}
	h, err := b.fill(w, f, before)
	if err == nil {
		_, err = b.keep(&h, w)
	}
	if err != nil {
		return merkle.Hash{}, errors.Join(err, w.discard())
	}
	return h, nil
}

// fill makes the temporary file equal to the source, by clone or copy, and seals it.
func (b *Batch) fill(w *pendingWhole, f *os.File, before fileStat) (merkle.Hash, error) {
	w.size = before.size
	from, to := f, w.f
	cloned, err := clone(w.f, f)
	if err != nil {
		return merkle.Hash{}, err
	}
	if cloned {
		// The clone cannot change any more; hash it and not the source.
		if err := unchanged(f, before); err != nil {
			return merkle.Hash{}, err
		}
		from, to = w.f, nil
	}
	h, err := b.s.stream(from, before.size, to, b.stopped)
	if errors.Is(err, errShort) {
		err = errMoved
	}
	if err == nil && !cloned {
		err = unchanged(f, before)
	}
	if err == nil {
		err = b.s.seal(w)
	}
	return h, err
}
