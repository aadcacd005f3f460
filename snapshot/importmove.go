package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"bole/blobstore"
	"bole/merkle"
)

// unlinkSources removes from the source what the commit now holds. A file goes
// only when it still looks as it did when it was read and the commit has that
// content under its name; everything else stays and is counted.
func (im *importer) unlinkSources(ctx context.Context) (remain uint64, err error) {
	fd, err := unix.Open(im.source, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, fmt.Errorf("open %s: %w", im.source, err)
	}
	defer unix.Close(fd)
	var dest *merkle.Entry
	err = im.repo.View(func(rd merkle.Reader) error {
		dest, err = commitEntry(rd, im.head.Commit, im.o.Dest)
		return err
	})
	if err != nil || dest == nil {
		return 0, err
	}
	u := &unlinker{ctx: ctx, im: im, rootfd: fd}
	return u.remain, u.dir("", dest.Hash)
}

// unlinker walks the source beside the committed tree.
type unlinker struct {
	ctx    context.Context
	im     *importer
	rootfd int
	remain uint64
}

func (u *unlinker) dir(path string, tree merkle.Hash) error {
	fd, err := openDirAt(u.rootfd, path)
	if err != nil {
		return fmt.Errorf("open %q: %w", path, err)
	}
	defer unix.Close(fd)
	l, err := readListing(fd)
	if err != nil {
		return fmt.Errorf("%q: %w", path, err)
	}
	for i := range l.names {
		if err := u.ctx.Err(); err != nil {
			return err
		}
		if err := u.name(fd, path, string(l.name(i)), tree); err != nil {
			return err
		}
	}
	return nil
}

func (u *unlinker) name(dirfd int, dir, name string, tree merkle.Hash) error {
	path := joinPath(dir, name)
	var st fileStat
	if err := lstatAt(dirfd, name, &st); err != nil {
		return fmt.Errorf("look at %q: %w", path, err)
	}
	var e *merkle.Entry
	err := u.im.repo.View(func(rd merkle.Reader) (err error) {
		e, err = entryIn(rd, tree, []byte(name))
		return err
	})
	if err != nil {
		return err
	}
	if e == nil || e.Kind != st.kind {
		u.remain++
		return nil
	}
	if st.kind == merkle.KindDir {
		if err := u.dir(path, e.Hash); err != nil {
			return err
		}
		return u.unlink(dirfd, name, path, unix.AT_REMOVEDIR)
	}
	ok, err := u.committed(dirfd, name, path, &st, e)
	if err != nil {
		return err
	}
	if !ok {
		u.remain++
		return nil
	}
	return u.unlink(dirfd, name, path, 0)
}

// committed says whether a source file is what the commit has, and makes the
// store's copy read-only when it shares the file's inode.
func (u *unlinker) committed(dirfd int, name, path string, st *fileStat, e *merkle.Entry) (bool, error) {
	if st.kind == merkle.KindSymlink {
		target, err := readLinkAt(dirfd, name)
		return err == nil && (bytes.Equal(target, e.Target) || merkle.ContentHash(target) == e.Hash), err
	}
	rec, err := u.im.repo.statOf(u.im.led, path)
	if err != nil {
		return false, err
	}
	known := rec != nil && rec.proves(st) && rec.hash == e.Hash
	if st.perm != e.Perm {
		return false, nil
	}
	if !known {
		if st.size != e.Size {
			return false, nil
		}
		h, _, err := hashFile(u.ctx, dirfd, name, path)
		if err != nil || h != e.Hash {
			return false, err
		}
	}
	whole, err := u.im.repo.IsWhole(e.Hash)
	if err != nil || !whole {
		return err == nil, err
	}
	err = u.im.repo.blobs.Seal(e.Hash, int64(st.size), st.mtime)
	if errors.Is(err, blobstore.ErrChanged) {
		return false, nil // stays, so that the content can be stored again
	}
	return err == nil, err
}

func (u *unlinker) unlink(dirfd int, name, path string, flags int) error {
	err := unix.Unlinkat(dirfd, name, flags)
	if errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove %q from the source: %w", path, err)
	}
	return nil
}
