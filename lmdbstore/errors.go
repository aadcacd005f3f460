package lmdbstore

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// The errors of this package, to be asked for with errors.Is. All but
// ErrNotFound and ErrStop come wrapped with the path of the database.
var (
	// ErrNotFound is returned by Get for a key that its table does not hold.
	ErrNotFound = errors.New("key not found")
	// ErrStop, returned by the function given to Scan or Nodes, ends the scan without an error.
	ErrStop = errors.New("stop")
	// ErrCollision is returned by PutNode, or by the Update around it, for a
	// node whose key is taken by a node with other bytes. Nothing is overwritten.
	ErrCollision = errors.New("another node has the same key")
	// ErrMapFull means that the database has reached its map size (or the
	// address space that the process may use). Nothing of the transaction remains.
	ErrMapFull = errors.New("database is full: it has reached the size of its memory map; " +
		"lift the limit on this process's address space (ulimit -v) or remove what is no longer needed")
	// ErrReadersFull means that all reader slots of the database are taken by living processes.
	ErrReadersFull = errors.New("too many processes are reading this database")
	// ErrBadDisk is returned by Create and Open for a database on NFS, SMB or FUSE.
	ErrBadDisk = errors.New("a database cannot live on this kind of file system")
	// ErrPageUnreadable means that pages of the database are missing, cannot be read or make no sense.
	ErrPageUnreadable = errors.New("database page unreadable, run bole fsck")
	// ErrSamePID is returned by Open when a process in another container (another
	// PID namespace) with this process's PID has the database open. A child
	// process has another PID and can open it.
	ErrSamePID = errors.New("a process with the same process id, in another container, has this database open")
	// ErrTooLarge is returned by an Update that would dirty more pages than LMDB handles in one transaction.
	ErrTooLarge = errors.New("too many changes for one transaction")
	// ErrClosed is returned by every operation on a closed Store.
	ErrClosed = errors.New("database is closed")
	// ErrBusy is returned by Close while a View or Update is running.
	ErrBusy = errors.New("database is in use by this process")
	// ErrOpenTwice is returned by Open for a database that this process has
	// open already: closing one of the two would drop the locks of both.
	ErrOpenTwice = errors.New("database is already open in this process")
	// ErrFormat means that the folder holds no Bole database, or one of a later format.
	ErrFormat = errors.New("not a database of a format known here")
	// ErrReadOnly is returned by Update on a Store that was opened read-only.
	ErrReadOnly = fmt.Errorf("database is open read-only: %w", fs.ErrPermission)
	// ErrDuringScan is returned by writes from inside the function given to
	// Scan: they would move the records that the scan lends.
	ErrDuringScan = errors.New("write during a scan of the same transaction")
	// ErrWriteFailed is returned by Update after a commit failed with an
	// input/output error: what the disk holds is unknown until the database
	// has been closed and opened again.
	ErrWriteFailed = errors.New("an earlier write to this database failed")
)

// unreadable returns an ErrPageUnreadable that names the database file and
// what was being done.
func (s *Store) unreadable(doing string) error {
	return fmt.Errorf("%s: %s: %w", s.dataFile(), doing, ErrPageUnreadable)
}

// errno returns the operating system's error inside an error of lmdb-go,
// whose OpError does not unwrap.
func errno(err error) (syscall.Errno, bool) {
	var op *lmdb.OpError
	if errors.As(err, &op) {
		err = op.Errno
	}
	var e syscall.Errno
	ok := errors.As(err, &e)
	return e, ok
}

// wrap translates an error of lmdb-go into one of this package's, or into a
// *fs.PathError on the database file, so that errors.Is finds syscall errors.
func (s *Store) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	code := err
	var op *lmdb.OpError
	if errors.As(err, &op) {
		code = op.Errno
	}
	kind := error(nil)
	switch code {
	case lmdb.MapFull:
		kind = ErrMapFull
	case lmdb.ReadersFull:
		kind = ErrReadersFull
	case lmdb.TxnFull:
		kind = ErrTooLarge
	case lmdb.Panic:
		kind = ErrWriteFailed
	case lmdb.MapResized:
		return fmt.Errorf("%s: %s: the database is larger than the memory map: %w", s.dataFile(), doing, ErrMapFull)
	case lmdb.Corrupted, lmdb.PageNotFound, lmdb.CursorFull, lmdb.Invalid, lmdb.Incompatible, lmdb.BadTxn, lmdb.NotFound:
		// NotFound is translated by Get and Scan; anywhere else it means that
		// a page that must be there is not.
		kind = ErrPageUnreadable
	}
	if kind != nil {
		return fmt.Errorf("%s: %s: %w", s.dataFile(), doing, kind)
	}
	if e, ok := errno(err); ok {
		return &fs.PathError{Op: doing, Path: s.dataFile(), Err: e}
	}
	return fmt.Errorf("%s: %s: %w", s.dataFile(), doing, err)
}
