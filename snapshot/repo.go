package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"bole/blobstore"
	"bole/lmdbstore"
	"bole/merkle"
)

// DirName is the folder that makes its parent a repository.
const DirName = ".bole"

var (
	// ErrNoRepository is returned when neither a folder nor its parents hold .bole.
	ErrNoRepository = errors.New("not in a repository (bole init makes one)")
	// ErrExists is returned by Init where a repository is already.
	ErrExists = errors.New("already a repository")
	// ErrBare is returned by whatever needs a working directory.
	ErrBare = errors.New("a bare repository has no working directory")
)

// InitOptions decide what cannot be changed afterwards.
type InitOptions struct {
	Bare      bool   // no working directory
	Shared    bool   // group may write
	Contents  string // folder for packs and whole files; "" = inside .bole
	NodeStore string // "" or "lmdb"
	Branch    string // first branch; "" = main
}

// OpenOptions say how a repository is opened.
type OpenOptions struct {
	// ReadOnly opens a repository on a read-only disk, without lock files.
	ReadOnly bool
	// Waiting is told once whenever another process holds a lock that is waited for.
	Waiting func(message string)
}

// Repo is an open repository. Safe for use from many goroutines.
type Repo struct {
	root    string // the folder that holds .bole, absolute, links resolved
	cfg     Config
	db      *lmdbstore.Store
	blobs   *blobstore.Store
	dbFiles [2]unix.Stat_t // what nobody but LMDB may open
	dbLock  *fileLock
	waiting func(string)
}

// Init makes a repository in dir, which may hold files already. It appears in
// one rename, so a killed init leaves no half repository. ErrExists when there is one.
func Init(dir string, o InitOptions) (err error) {
	if o.NodeStore == "" {
		o.NodeStore = "lmdb"
	}
	if o.NodeStore != "lmdb" {
		return fmt.Errorf("init: node store %q is not known (lmdb)", o.NodeStore)
	}
	if o.Branch == "" {
		o.Branch = "main"
	}
	if err := CheckRefName(o.Branch); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	if err := checkContents(dir, o); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	final := filepath.Join(dir, DirName)
	if _, err := os.Lstat(final); err == nil {
		return fmt.Errorf("init %s: %w", dir, ErrExists)
	}
	tmp := filepath.Join(dir, fmt.Sprintf("%s~init-%016x", DirName, rand.Uint64()))
	if err := os.Mkdir(tmp, 0o755); err != nil { // not MkdirTemp: its 0700 hides the umask
		return fmt.Errorf("init: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := fillRepository(tmp, o); err != nil {
		return fmt.Errorf("init %s: %w", dir, err)
	}
	if err := unix.Renameat2(unix.AT_FDCWD, tmp, unix.AT_FDCWD, final, unix.RENAME_NOREPLACE); err != nil {
		if errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("init %s: %w", dir, ErrExists)
		}
		return fmt.Errorf("init: rename %s: %w", tmp, err)
	}
	return nil
}

// checkContents refuses a folder for contents inside the working directory, where add would take
// the packs for files and store them in themselves.
func checkContents(dir string, o InitOptions) error {
	if o.Bare || o.Contents == "" {
		return nil
	}
	root, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	contents, err := filepath.Abs(o.Contents)
	if err != nil {
		return err
	}
	if _, inside := (&Repo{root: root}).insideRoot(contents); inside {
		return fmt.Errorf("contents folder %s: it lies in the working directory", contents)
	}
	return nil
}

func fillRepository(tmp string, o InitOptions) error {
	dirMode, fileMode := sharedModes(o.Shared)
	if err := chmodDir(tmp, dirMode); err != nil {
		return err
	}
	contents := filepath.Join(tmp, "contents")
	if o.Contents != "" {
		abs, err := filepath.Abs(o.Contents)
		if err != nil {
			return fmt.Errorf("contents folder: %w", err)
		}
		o.Contents, contents = abs, abs
	}
	cfg := Config{Core: CoreConfig{Bare: o.Bare, Shared: o.Shared, Contents: o.Contents, NodeStore: o.NodeStore}}
	if err := WriteConfig(filepath.Join(tmp, "config.toml"), cfg); err != nil {
		return err
	}
	for _, d := range []string{"db", "run", "tmp"} {
		if err := os.Mkdir(filepath.Join(tmp, d), 0o755); err != nil {
			return err
		}
		if err := chmodDir(filepath.Join(tmp, d), dirMode); err != nil {
			return err
		}
	}
	if err := blobstore.Create(contents, blobstore.Options{DirMode: dirMode, FileMode: fileMode}); err != nil {
		return err
	}
	db := filepath.Join(tmp, "db")
	opt := lmdbstore.Options{MapSize: testMapSize(), FileMode: fileMode}
	if err := lmdbstore.Create(db, opt); err != nil {
		return err
	}
	s, err := lmdbstore.Open(db, opt)
	if err != nil {
		return err
	}
	err = s.Update(func(w *lmdbstore.Writer) error {
		return w.Put(lmdbstore.Refs, []byte("HEAD"), encodeSymbolic(headsPrefix+o.Branch))
	})
	return errors.Join(err, s.Close())
}

