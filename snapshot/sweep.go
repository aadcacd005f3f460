package snapshot

import (
	"errors"

	"bole/lmdbstore"
	"bole/merkle"
)

// sweep removes the records below paths that lead to nothing any more: those of
// the stage, and on request those of table stat, which do no harm where they
// are. It works in transactions of bounded size, and makes none where there is
// nothing. One that is killed leaves records that nothing leads to, and that
// the next directory of their name clears away first.
func (c *recorder) sweep(paths []string, stats bool) error {
	for len(paths) > 0 {
		s := sweeper{led: c.led, stats: stats}
		err := c.repo.db.View(func(rd *lmdbstore.Reader) error {
			for ; len(paths) > 0; paths = paths[1:] {
				if err := s.below(rd, paths[0]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			return err
		}
		if len(s.keys) == 0 {
			continue
		}
		if err := c.repo.db.Update(s.remove); err != nil {
			return err
		}
	}
	return nil
}

// sweeper gathers keys of records, those that lie deeper first, so that
// whatever it has when it is full can be removed without cutting others off.
type sweeper struct {
	led   ledger
	stats bool
	keys  []recordKey
}

// below gathers what is recorded below a path. errStopped: it is full.
func (s *sweeper) below(t tableReader, path string) error {
	if err := s.stage(t, path); err != nil || !s.stats {
		return err
	}
	return s.stat(t, path)
}

func (s *sweeper) stage(t tableReader, path string) error {
	dir := s.led.stageDir(path)
	return t.Scan(s.led.stage, dir[:], nil, func(k, v []byte) error {
		if len(k) == dirKeySize {
			return nil // the root's own
		}
		if rec, err := decodeStage(v); err == nil && rec.hasBelow() {
			if err := s.stage(t, joinPath(path, k[dirKeySize:])); err != nil {
				return err
			}
		}
		return s.add(s.led.stage, k)
	})
}

func (s *sweeper) stat(t tableReader, path string) error {
	dir := s.led.statDir(path)
	return t.Scan(s.led.stat, dir[:], nil, func(k, v []byte) error {
		if len(k) == dirKeySize {
			return nil
		}
		if rec, err := decodeStat(v); err == nil && rec.kind == merkle.KindDir {
			if err := s.stat(t, joinPath(path, k[dirKeySize:])); err != nil {
				return err
			}
		}
		return s.add(s.led.stat, k)
	})
}

// add takes a key once what lies below it was taken.
func (s *sweeper) add(t lmdbstore.Table, k []byte) error {
	s.keys = append(s.keys, recordKey{t, string(k)})
	if len(s.keys) >= limits.records {
		return errStopped
	}
	return nil
}

func (s *sweeper) remove(w *lmdbstore.Writer) error {
	for _, k := range s.keys {
		if err := w.Delete(k.table, []byte(k.key)); err != nil {
			return err
		}
	}
	return nil
}
