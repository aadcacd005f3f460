package blobstore

import (
	"errors"
	"fmt"

	"bole/merkle"
)

var (
	// ErrDamaged is matched by every error that says stored bytes are not what their hash promises:
	// a flipped byte, a pack or whole file that is cut off or missing, a record that is not where
	// its Location points.
	ErrDamaged = errors.New("content is damaged")

	// ErrChanged reports a source file that kept changing while it was read, or that was changed
	// after it was linked.
	ErrChanged = errors.New("file changed while it was being stored")

	// ErrNotRegular reports a source that is no regular file.
	ErrNotRegular = errors.New("not a regular file")

	// ErrClosed reports the use of a batch after Close.
	ErrClosed = errors.New("batch is closed")

	// ErrTooLarge reports content over MaxRecord bytes for a pack.
	ErrTooLarge = errors.New("content is too large for a pack")

	// ErrNoLock reports that the file system of the store does not offer flock(2), without which
	// writers cannot share it.
	ErrNoLock = errors.New("file system does not support flock")

	// ErrLocation reports bytes that are not the encoding of a Location.
	ErrLocation = errors.New("malformed content location")
)

// DamageError says which stored content is damaged and where. errors.Is(err, ErrDamaged) holds for
// it, and errors.Is also sees the cause, for example fs.ErrNotExist when the file is missing.
type DamageError struct {
	Hash   merkle.Hash // the content; zero when the damage hides it (a torn record header)
	Pack   uint32      // pack number; 0 for a whole file
	Offset uint64      // of the record in the pack, bytes
	Path   string      // the pack or whole file
	Reason string      // what is wrong, in a few words
	Err    error       // the system's error, or nil
}

// Error names the content, the file and the offset.
func (e *DamageError) Error() string {
	what := "content " + e.Hash.String()
	if e.Hash.IsZero() {
		what = "record"
	}
	where := e.Path
	if e.Pack != 0 {
		where = fmt.Sprintf("%s at offset %d", e.Path, e.Offset)
	}
	if e.Err != nil {
		return fmt.Sprintf("%s is damaged: %s: %s: %v", what, where, e.Reason, e.Err)
	}
	return fmt.Sprintf("%s is damaged: %s: %s", what, where, e.Reason)
}

// Is makes every DamageError match ErrDamaged.
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// Unwrap returns the system's error behind the damage, if there is one.
func (e *DamageError) Unwrap() error { return e.Err }
