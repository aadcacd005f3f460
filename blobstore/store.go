package blobstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// Options are the same for every process that opens a store for one database.
type Options struct {
	DirMode  fs.FileMode // mode bits of folders, as chmod(2) takes them (02775: set-gid); 0: 0755 less the umask
	FileMode fs.FileMode // mode bits of packs and lock files; 0: 0644 less the umask. Whole files get FileMode & 0444.
	Limit    int         // bytes up to which PutFile puts a file into a pack, at most MaxRecord; 0: DefaultLimit

	// Owner names the caller's table of contents in each pack that is made; only packs with this
	// owner are appended to or cut back. Two tables that may write to one store, a table and its
	// copy above all, must have different owners: each would cut off what only the other knows.
	Owner [16]byte
}

// Store is the content store in one directory. Its methods may be called from any goroutine.
type Store struct {
	dir      string
	opts     Options
	limit    int64
	packSize uint64 // no pack grows beyond this many bytes

	packs *fdCache[uint32]      // packs open for reading
	whole *fdCache[merkle.Hash] // whole files open for reading
	seen  verified              // records whose bytes were hashed in this process
	stats counters

	trustSyncFS bool   // syncfs reports lost writes on this kernel
	midRead     func() // tests only: called behind each read of a source, to change it in the middle

	noVerity atomic.Bool // the file system has said that it has no fs-verity

	mu        sync.Mutex
	abandoned map[uint32]bool        // packs whose fsync failed: never appended to again by this process
	bad       map[merkle.Hash]fileID // whole files known to be wrong
	durable   [256]bool              // fan-out folders known to be durable entries of whole/
}

// Stats counts what the store asked of the disk since it was opened.
type Stats struct {
	Fsyncs       uint64 // fsync and fdatasync calls, on files and folders
	Syncfs       uint64 // syncfs calls
	BytesWritten uint64 // bytes handed to write, with headers; linked and cloned bytes are not written
	BytesHashed  uint64 // bytes that were read and hashed, of sources and by VerifyWhole; holes are not read
}

type counters struct{ fsyncs, syncfs, written, hashed atomic.Uint64 }

const (
	packsDir = "packs"
	wholeDir = "whole"
	tmpDir   = "tmp"
)

// Create makes the folders of an empty store in dir, and dir itself when it is missing (its parent
// must exist), durably. A store that is already there is left alone.
func Create(dir string, o Options) error {
	s := &Store{dir: dir, opts: o}
	if _, err := s.mkdir(dir); err != nil {
		return fmt.Errorf("create content store: %w", err)
	}
	for _, name := range []string{packsDir, wholeDir, tmpDir} {
		if _, err := s.mkdir(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("create content store: %w", err)
		}
	}
	for _, d := range []string{dir, filepath.Dir(filepath.Clean(dir))} {
		if err := s.syncDir(d); err != nil {
			return fmt.Errorf("create content store: %w", err)
		}
	}
	return nil
}

// Open opens the store in dir. It reads nothing yet and writes nothing. fs.ErrNotExist: dir is
// missing, or empty as the place is where a disk is not mounted; ErrTooLarge: Limit.
func Open(dir string, o Options) (*Store, error) {
	if o.Limit < 0 || o.Limit > MaxRecord {
		return nil, fmt.Errorf("open content store %s: pack limit of %d bytes: %w", dir, o.Limit, ErrTooLarge)
	}
	if o.Limit == 0 {
		o.Limit = DefaultLimit
	}
	for _, name := range []string{packsDir, wholeDir, tmpDir} {
		fi, err := os.Lstat(filepath.Join(dir, name))
		if err == nil && !fi.IsDir() {
			err = &fs.PathError{Op: "open", Path: filepath.Join(dir, name), Err: errors.New("not a folder")}
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the contents folder %s is missing or not mounted: %w", dir, err)
		}
		if err != nil {
			return nil, fmt.Errorf("open content store: %w", err)
		}
	}
	s := &Store{
		dir: dir, opts: o, limit: int64(o.Limit), packSize: defaultPackSize,
		abandoned: map[uint32]bool{}, bad: map[merkle.Hash]fileID{}, trustSyncFS: syncFSReports(),
	}
	s.packs = newFDCache(descriptorLimit(), s.openPack)
	s.whole = newFDCache(descriptorLimit(), s.openWhole)
	return s, nil
}

// Close drops the cached descriptors. Files that are still held (File.Release not yet called) stay
// usable.
func (s *Store) Close() error {
	return errors.Join(s.packs.purge(), s.whole.purge())
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	return Stats{
		Fsyncs: s.stats.fsyncs.Load(), Syncfs: s.stats.syncfs.Load(),
		BytesWritten: s.stats.written.Load(), BytesHashed: s.stats.hashed.Load(),
	}
}

func (s *Store) packPath(n uint32) string {
	return filepath.Join(s.dir, packsDir, fmt.Sprintf("%08x.pack", n))
}

// wholePath is safe whatever h holds: it is made of 64 hex digits.
func (s *Store) wholePath(h *merkle.Hash) string {
	x := h.String()
	return filepath.Join(s.dir, wholeDir, x[:2], x[2:])
}

// wholeMode is what whole files are sealed with: readable by whoever may read the store, writable
// by nobody.
func (s *Store) wholeMode() fs.FileMode {
	if s.opts.FileMode == 0 {
		return 0o444
	}
	return s.opts.FileMode & 0o444
}

// mkdir makes one folder, with the store's mode despite the umask when one was asked for. A folder
// that is there already is no error; made tells which it was.
func (s *Store) mkdir(path string) (made bool, err error) {
	mode := s.opts.DirMode
	if mode == 0 {
		mode = 0o755
	}
	if err := os.Mkdir(path, mode.Perm()); errors.Is(err, fs.ErrExist) {
		fi, err := os.Lstat(path)
		if err == nil && !fi.IsDir() {
			err = &fs.PathError{Op: "mkdir", Path: path, Err: errors.New("not a folder")}
		}
		return false, err
	} else if err != nil {
		return false, err
	}
	if s.opts.DirMode != 0 {
		if err := unix.Chmod(path, uint32(s.opts.DirMode)&0o7777); err != nil {
			return true, &fs.PathError{Op: "chmod", Path: path, Err: err}
		}
	}
	return true, nil
}

// createFile makes a new file for reading and writing, with the store's mode despite the umask when
// one was asked for.
func (s *Store) createFile(path string) (*os.File, error) {
	mode := s.opts.FileMode
	if mode == 0 {
		mode = 0o644
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, mode.Perm())
	if err != nil {
		return nil, err
	}
	if s.opts.FileMode != 0 {
		if err := f.Chmod(s.opts.FileMode.Perm()); err != nil {
			f.Close()
			os.Remove(path)
			return nil, err
		}
	}
	return f, nil
}
