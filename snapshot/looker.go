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

func isAbsent(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// lstat looks at a path; false when nothing is there.
func (l *looker) lstat(path string, st *fileStat) (dirfd int, name string, ok bool, err error) {
	dirfd, name, err = l.parent(path)
	if err == nil {
		err = lstatAt(dirfd, name, st)
	}
	if err != nil && !isAbsent(err) {
		return -1, name, false, fmt.Errorf("look at %q: %w", path, err)
	}
	return dirfd, name, err == nil, nil
}

// mayReplace says whether what is on disk at a path is saved: absent, what the
// old tree has, or already what the new one will have.
func (l *looker) mayReplace(path string, old, now *merkle.Entry) (bool, error) {
	var st fileStat
	dirfd, name, ok, err := l.lstat(path, &st)
	if err != nil || !ok {
		return true, err
	}
	if st.kind == merkle.KindDir {
		if now != nil && now.Kind == merkle.KindDir {
			return true, nil
		}
		if old == nil || old.Kind != merkle.KindDir {
			return now == nil, nil // an untracked directory: in the way only of something new
		}
		if now == nil {
			return true, nil // what is untracked in it stays, and the directory with it
		}
		return l.onlyTracked(path, old.Hash)
	}
	for _, e := range []*merkle.Entry{now, old} {
		if e == nil || e.Kind == merkle.KindDir {
			continue
		}
		if same, err := l.matches(path, dirfd, name, &st, e); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// onlyTracked says whether a directory holds nothing but names of a tree.
func (l *looker) onlyTracked(path string, dir merkle.Hash) (bool, error) {
	fd, err := openDirAt(l.rootfd, path)
	if err != nil {
		return false, fmt.Errorf("open %q: %w", path, err)
	}
	names, err := readListing(fd)
	unix.Close(fd)
	if err != nil {
		return false, fmt.Errorf("%q: %w", path, err)
	}
	for i := range names.names {
		var e *merkle.Entry
		err := l.repo.View(func(rd merkle.Reader) (err error) {
			e, err = entryIn(rd, dir, names.name(i))
			return err
		})
		if err != nil || e == nil {
			return false, err
		}
		if e.Kind == merkle.KindDir {
			if ok, err := l.onlyTracked(joinPath(path, names.name(i)), e.Hash); err != nil || !ok {
				return ok, err
			}
		}
	}
	return true, nil
}

// matches compares a file or symlink on disk with an entry by all but mtime; it
// reads the file only when the stat table leaves it open.
func (l *looker) matches(path string, dirfd int, name string, st *fileStat, e *merkle.Entry) (bool, error) {
	if st.kind != e.Kind || st.size != e.Size {
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
