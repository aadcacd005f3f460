// Package lmdbstore owns a repository's database: one LMDB environment with a
// fixed set of tables, pooled readers and the one way to write. It is the only
// importer of lmdb-go and of cgo. It never decides what keys and values mean
// (only that nodes are named by their hash and are canonical), never opens
// data.mdb or lock.mdb itself (closing one would drop the locks that LMDB
// holds for the whole process) and never logs.
//
// Lifetimes: bytes lent by a Reader point into the memory map and die when the
// function given to View returns; bytes lent by a Writer die with its next
// write. A Reader and a Writer belong to the goroutine that runs the function.
// One process opens a database once.
//
// Lock order: Store.writing (one Update of this process at a time), then
// LMDB's write lock between processes, then pool.mu. Readers take pool.mu only,
// for a few instructions; readers never wait for writers.
//
// A page that cannot be read is an error where LMDB notices it itself, and one
// sentence on standard error and exit status 1 where it faults inside C (see
// fault.c); nothing a damaged file holds makes this package loop.
package lmdbstore

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/bmatsuo/lmdb-go/lmdb"
	"golang.org/x/sys/unix"
)

const (
	// DefaultMapSize is the size in bytes of the address range that a database
	// may grow into. The file is only as long as its data.
	DefaultMapSize = 1 << 40
	// smallMapSize is taken when the address space of the process is limited.
	smallMapSize = 4 << 30
	// maxReaders is the least number of reader slots, over all processes; LMDB
	// makes as many as fit lock.mdb.
	maxReaders = 1024
	// readWhole is the length in bytes up to which a database is read ahead whole at open.
	readWhole = 64 << 20
	// openPatience is how long Open goes on when another process is just
	// opening or closing the database.
	openPatience = time.Second
	// format is the version of the tables; see docs/FORMAT.md.
	format = 1
	// pageHeader is the length of LMDB's page header in bytes.
	pageHeader = 16
)

// formatKey is the key in table Meta whose value is the format, 4 bytes little endian.
var formatKey = []byte("format")

// Options say how a database is opened. The zero value is right for a repository.
type Options struct {
	// MapSize is the address range in bytes that the database may fill; 0 is
	// DefaultMapSize, or 4 GiB where the address space is limited.
	MapSize int64
	// ReadOnly refuses Update, and opens a database on a disk that is itself
	// mounted read-only without its lock file. On any other disk readers still
	// need write permission on lock.mdb.
	ReadOnly bool
	// FileMode is the permission of data.mdb and lock.mdb at Create, whatever
	// the umask; 0 is 0666 less the umask.
	FileMode os.FileMode
}

// Store is an open database. Its methods may be called by several goroutines at once.
type Store struct {
	dir      string
	env      *lmdb.Env
	dbi      [numTables]lmdb.DBI
	fd       int            // LMDB's own descriptor of data.mdb; lent, never closed here
	base     unsafe.Pointer // where the map begins
	mapSize  uintptr        // bytes
	pageSize int            // bytes
	readOnly bool
	whole    bool // was read ahead whole at open
	limits   limits
	id       fileID

	reads    atomic.Uint64 // records read, for noteRead
	readers  pool
	verified *verifiedTable
	checked  atomic.Uint64 // last transaction id for which the file's length was checked, plus one
	end      atomic.Uint64 // length of data.mdb in bytes at that check

	writing sync.Mutex
	failed  atomic.Bool // a commit failed with an input/output error

	stop chan struct{} // closed by Close
	done chan struct{} // closed when the reader check has ended
}

// fileID is what tells one folder from another.
type fileID struct{ dev, ino uint64 }

// opened holds the databases that this process has open.
var opened = struct {
	sync.Mutex
	ids map[fileID]bool
}{ids: map[fileID]bool{}}

func (s *Store) dataFile() string { return filepath.Join(s.dir, "data.mdb") }
func (s *Store) lockFile() string { return filepath.Join(s.dir, "lock.mdb") }

// Dir returns the folder of the database, as it was given to Open.
func (s *Store) Dir() string { return s.dir }

