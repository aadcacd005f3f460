package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

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

// checkFolding asks the file system itself, since only it knows its rules: in
// a scratch folder beside the database the names of each directory of the
// target are made in turn, and one that exists already is the collision. A
// file system that keeps case and form apart is known by two probes.
func (r *Repo) checkFolding(ctx context.Context, target *merkle.Entry) error {
	scratch, err := os.MkdirTemp(r.file("tmp"), "fold-*")
	if err != nil {
		return fmt.Errorf("try the file system: %w", err)
	}
	defer os.RemoveAll(scratch)
	if folds, err := foldsNames(scratch); err != nil || !folds {
		return err
	}
	return r.View(func(rd merkle.Reader) error { return foldTree(ctx, rd, scratch, "", target.Hash) })
}

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

func foldTree(ctx context.Context, rd merkle.Reader, scratch, path string, dir merkle.Hash) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	here, err := os.MkdirTemp(scratch, "d-*")
	if err != nil {
		return fmt.Errorf("try the file system: %w", err)
	}
	err = list(rd, dir, func(e *merkle.Entry) error {
		fd, err := unix.Open(filepath.Join(here, string(e.Name)), unix.O_CREAT|unix.O_EXCL|unix.O_WRONLY|unix.O_CLOEXEC, 0o600)
		if errors.Is(err, unix.EEXIST) {
			return &FoldError{Path: joinPath(path, e.Name), Other: joinPath(path, []byte(foldTwin(here, string(e.Name))))}
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
	return list(rd, dir, func(e *merkle.Entry) error {
		if e.Kind != merkle.KindDir {
			return nil
		}
		return foldTree(ctx, rd, scratch, joinPath(path, e.Name), e.Hash)
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
