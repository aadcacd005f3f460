package snapshot

import (
	"errors"
	"fmt"
	"io"
	"os"

	"bole/blobstore"
	"bole/lmdbstore"
	"bole/merkle"
)

// ErrNoContent is returned when the index of contents does not know a hash.
var ErrNoContent = errors.New("content is not in the repository")

// ErrDamaged is returned, naming the content, when stored bytes do not have their hash.
var ErrDamaged = blobstore.ErrDamaged

func blobLocation(t tableReader, h *merkle.Hash) (blobstore.Location, bool, error) {
	b, err := t.Get(lmdbstore.Blobs, h[:])
	if errors.Is(err, lmdbstore.ErrNotFound) {
		return blobstore.Location{}, false, nil
	}
	if err != nil {
		return blobstore.Location{}, false, fmt.Errorf("look up content %s: %w", h, err)
	}
	loc, err := blobstore.DecodeLocation(b)
	if err != nil {
		return loc, false, fmt.Errorf("content %s: %w", h, err)
	}
	return loc, true, nil
}

// locate holds a reader for the lookup alone, never while the content is read.
func (r *Repo) locate(h *merkle.Hash) (loc blobstore.Location, err error) {
	err = r.db.View(func(rd *lmdbstore.Reader) error {
		var ok bool
		loc, ok, err = blobLocation(rd, h)
		if err == nil && !ok {
			err = fmt.Errorf("%s: %w", h, ErrNoContent)
		}
		return err
	})
	return loc, err
}

// ReadContent returns the whole verified content h, in the memory of dst when
// that has room for it and blobstore.RecordHeader bytes more. It is meant for small contents; whole files are read into memory too.
// ErrNoContent, ErrDamaged.
func (r *Repo) ReadContent(h merkle.Hash, dst []byte) ([]byte, error) {
	loc, err := r.locate(&h)
	if err != nil {
		return nil, err
	}
	if loc.Pack != 0 {
		return r.blobs.ReadSmall(h, loc, dst)
	}
	f, err := r.blobs.Whole(h)
	if err != nil {
		return nil, err
	}
	defer f.Release()
	if fi, err := f.File().Stat(); err != nil {
		return nil, fmt.Errorf("read content %s: %w", h, err)
	} else if uint64(fi.Size()) != loc.Length {
		return nil, fmt.Errorf("content %s: %w: its file has %d bytes, the index says %d", h, ErrDamaged, fi.Size(), loc.Length)
	}
	if dst = dst[:0]; uint64(cap(dst)) < loc.Length {
		dst = make([]byte, 0, loc.Length)
	}
	dst = dst[:loc.Length]
	if n, err := f.File().ReadAt(dst, 0); n < len(dst) {
		return nil, fmt.Errorf("read content %s: %w", h, err)
	}
	if merkle.ContentHash(dst) != h {
		return nil, fmt.Errorf("content %s: %w", h, ErrDamaged)
	}
	return dst, nil
}

// Content is an open content. Release it; its bytes stay readable until then.
type Content struct {
	size  uint64
	small []byte
	whole *blobstore.File
}

// OpenContent opens a content for reading. A small one is read and verified
// now; a whole file is opened as it is (VerifyContent checks it).
func (r *Repo) OpenContent(h merkle.Hash) (*Content, error) {
	loc, err := r.locate(&h)
	if err != nil {
		return nil, err
	}
	c := &Content{size: loc.Length}
	if loc.Pack != 0 {
		c.small, err = r.blobs.ReadSmall(h, loc, nil)
	} else {
		c.whole, err = r.blobs.Whole(h)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Size is the length in bytes.
func (c *Content) Size() uint64 { return c.size }

// File is the file of a whole content, nil for a small one. It is shared: use ReadAt and the descriptor only.
func (c *Content) File() *os.File {
	if c.whole == nil {
		return nil
	}
	return c.whole.File()
}

// ReadAt reads like io.ReaderAt.
func (c *Content) ReadAt(p []byte, off int64) (int, error) {
	if c.whole != nil {
		return c.whole.File().ReadAt(p, off)
	}
	if off < 0 || off >= int64(len(c.small)) {
		return 0, io.EOF
	}
	n := copy(p, c.small[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// Release gives the descriptor back.
func (c *Content) Release() {
	if c.whole != nil {
		c.whole.Release()
		c.whole = nil
	}
}

// IsWhole says whether a content is a file of its own on disk (which
// passthrough and reflinks need) rather than a record of a pack.
func (r *Repo) IsWhole(h merkle.Hash) (bool, error) {
	loc, err := r.locate(&h)
	return loc.Pack == 0, err
}

// VerifyContent reads a content and compares it with its hash: ErrDamaged, ErrNoContent.
func (r *Repo) VerifyContent(h merkle.Hash) error {
	loc, err := r.locate(&h)
	if err != nil {
		return err
	}
	return r.blobs.Verify(h, loc)
}
