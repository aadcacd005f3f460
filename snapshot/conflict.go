package snapshot

import (
	"errors"

	"bole/lmdbstore"
	"bole/merkle"
)

// findConflicts compares disk and stage with both trees before anything is
// written. With Force only what even force must not touch is a conflict.
func (m *mover) findConflicts() error {
	if err := m.rootConflict(); err != nil {
		return err
	}
	err := m.diff(func(path string, old, now *merkle.Entry) error {
		return m.conflict(m.inTheWay(path, old, now))
	})
	if err == nil {
		err = m.folds.run()
	}
	if err != nil {
		return err
	}
	if m.o.Force {
		return m.gatherUnsaved()
	}
	return m.repo.db.View(func(rd *lmdbstore.Reader) error { return m.stagedRoot(rd) })
}

// conflict notes a path once; what lies below a path follows it at once.
func (m *mover) conflict(path string, err error) error {
	if n := len(m.conflicts); path != "" && (n == 0 || m.conflicts[n-1] != path) {
		m.conflicts = append(m.conflicts, path)
	}
	return err
}

// rootConflict looks at the root folder's own mode and attributes.
func (m *mover) rootConflict() error {
	if m.o.Force || m.wt.root == nil || sameMeta(m.wt.root, m.target) {
		return nil
	}
	var st fileStat
	if err := lstatAt(m.look.rootfd, "", &st); err != nil {
		return err
	}
	ok, err := m.look.dirMatches("", &st, m.wt.root, m.target)
	if err == nil && !ok {
		return m.conflict(".", nil)
	}
	return err
}

// inTheWay returns the path whose unsaved state the change of another would
// overwrite, "" when there is none.
func (m *mover) inTheWay(path string, old, now *merkle.Entry) (string, error) {
	var st fileStat
	is, err := m.look.lstat(path, &st)
	if err != nil {
		return "", err
	}
	if now != nil {
		m.folds.see(m.look, path)
	}
	switch is {
	case absent:
		return "", nil // a deletion that was not recorded is no work to be lost
	case blocked:
		return m.blocked(path, now)
	}
	if st.mountRoot {
		return path, nil
	}
	var ok bool
	if m.o.Force {
		ok, err = m.mayForce(path, &st, now)
	} else {
		ok, err = m.mayReplace(path, &st, old, now)
	}
	if err != nil || !ok {
		return path, err
	}
	if now != nil && now.Kind == merkle.KindDir && st.kind != merkle.KindDir {
		m.becomes = path
	}
	return "", nil
}

// blocked decides about a path to which no directory leads on disk.
func (m *mover) blocked(path string, now *merkle.Entry) (string, error) {
	at, mounted, err := m.look.blocker(path)
	if err != nil || now == nil && !mounted {
		return "", err // nothing is there to be removed
	}
	if !mounted && (at == m.becomes || m.o.Force) {
		return "", nil
	}
	return at, nil
}

// mayForce says whether what stands at a path may go although it is not saved.
func (m *mover) mayForce(path string, st *fileStat, now *merkle.Entry) (bool, error) {
	if st.kind != merkle.KindDir || now == nil || now.Kind == merkle.KindDir {
		return true, nil
	}
	return m.look.removable(path)
}

// mayReplace says whether what is on disk at a path is saved: what the old tree
// has, or already what the new one will have; or is not touched.
func (m *mover) mayReplace(path string, st *fileStat, old, now *merkle.Entry) (bool, error) {
	wasDir, isDir := old != nil && old.Kind == merkle.KindDir, now != nil && now.Kind == merkle.KindDir
	if st.kind == merkle.KindDir {
		switch {
		case isDir && wasDir && !sameMeta(old, now):
			return m.look.dirMatches(path, st, old, now)
		case isDir, now == nil:
			return true, nil // what the new tree does not have in it stays, and the directory with it
		case wasDir:
			return m.look.onlyTracked(path, old.Hash)
		}
		return false, nil // an untracked directory where something else comes
	}
	if now == nil && wasDir {
		return true, nil // took the directory's place, and stays
	}
	for _, e := range []*merkle.Entry{now, old} {
		if e == nil || e.Kind == merkle.KindDir {
			continue
		}
		if same, err := m.look.matches(path, st, e); same || err != nil {
			return same, err
		}
	}
	return false, nil
}

// gatherUnsaved lists what --force throws away, so that it is restored even
// where the two commits agree.
func (m *mover) gatherUnsaved() error {
	st, err := m.repo.Status(m.ctx, StatusOptions{})
	var bad *UnreadableError
	if err != nil && !errors.As(err, &bad) {
		return err
	}
	for _, c := range st.Unstaged {
		m.extra = append(m.extra, c.Path)
	}
	if bad != nil {
		for _, p := range bad.Problems {
			m.extra = append(m.extra, p.Path)
		}
	}
	// What was added goes from the inside out, so that its folders are empty by then.
	for i := len(st.Staged) - 1; i >= 0; i-- {
		m.extra = append(m.extra, st.Staged[i].Path)
	}
	return m.repo.View(func(rd merkle.Reader) error {
		kept := m.extra[:0]
		for _, path := range m.extra {
			now, err := entryAt(rd, m.target, path)
			if err != nil {
				return err
			}
			if path == "." {
				continue // settled at the end in any case
			}
			if err := m.conflict(m.inTheWay(path, nil, now)); err != nil {
				return err
			}
			kept = append(kept, path)
		}
		m.extra = kept
		return nil
	})
}