// sharedModes are the modes that a shared repository gives its folders and files against the umask.
// Elsewhere they are 0: the umask says who may read.
func sharedModes(shared bool) (dir, file os.FileMode) {
	if shared {
		return 0o2775, 0o664
	}
	return 0, 0
}

// chmodDir sets a mode against the umask; 0 leaves what the umask gave.
func chmodDir(dir string, mode os.FileMode) error {
	if mode == 0 {
		return nil
	}
	if err := unix.Chmod(dir, uint32(mode)&0o7777); err != nil {
		return fmt.Errorf("chmod %s: %w", dir, err)
	}
	return nil
}

// testMapSize is the knob that lets tests meet a full map: BOLE_TEST_MAP_SIZE in bytes.
func testMapSize() int64 {
	n, err := strconv.ParseInt(os.Getenv("BOLE_TEST_MAP_SIZE"), 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// Find walks from start upwards to the folder that holds .bole.
func Find(start string) (string, error) {
	abs, err := filepath.Abs(start)
	if err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return "", fmt.Errorf("find repository: %w", err)
	}
	for dir := abs; ; dir = filepath.Dir(dir) {
		if fi, err := os.Lstat(filepath.Join(dir, DirName)); err == nil && fi.IsDir() {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("%s: %w", abs, ErrNoRepository)
		}
	}
}

// Open opens the repository whose .bole lies in root.
func Open(root string, o OpenOptions) (*Repo, error) {
	abs, err := filepath.Abs(root)
	if err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	if abs, err = filepath.EvalSymlinks(abs); err != nil {
		return nil, fmt.Errorf("open repository: %w", err)
	}
	r := &Repo{root: abs, waiting: o.Waiting}
	if _, err := os.Lstat(r.file("")); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: %w", abs, ErrNoRepository)
	}
	if r.cfg, err = ReadConfig(r.file("config.toml")); err != nil {
		return nil, err
	}
	if r.cfg == (Config{}) {
		return nil, fmt.Errorf("open repository: %s is missing or empty", r.file("config.toml"))
	}
	if r.cfg.Core.NodeStore != "lmdb" {
		return nil, fmt.Errorf("%s: node store %q is not known to this program", abs, r.cfg.Core.NodeStore)
	}
	if err := r.openStores(o); err != nil {
		return nil, errors.Join(fmt.Errorf("open repository %s: %w", abs, err), r.Close())
	}
	return r, nil
}

func (r *Repo) openStores(o OpenOptions) (err error) {
	if !o.ReadOnly {
		// Compaction replaces data.mdb and takes this lock exclusively.
		if r.dbLock, err = r.openLock("db.lock"); err != nil {
			return err
		}
		if err := r.dbLock.wait(context.Background(), unix.LOCK_SH, r.waiting); err != nil {
			return err
		}
	}
	dirMode, fileMode := sharedModes(r.cfg.Core.Shared)
	r.db, err = lmdbstore.Open(r.file("db"), lmdbstore.Options{
		MapSize: testMapSize(), ReadOnly: o.ReadOnly, FileMode: fileMode})
	if err != nil {
		return err
	}
	for i, name := range []string{"db/data.mdb", "db/lock.mdb"} {
		if err := unix.Stat(r.file(name), &r.dbFiles[i]); err != nil && !errors.Is(err, unix.ENOENT) {
			return fmt.Errorf("stat %s: %w", r.file(name), err)
		}
	}
	owner, err := packOwner(r.file("db"))
	if err != nil {
		return err
	}
	r.blobs, err = blobstore.Open(r.ContentsDir(), blobstore.Options{DirMode: dirMode, FileMode: fileMode, Owner: owner})
	return err
}

// Close lets go of the repository. Content handles must be released before.
func (r *Repo) Close() error {
	var err error
	if r.blobs != nil {
		err = r.blobs.Close()
	}
	if r.db != nil {
		err = errors.Join(err, r.db.Close())
	}
	if r.dbLock != nil {
		err = errors.Join(err, r.dbLock.close())
	}
	return err
}

// Root is the folder that holds .bole: absolute, links resolved.
func (r *Repo) Root() string { return r.root }

// Dir is the .bole folder.
func (r *Repo) Dir() string { return r.file("") }

// Bare says whether the repository has no working directory.
func (r *Repo) Bare() bool { return r.cfg.Core.Bare }

// Config returns a copy of the repository's configuration.
func (r *Repo) Config() Config { return r.cfg }

// SaveConfig replaces the repository's configuration.
func (r *Repo) SaveConfig(c Config) error {
	if err := WriteConfig(r.file("config.toml"), c); err != nil {
		return err
	}
	r.cfg = c
	return nil
}

// ContentsDir holds packs and whole files.
func (r *Repo) ContentsDir() string {
	if r.cfg.Core.Contents != "" {
		return r.cfg.Core.Contents
	}
	return r.file("contents")
}

// View lends a reader of the node tables. Lent bytes die when fn returns.
func (r *Repo) View(fn func(merkle.Reader) error) error {
	return r.db.View(func(rd *lmdbstore.Reader) error { return fn(rd) })
}

// file is a path inside .bole.
func (r *Repo) file(name string) string { return filepath.Join(r.root, DirName, name) }

func (r *Repo) fileMode(m os.FileMode) os.FileMode {
	if r.cfg.Core.Shared {
		return m | 0o060
	}
	return m
}
