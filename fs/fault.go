package fs

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

const enametoolong = unix.ENAMETOOLONG

// fuseErrno is an error that is an answer of its own and no damage.
type fuseErrno fuse.Status

func (e fuseErrno) Error() string { return fuse.Status(e).String() }

// errSize is a content that is not as long as its entry says. It is never
// served: the kernel would take a short answer for a new end of the file.
var errSize = errors.New("content has another size than its entry")

func checkTarget(target []byte, size uint64) error {
	if uint64(len(target)) != size {
		return errSize
	}
	if len(target) == 0 || len(target) > merkle.MaxTarget || bytes.IndexByte(target, 0) >= 0 {
		return errors.New("content cannot be a symlink target")
	}
	return nil
}

// status turns an error into the errno of docs/SEMANTICS.md. Whatever comes
// from damaged or missing data is EIO and one line in the log, which names the
// path and, by the error, the hash.
func (f *filesystem) status(op string, r *row, slot uint32, err error) fuse.Status {
	var own fuseErrno
	switch {
	case err == nil:
		return fuse.OK
	case errors.As(err, &own):
		return fuse.Status(own)
	case errors.Is(err, merkle.ErrNotFound), errors.Is(err, errStale):
		return fuse.Status(unix.ESTALE)
	case errors.Is(err, errSlots):
		return fuse.Status(unix.EOVERFLOW)
	}
	f.report(op, r, slot, err)
	return fuse.EIO
}

// journal remembers what was logged, so that a program that retries a damaged
// file fills no disk. It is forgotten when it is full, not stopped.
type journal struct {
	mu   sync.Mutex
	seen map[string]struct{}
}

const journalSize = 4096

// fresh says whether a line was not logged lately.
func (j *journal) fresh(line string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	if _, ok := j.seen[line]; ok {
		return false
	}
	if j.seen == nil || len(j.seen) >= journalSize {
		j.seen = make(map[string]struct{})
	}
	j.seen[line] = struct{}{}
	return true
}

func (f *filesystem) report(op string, r *row, slot uint32, err error) {
	path := "?"
	if r != nil {
		path = f.path(r, slot)
	}
	line := fmt.Sprintf("%s %q: %v", op, path, err)
	if f.journal.fresh(line) {
		f.log.Error(line)
	}
}

// path is where a node lies below the mount's root, "." for the root; a name
// that cannot be read is "?".
func (f *filesystem) path(r *row, slot uint32) string {
	var names []string
	_ = f.repo.View(func(rd merkle.Reader) error { // only for a log line that says something is broken already
		for r.parent != nil || slot != 0 {
			if slot == 0 {
				r, slot = r.parent, r.slot
			}
			name := "?"
			var e merkle.Entry
			if f.entry(rd, r, slot, &e) == nil {
				name = string(e.Name)
			}
			names = append(names, name)
			slot = 0
		}
		return nil
	})
	if len(names) == 0 {
		return "."
	}
	for i, j := 0, len(names)-1; i < j; i, j = i+1, j-1 {
		names[i], names[j] = names[j], names[i]
	}
	return strings.Join(names, "/")
}