// Open opens the database in folder dir, which Create has made. It goes on
// for a second while another process is just opening or closing it. Errors:
// ErrBadDisk, ErrFormat, ErrSamePID, ErrOpenTwice, ErrReadersFull,
// ErrPageUnreadable, fs.ErrNotExist, fs.ErrPermission.
func Open(dir string, o Options) (*Store, error) {
	s, err := open(dir, o, 0)
	if err != nil {
		return nil, fmt.Errorf("open database: %w", err)
	}
	return s, nil
}

// open does the work of Open and Create; with extra = lmdb.Create missing
// tables and files are made.
func open(dir string, o Options, extra uint) (*Store, error) {
	s, err := openBare(dir, o, extra)
	if err != nil {
		return nil, err
	}
	if err := s.openTables(extra); err != nil {
		s.discard()
		return nil, err
	}
	s.readAhead()
	s.clearDeadReaders()
	go s.watchReaders()
	return s, nil
}

// openBare opens the environment; of the file it has only the meta pages read.
func openBare(dir string, o Options, extra uint) (_ *Store, err error) {
	s := &Store{
		dir: dir, readOnly: o.ReadOnly, verified: new(verifiedTable), limits: defaultLimits,
		stop: make(chan struct{}), done: make(chan struct{}),
	}
	diskReadOnly, err := checkDisk(dir)
	if err != nil {
		return nil, err
	}
	if diskReadOnly && !o.ReadOnly {
		return nil, &os.PathError{Op: "open", Path: s.dataFile(), Err: syscall.EROFS}
	}
	if err := s.register(); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.discard()
		}
	}()
	if extra&lmdb.Create == 0 {
		// LMDB would make an empty database.
		if _, err := os.Stat(s.dataFile()); err != nil {
			return nil, err
		}
	}
	if err := s.openLocked(o, diskReadOnly); err != nil {
		return nil, err
	}
	return s, s.learn()
}

// openLocked opens the environment with its lock file, or without one on a
// disk that nobody can write.
func (s *Store) openLocked(o Options, diskReadOnly bool) error {
	flags := uint(lmdb.NoTLS)
	if o.ReadOnly {
		flags |= lmdb.Readonly
	}
	if diskReadOnly {
		return s.openPatiently(flags|lmdb.NoLock, o)
	}
	if err := s.allocateLock(); err != nil {
		return err
	}
	if err := s.openPatiently(flags, o); err != nil {
		return err
	}
	return s.populateLock()
}

// register notes that this process has the database open.
func (s *Store) register() error {
	var st unix.Stat_t
	if err := unix.Stat(s.dir, &st); err != nil {
		return &os.PathError{Op: "stat", Path: s.dir, Err: err}
	}
	id := fileID{uint64(st.Dev), st.Ino}
	opened.Lock()
	defer opened.Unlock()
	if opened.ids[id] {
		return fmt.Errorf("%s: %w", s.dir, ErrOpenTwice)
	}
	opened.ids[id] = true
	s.id = id
	return nil
}

// discard closes the environment and takes back register.
func (s *Store) discard() {
	if s.env != nil {
		s.env.Close()
		s.env = nil
	}
	opened.Lock()
	delete(opened.ids, s.id)
	opened.Unlock()
}

