package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// ErrFolds is matched by FoldError.
var ErrFolds = errors.New("the file system takes two names for one")

// FoldError names two paths of a commit that a file system which ignores case
// or normalises names cannot keep apart. Nothing was written.
type FoldError struct{ Path, Other string }

// Error names both paths.
func (e *FoldError) Error() string {
	return fmt.Sprintf("%v: %q and %q", ErrFolds, e.Path, e.Other)
}

// Is makes errors.Is(err, ErrFolds) true.
func (e *FoldError) Is(target error) bool { return target == ErrFolds }

const foldScratch = "fold-*"

// casefoldFlag is FS_CASEFOLD_FL of linux/fs.h: the names in a directory are compared without case.
const casefoldFlag = 0x40000000

// foldCheck asks the file system itself, since only it knows its rules: in a
// scratch folder beside the database the names of each directory of the target
// are made in turn, and one that exists already is the collision. A file system
// that keeps case and form apart is known by two probes; where single
// directories fold, those are found by their flag when the checkout sees them.
type foldCheck struct {
	ctx     context.Context
	repo    *Repo
	target  *merkle.Entry
	scratch string
	all     bool     // everything was checked
	dirs    []string // directories that fold by themselves, the outermost ones
	last    string
}

// newFoldCheck checks the whole target where the file system folds everywhere. Close it.
func (r *Repo) newFoldCheck(ctx context.Context, target *merkle.Entry) (c foldCheck, err error) {
	c = foldCheck{ctx: ctx, repo: r, target: target, last: "/"}
	if c.scratch, err = os.MkdirTemp(r.file("tmp"), foldScratch); err != nil {
		return c, fmt.Errorf("try the file system: %w", err)
	}
	if c.all, err = foldsNames(c.scratch); err == nil && c.all {
		err = c.tree(c.scratch, "", target.Hash)
	}
	if err != nil {
		return c, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *foldCheck) close() error { return os.RemoveAll(c.scratch) }

// foldsNames tries letter case and Unicode composition.
func foldsNames(dir string) (bool, error) {
	for _, pair := range [][2]string{{"probe-Ab", "probe-aB"}, {"probe-\u00e9", "probe-e\u0301"}} {
		if err := os.WriteFile(filepath.Join(dir, pair[0]), nil, 0o600); err != nil {
			return false, fmt.Errorf("try the file system: %w", err)
		}
		if _, err := os.Lstat(filepath.Join(dir, pair[1])); err == nil {
			return true, nil
		}
	}
	return false, nil
}

// see looks at the flag of the directory that l has open, when it is that of a path.
func (c *foldCheck) see(l *looker, path string) {
	dir := parentPath(path)
	if c.all || dir == c.last || l.dir != dir || l.dirfd < 0 {
		return
	}
	c.last = dir
	if n := len(c.dirs); n > 0 && (dir == c.dirs[n-1] || strings.HasPrefix(dir, c.dirs[n-1]+"/")) {
		return
	}
	if flags, err := unix.IoctlGetInt(l.dirfd, unix.FS_IOC_GETFLAGS); err == nil && flags&casefoldFlag != 0 {
		c.dirs = append(c.dirs, dir)
	}
}

// run checks what lies in the directories that fold.
func (c *foldCheck) run() error {
	for _, dir := range c.dirs {
		var e *merkle.Entry
		err := c.repo.View(func(rd merkle.Reader) (err error) {
			e, err = entryAt(rd, c.target, dir)
			return err
		})
		if err != nil || e == nil || e.Kind != merkle.KindDir {
			return err
		}
		here, err := os.MkdirTemp(c.scratch, "flag-*")
		if err == nil {
			err = setCasefold(here)
		}
		if err != nil {
			return fmt.Errorf("try the file system: %w", err)
		}
		if err := c.tree(here, dir, e.Hash); err != nil {
			return err
		}
	}
	c.dirs = nil
	return nil
}

func setCasefold(dir string) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	flags, err := unix.IoctlGetInt(fd, unix.FS_IOC_GETFLAGS)
	if err != nil {
		return err
	}
	return unix.IoctlSetPointerInt(fd, unix.FS_IOC_SETFLAGS, flags|casefoldFlag)
}

// tree makes the names of a directory of the target, then those of the
// directories in it. In the root .bole is taken, however it may be spelled.
func (c *foldCheck) tree(scratch, path string, dir merkle.Hash) error {
	here, err := os.MkdirTemp(scratch, "d-*")
	if err == nil && path == "" {
		err = os.Mkdir(filepath.Join(here, DirName), 0o700)
	}
	if err != nil {
		return fmt.Errorf("try the file system: %w", err)
	}
	err = c.repo.eachEntry(c.ctx, dir, func(e *merkle.Entry) error {
		fd, err := unix.Open(filepath.Join(here, string(e.Name)), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, unix.EEXIST) {
			return &FoldError{Path: joinPath(path, e.Name), Other: joinPath(path, foldTwin(here, string(e.Name)))}
		}
		if err != nil {
			return fmt.Errorf("the file system does not take the name %q: %w", joinPath(path, e.Name), err)
		}
		return unix.Close(fd)
	})
	if err != nil {
		return err
	}
	if err := os.RemoveAll(here); err != nil {
		return fmt.Errorf("try the file system: %w", err)
	}
	return c.repo.eachEntry(c.ctx, dir, func(e *merkle.Entry) error {
		if e.Kind != merkle.KindDir {
			return nil
		}
		return c.tree(scratch, joinPath(path, e.Name), e.Hash)
	})
}

// foldTwin finds the name that stands where another was to be made.
func foldTwin(dir, name string) string {
	fi, err := os.Lstat(filepath.Join(dir, name))
	if err != nil {
		return name
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return name
	}
	for _, d := range names {
		if other, err := d.Info(); err == nil && os.SameFile(fi, other) {
			return d.Name()
		}
	}
	return name
}
