package snapshot

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// freshFile is a file or directory as it was written, to be looked at again
// once the clock has moved on.
type freshFile struct {
	path         string
	ino          uint64
	mtime, ctime int64
	hash, attrs  merkle.Hash
}

// tick is the longest step in which the kernel's coarse clock moves (HZ=100).
const tick = 10 * time.Millisecond

func (w *writeOut) note(path string, st *fileStat, hash, attrs merkle.Hash) {
	w.mu.Lock()
	w.fresh = append(w.fresh, freshFile{path, st.ino, st.mtime, st.ctime, hash, attrs})
	w.mu.Unlock()
}

// noteBatch takes what was written into the stat table. The clock moves on
// first, so that the records prove something. What changed since it was written
// gets no record.
func (w *writeOut) noteBatch(least int) error {
	w.mu.Lock()
	fresh := w.fresh
	if len(fresh) < least || len(fresh) == 0 {
		w.mu.Unlock()
		return nil
	}
	w.fresh = nil
	w.mu.Unlock()
	slack := clockSlack(w.look.rootfd)
	newest := int64(0)
	for _, f := range fresh {
		newest = max(newest, f.ctime)
	}
	// Where a server sets the times its records stay racy until the next add.
	if wait := newest + slack + 1 - coarseNow(); slack < 1e9 && wait > 0 {
		time.Sleep(time.Duration(min(wait, slack)) + tick)
	}
	for _, f := range fresh {
		var st fileStat
		now := coarseNow()
		if is, err := w.look.lstat(f.path, &st); err != nil {
			return err
		} else if is == present && st.ino == f.ino && st.mtime == f.mtime && st.ctime == f.ctime {
			w.rec.putStat(f.path, newStatRecord(&st, f.hash, f.attrs, now, slack))
		}
		if err := w.rec.stored(0); err != nil {
			return err
		}
	}
	return nil
}

// settle waits for the writers, sets the directories' metadata from the target
// (deepest first) and notes what everything looks like now. base is the root
// that the working directory stood on, nil for none.
func (w *writeOut) settle(base, target *merkle.Entry) error {
	if err := w.jobs.Wait(); err != nil {
		return err
	}
	w.look.forget()
	w.touch("") // the root's own mode and attributes belong to the commit
	for _, dir := range deepestFirst(w.touched) {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		var e, old *merkle.Entry
		err := w.repo.View(func(rd merkle.Reader) (err error) {
			if e, err = entryAt(rd, target, dir); err == nil {
				old, err = entryAt(rd, base, dir)
			}
			return err
		})
		if err == nil {
			err = w.setDir(dir, old, e)
		}
		if err != nil {
			return fmt.Errorf("set mode and time of folder %q: %w", dir, err)
		}
	}
	if err := w.noteBatch(1); err != nil {
		return err
	}
	return w.rec.flush()
}

// setDir sets a directory's attributes, mode and mtime, in this order. Where
// both commits agree about the first two, what the user made of them stays.
func (w *writeOut) setDir(dir string, old, e *merkle.Entry) error {
	loose, isLoose := w.loosened[dir]
	delete(w.loosened, dir)
	if e == nil || e.Kind != merkle.KindDir { // an untracked one
		if isLoose {
			return w.chmod(dir, loose)
		}
		return nil
	}
	fd, err := openDirAt(w.look.rootfd, dir)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	keep := !w.o.Force && !w.touched[dir] && old != nil && sameMeta(old, e)
	perm := uint32(e.Perm)
	switch {
	case !keep:
		err = w.setAttrs(fd, dir, e.Attrs)
	case isLoose:
		perm = uint32(loose)
	}
	if err == nil && (!keep || isLoose) {
		if err = unix.Fchmod(fd, perm); err != nil {
			err = fmt.Errorf("set mode: %w", err)
		}
	}
	if err == nil {
		err = setMtime(fd, e.Mtime)
	}
	if err != nil {
		return err
	}
	attrs := e.Attrs
	if keep {
		if attrs, _, err = encodeFileAttrs(fd); err != nil {
			return nil // status will say so
		}
	}
	var st fileStat
	if err := lstatAt(fd, "", &st); err != nil {
		return err
	}
	w.note(dir, &st, merkle.Hash{}, attrs)
	return nil
}

func (w *writeOut) chmod(dir string, perm uint16) error {
	fd, err := openDirAt(w.look.rootfd, dir)
	if isAbsent(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("restore mode of %q: %w", dir, err)
	}
	defer unix.Close(fd)
	if err := unix.Fchmod(fd, uint32(perm)); err != nil {
		return fmt.Errorf("restore mode of %q: %w", dir, err)
	}
	return nil
}

// deepestFirst sorts directories so that each comes before the one around it.
func deepestFirst(set map[string]bool) []string {
	dirs := make([]string, 0, len(set))
	for d := range set {
		dirs = append(dirs, d)
	}
	sort.Slice(dirs, func(i, j int) bool {
		a, b := strings.Count(dirs[i], "/"), strings.Count(dirs[j], "/")
		if (dirs[i] == "") != (dirs[j] == "") {
			return dirs[j] == ""
		}
		if a != b {
			return a > b
		}
		return dirs[i] < dirs[j]
	})
	return dirs
}