// openPatiently opens the environment, again and again for openPatience when
// the error is one that another process's opening or closing can cause.
func (s *Store) openPatiently(flags uint, o Options) error {
	size := o.MapSize
	if size == 0 {
		size = DefaultMapSize
	}
	mode := o.FileMode
	if mode == 0 {
		mode = 0o666
	}
	deadline := time.Now().Add(openPatience)
	for {
		err := s.openEnv(flags, size, mode)
		if err == nil {
			return nil
		}
		if lmdb.IsErrno(err, lmdb.VersionMismatch) {
			return fmt.Errorf("%s: %w", s.dataFile(), ErrFormat)
		}
		code, isErrno := errno(err)
		if !isErrno {
			return s.wrap("open", err)
		}
		if code == syscall.ENOMEM && o.MapSize == 0 && size != smallMapSize {
			size = smallMapSize
			continue
		}
		// LMDB 0.9.19 looks at an errno that an earlier call may have left
		// behind when another process holds the lock file, so no error of the
		// system is believed before it has lasted.
		if why := s.explainPermission(code); why != nil {
			return why
		}
		if code == syscall.ENOMEM || time.Now().After(deadline) {
			return s.wrap("open", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func (s *Store) openEnv(flags uint, size int64, mode os.FileMode) error {
	env, err := lmdb.NewEnv()
	if err != nil {
		return err
	}
	watch(env)
	err = env.SetMapSize(size)
	if err == nil {
		err = env.SetMaxReaders(maxReaders)
	}
	if err == nil {
		err = env.SetMaxDBs(int(numTables) + 4)
	}
	if err == nil {
		err = env.Open(s.dir, flags, mode.Perm())
	}
	if err != nil {
		env.Close()
		return err
	}
	s.env = env
	return nil
}

// explainPermission returns an error that names the file whose permissions
// are in the way, or nil when none is.
func (s *Store) explainPermission(code syscall.Errno) error {
	if code != syscall.EACCES && code != syscall.EPERM {
		return nil
	}
	for _, path := range []string{s.lockFile(), s.dataFile()} {
		mode := uint32(unix.R_OK | unix.W_OK)
		if s.readOnly && path == s.dataFile() {
			mode = unix.R_OK
		}
		if err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS); err == unix.EACCES {
			hint := "a shared repository gives its group write permission on the files of its database"
			if path == s.lockFile() {
				hint = "readers too need write permission on it; " + hint
			}
			return fmt.Errorf("%w (%s)", &os.PathError{Op: "open", Path: path, Err: code}, hint)
		}
	}
	return nil
}

// learn reads from the environment what the rest of the package needs and
// checks the file's length before any page is touched.
func (s *Store) learn() error {
	fd, err := s.env.FD()
	if err != nil {
		return s.wrap("open", err)
	}
	s.fd = int(fd)
	stat, err := s.env.Stat()
	if err != nil {
		return s.wrap("open", err)
	}
	s.pageSize = int(stat.PSize)
	info, err := s.env.Info()
	if err != nil {
		return s.wrap("open", err)
	}
	s.mapSize = uintptr(info.MapSize)
	if s.base, err = mapAddress(s.env, s.pageSize); err != nil {
		return err
	}
	return s.checkLength()
}

// openTables opens (with lmdb.Create: makes) the tables and checks the format.
func (s *Store) openTables(extra uint) error {
	flags := uint(lmdb.Readonly)
	if extra != 0 {
		flags = 0
		runtime.LockOSThread() // LMDB's write lock belongs to the thread that took it
		defer runtime.UnlockOSThread()
	}
	txn, err := s.beginRead(flags)
	if err != nil {
		return err
	}
	defer txn.Abort()
	for t := range numTables {
		s.dbi[t], err = txn.OpenDBI(t.String(), extra)
		if lmdb.IsNotFound(err) {
			return fmt.Errorf("%s: no table %q: %w", s.dataFile(), t, ErrFormat)
		} else if err != nil {
			return s.wrap("open table "+t.String(), err)
		}
	}
	txn.RawRead = true
	value, err := s.get(txn, Meta, formatKey)
	switch {
	case err == ErrNotFound && extra != 0:
		if err := txn.Put(s.dbi[Meta], formatKey, binary.LittleEndian.AppendUint32(nil, format), 0); err != nil {
			return s.wrap("write", err)
		}
	case err == ErrNotFound:
		return fmt.Errorf("%s: no format version: %w", s.dataFile(), ErrFormat)
	case err != nil:
		return err
	case extra != 0:
		return &os.PathError{Op: "create", Path: s.dir, Err: os.ErrExist}
	case len(value) != 4 || binary.LittleEndian.Uint32(value) != format:
		return fmt.Errorf("%s: format %x: %w", s.dataFile(), value, ErrFormat)
	}
	// Only a transaction that ends well leaves its table handles behind.
	return s.wrap("open", txn.Commit())
}

// Close closes the database. It waits for nothing: while a View or Update is
// running it returns ErrBusy and the Store stays open. A second Close returns ErrClosed.
func (s *Store) Close() error {
	if err := s.readers.close(); err != nil {
		return fmt.Errorf("close database %s: %w", s.dir, err)
	}
	close(s.stop)
	<-s.done
	s.discard()
	return nil
}
