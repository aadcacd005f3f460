package snapshot

import (
	"bytes"

	"bole/lmdbstore"
	"bole/merkle"
)

// What is staged stays staged over the new base where the two commits agree
// about its path, becomes void where the target has it already, and is a
// conflict otherwise. What leads to a record that stays, stays with it.

// stagedRoot decides about the whole stage.
func (m *mover) stagedRoot(rd *lmdbstore.Reader) error {
	kept, err := m.stagedDir(rd, "", m.wt.root, m.target, true)
	if err != nil || m.wt.rootOp == 0 {
		return err
	}
	m.meta("", m.wt.index, m.wt.root, m.target, kept)
	return nil
}

// stagedDir decides about the records in one directory, given what the two
// trees have there. stands: the next commit would have the directory. kept: at
// least one record in it stays.
func (m *mover) stagedDir(rd *lmdbstore.Reader, path string, old, now *merkle.Entry, stands bool) (kept bool, err error) {
	prefix := m.led.stageDir(path)
	err = rd.Scan(m.led.stage, prefix[:], nil, func(k, v []byte) error {
		name := k[dirKeySize:]
		if len(name) == 0 {
			return nil
		}
		rec, err := decodeStage(v)
		if err != nil {
			return err
		}
		was, err := entryIn(rd, dirHash(old), name)
		if err != nil {
			return err
		}
		is, err := entryIn(rd, dirHash(now), name)
		if err != nil {
			return err
		}
		stays, err := m.staged(rd, joinPath(path, bytes.Clone(name)), &rec, was, is, stands)
		kept = kept || stays
		return err
	})
	return kept, err
}

// staged decides about one record.
func (m *mover) staged(rd *lmdbstore.Reader, path string, rec *stageRecord, old, now *merkle.Entry, stands bool) (bool, error) {
	if rec.op == stageInside || rec.op == stageMeta {
		return m.stagedInside(rd, path, rec, old, now, stands)
	}
	e, ok := rec.over(old)
	switch {
	case !ok && now == nil, ok && e.Kind != merkle.KindDir && now != nil && sameMeta(&e, now):
		m.settled = append(m.settled, path)
		return false, nil
	case !sameNode(old, now) || ok && !stands:
		return false, m.conflict(path, nil)
	}
	return true, nil // a fresh directory with all below it, too
}

// stagedInside decides about a directory whose entries in the base stay.
func (m *mover) stagedInside(rd *lmdbstore.Reader, path string, rec *stageRecord, old, now *merkle.Entry, stands bool) (bool, error) {
	isDir := now != nil && now.Kind == merkle.KindDir
	isNew := old == nil && now == nil && rec.op == stageMeta && stands
	kept, err := m.stagedDir(rd, path, old, now, isDir || isNew)
	if err != nil || isNew {
		return true, err
	}
	if rec.op == stageInside {
		if !kept {
			m.settled = append(m.settled, path)
		}
		return kept, nil
	}
	return m.meta(path, &rec.entry, old, now, kept), nil
}

// meta decides about a record of a directory's own mode and attributes, below
// which other records stay or not.
func (m *mover) meta(path string, e, old, now *merkle.Entry, kept bool) (stays bool) {
	switch {
	case now != nil && sameMeta(e, now), old != nil && sameMeta(e, old):
		if !kept {
			m.settled = append(m.settled, path)
		} else if now != nil && !sameMeta(e, now) { // only its time is of the stage
			m.restage(path, merkle.Entry{Kind: merkle.KindDir, Perm: now.Perm, Attrs: now.Attrs, Mtime: e.Mtime})
		}
		return kept
	case old == nil || now == nil || !sameMeta(old, now):
		if path == "" {
			path = "."
		}
		m.conflict(path, nil)
		return false
	}
	return true
}

// restage gives a directory that stays in the stage other metadata.
func (m *mover) restage(path string, e merkle.Entry) {
	m.restaged = append(m.restaged, stagedPath{path, stageRecord{op: stageMeta, entry: e}})
}

type stagedPath struct {
	path string
	rec  stageRecord
}

// sameNode compares two entries with all that lies below them, mtimes of the two aside.
func sameNode(a, b *merkle.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameMeta(a, b) && a.Hash == b.Hash
}
