package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"bole/lmdbstore"
	"bole/merkle"
)

// looker compares names in the working directory with entries. It keeps the
// last directory open, since paths come directory by directory. Not for
// concurrent use.
type looker struct {
	ctx    context.Context
	repo   *Repo
	rootfd int
	dir    string
	dirfd  int // -1: not open
}

func newLooker(ctx context.Context, r *Repo) (*looker, error) {
	fd, err := unix.Open(r.root, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", r.root, err)
	}
	return &looker{ctx: ctx, repo: r, rootfd: fd, dirfd: -1}, nil
}

func (l *looker) close() error {
	if l.dirfd >= 0 {
		unix.Close(l.dirfd)
		l.dirfd = -1
	}
	return unix.Close(l.rootfd)
}

// parent opens the folder of a path without following links; the descriptor
// stays the looker's. ENOENT, ENOTDIR or ELOOP when there is no such folder.
func (l *looker) parent(path string) (int, string, error) {
	dir, name := splitPath(path)
	if l.dirfd >= 0 && l.dir == dir {
		return l.dirfd, name, nil
	}
	fd, err := openDirAt(l.rootfd, dir)
	if err != nil {
		return -1, name, err
	}
	if l.dirfd >= 0 {
		unix.Close(l.dirfd)
	}
	l.dir, l.dirfd = dir, fd
	return fd, name, nil
}

// forget drops the open directory, which may be removed or replaced.
func (l *looker) forget() {
	if l.dirfd >= 0 {
		unix.Close(l.dirfd)
		l.dirfd = -1
	}
}

// isAbsent says that a name is not there and, with isBlocked, cannot be.
func isAbsent(err error) bool { return errors.Is(err, unix.ENOENT) || isBlocked(err) }

// isBlocked says that a link, another thing than a directory, or a mount stands
// on the way to a path.
func isBlocked(err error) bool {
	return errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EXDEV)
}

// presence is what lstat finds.
type presence int

const (
	absent  presence = iota
	present          // the fileStat is set
	blocked          // no directory leads there
)

// lstat looks at a path.
func (l *looker) lstat(path string, st *fileStat) (presence, error) {
	dirfd, name, err := l.parent(path)
	if isBlocked(err) {
		return blocked, nil
	}
	if err == nil {
		err = lstatAt(dirfd, name, st)
	}
	switch {
	case err == nil:
		return present, nil
	case isAbsent(err):
		return absent, nil
	}
	return absent, fmt.Errorf("look at %q: %w", path, err)
}

// blocker is the first part of a path that is no plain directory, and whether
// it is because something is mounted there.
func (l *looker) blocker(path string) (at string, mounted bool, err error) {
	for i := 0; i <= len(path); i++ {
		if i < len(path) && path[i] != '/' {
			continue
		}
		var st fileStat
		switch is, err := l.lstat(path[:i], &st); {
		case err != nil:
			return "", false, err
		case is == present && (st.mountRoot || st.kind != merkle.KindDir):
			return path[:i], st.mountRoot, nil
		}
	}
	return path, false, nil // it went away meanwhile
}

// onlyTracked says whether a directory holds nothing but names of a tree, each
// of them of the kind that the tree has.
func (l *looker) onlyTracked(path string, dir merkle.Hash) (bool, error) {
	return l.holdsOnly(path, func(name []byte, st *fileStat) (bool, error) {
		var e *merkle.Entry
		err := l.repo.View(func(rd merkle.Reader) (err error) {
			e, err = entryIn(rd, dir, name)
			return err
		})
		switch {
		case err != nil || e == nil || st.mountRoot || (e.Kind == merkle.KindDir) != (st.kind == merkle.KindDir):
			return false, err
		case e.Kind == merkle.KindDir:
			return l.onlyTracked(joinPath(path, name), e.Hash)
		}
		return true, nil
	})
}

