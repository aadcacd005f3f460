package snapshot

import (
	"errors"
	"fmt"
	"iter"

	"bole/lmdbstore"
	"bole/merkle"
)

// A path is never a key: LMDB's keys end at 511 bytes. A record about a path is
// keyed by the first 16 bytes of BLAKE3 of its folder's path, then its name, so
// that one directory is one prefix in the order of names. The root folder
// itself has the empty name in the empty folder.

const dirKeySize = 16

// ledger is the pair of tables that records a working directory (or, salted
// with its place, a tree that import reads): what goes into the next commit,
// and what files looked like when they were read.
type ledger struct {
	stage, stat lmdbstore.Table
	salt        string // keeps the ledgers of one table apart; "" for the working directory
}

func worktreeLedger() ledger { return ledger{stage: lmdbstore.Stage, stat: lmdbstore.Stat} }

// dirKey is the prefix of a directory's records; table tells the two of one ledger apart.
func (l ledger) dirKey(table string, dir string) [dirKeySize]byte {
	var k [dirKeySize]byte
	var h merkle.Hash
	if l.salt == "" {
		h = merkle.ContentHash([]byte(dir))
	} else {
		h = merkle.ContentHash([]byte(l.salt + "\x00" + table + "\x00" + dir))
	}
	copy(k[:], h[:])
	return k
}

func (l ledger) stageDir(dir string) [dirKeySize]byte { return l.dirKey("stage", dir) }

func (l ledger) statDir(dir string) [dirKeySize]byte { return l.dirKey("stat", dir) }

func nameKey(dir [dirKeySize]byte, name []byte) []byte {
	return append(append(make([]byte, 0, dirKeySize+len(name)), dir[:]...), name...)
}

// splitPath cuts a path into folder and name.
func splitPath(path string) (dir, name string) {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[:i], path[i+1:]
		}
	}
	return "", path
}

func (l ledger) stageKey(path string) []byte {
	dir, name := splitPath(path)
	return nameKey(l.stageDir(dir), []byte(name))
}

func (l ledger) statKey(path string) []byte {
	dir, name := splitPath(path)
	return nameKey(l.statDir(dir), []byte(name))
}

// changes yields what the stage holds as one path-sorted sequence, below the
// path at, shown below the path as.
func (l ledger) changes(t tableReader, at, as string) iter.Seq2[merkle.Change, error] {
	return func(yield func(merkle.Change, error) bool) {
		err := l.eachStaged(t, at, as, func(path string, rec stageRecord) error {
			c, ok := rec.change(path)
			if ok && !yield(c, nil) {
				return errStopped
			}
			return nil
		})
		if err != nil && !errors.Is(err, errStopped) {
			yield(merkle.Change{}, err)
		}
	}
}

var errStopped = errors.New("stopped")

// eachStaged walks the stage below a path in path order, depth first. The
// record of the root itself is left out. Records are lent.
func (l ledger) eachStaged(t tableReader, at, as string, fn func(path string, rec stageRecord) error) error {
	prefix := l.stageDir(at)
	return t.Scan(l.stage, prefix[:], nil, func(k, v []byte) error {
		name := k[dirKeySize:]
		if len(name) == 0 {
			return nil
		}
		rec, err := decodeStage(v)
		if err == nil {
			err = merkle.CheckName(name)
		}
		path := joinPath(as, name)
		if err != nil {
			return fmt.Errorf("stage record of %q: %w", path, err)
		}
		if err := fn(path, rec); err != nil {
			return err
		}
		if !rec.hasBelow() {
			return nil
		}
		return l.eachStaged(t, joinPath(at, name), path, fn)
	})
}

// stagedChanges is the whole stage as the changes of a commit.
func stagedChanges(l ledger) func(*lmdbstore.Reader) iter.Seq2[merkle.Change, error] {
	return func(rd *lmdbstore.Reader) iter.Seq2[merkle.Change, error] { return l.changes(rd, "", "") }
}