// removable says whether nothing in a directory must stay whatever is asked
// for: another repository, or something that is mounted.
func (l *looker) removable(path string) (bool, error) {
	return l.holdsOnly(path, func(name []byte, st *fileStat) (bool, error) {
		switch {
		case st.mountRoot, string(name) == DirName:
			return false, nil
		case st.kind == merkle.KindDir:
			return l.removable(joinPath(path, name))
		}
		return true, nil
	})
}

// holdsOnly says whether fine is true for every name in a directory.
func (l *looker) holdsOnly(path string, fine func(name []byte, st *fileStat) (bool, error)) (bool, error) {
	fd, err := openDirAt(l.rootfd, path)
	if err != nil {
		return false, fmt.Errorf("open %q: %w", path, err)
	}
	defer unix.Close(fd)
	names, err := readListing(fd)
	if err != nil {
		return false, fmt.Errorf("%q: %w", path, err)
	}
	for i := range names.names {
		var st fileStat
		err := lstatAt(fd, string(names.name(i)), &st)
		if errors.Is(err, unix.ENOENT) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("look at %q: %w", joinPath(path, names.name(i)), err)
		}
		if ok, err := fine(names.name(i), &st); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}

// dirMatches says whether a directory on disk has the mode and attributes of one of some entries.
func (l *looker) dirMatches(path string, st *fileStat, entries ...*merkle.Entry) (bool, error) {
	rec, err := l.repo.statOf(worktreeLedger(), path)
	if err != nil {
		return false, err
	}
	var attrs merkle.Hash
	if rec != nil && rec.proves(st) {
		attrs = rec.attrs
	} else {
		fd, err := openDirAt(l.rootfd, path)
		if err != nil {
			return false, fmt.Errorf("open %q: %w", path, err)
		}
		attrs, _, err = encodeFileAttrs(fd)
		unix.Close(fd)
		if err != nil {
			return false, fmt.Errorf("%q: %w", path, err)
		}
	}
	for _, e := range entries {
		if e.Perm == st.perm && e.Attrs == attrs {
			return true, nil
		}
	}
	return false, nil
}

// matches compares a file or symlink on disk with an entry by all but mtime; it
// reads the file only when the stat table leaves it open.
func (l *looker) matches(path string, st *fileStat, e *merkle.Entry) (bool, error) {
	if st.kind != e.Kind || st.size != e.Size {
		return false, nil
	}
	dirfd, name, err := l.parent(path)
	if err != nil {
		return false, fmt.Errorf("look at %q: %w", path, err)
	}
	if l.repo.isDatabase(dirfd, name, st) {
		return false, nil
	}
	if e.Kind == merkle.KindSymlink {
		target, err := readLinkAt(dirfd, name)
		if err != nil {
			return false, fmt.Errorf("read link %q: %w", path, err)
		}
		return bytes.Equal(target, e.Target) || len(e.Target) == 0 && merkle.ContentHash(target) == e.Hash, nil
	}
	if st.perm != e.Perm {
		return false, nil
	}
	rec, err := l.repo.statOf(worktreeLedger(), path)
	if err != nil {
		return false, err
	}
	if rec != nil && rec.proves(st) {
		return rec.hash == e.Hash && rec.attrs == e.Attrs, nil
	}
	content, attrs, err := hashFile(l.ctx, dirfd, name, path)
	if err != nil {
		return false, fmt.Errorf("read %q: %w", path, err)
	}
	return content == e.Hash && attrs == e.Attrs, nil
}

// statOf reads the stat table's record of a path, nil when it has none.
func (r *Repo) statOf(led ledger, path string) (out *statRecord, err error) {
	err = r.db.View(func(rd *lmdbstore.Reader) error {
		b, err := rd.Get(led.stat, led.statKey(path))
		if errors.Is(err, lmdbstore.ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		rec, err := decodeStat(b)
		out = &rec
		return err
	})
	return out, err
}
