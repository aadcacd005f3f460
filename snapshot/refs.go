package snapshot

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"bole/lmdbstore"
	"bole/merkle"
)

const (
	headRef     = "HEAD"
	headsPrefix = "refs/heads/"
	tagsPrefix  = "refs/tags/"
	maxRefName  = 255 // bytes; LMDB keys end at 511
)

var (
	// ErrRefName is returned for a branch name that git check-ref-format would refuse.
	ErrRefName = errors.New("not a valid branch name")
	// ErrRefExists is returned when a branch of that name is there already.
	ErrRefExists = errors.New("branch exists already")
	// ErrNoRef is returned when there is no such branch.
	ErrNoRef = errors.New("no such branch")
	// ErrRefMoved is returned when a branch does not stand where the caller saw it.
	ErrRefMoved = errors.New("the branch has moved meanwhile")
	// ErrCurrentBranch is returned for the deletion of the branch that HEAD names.
	ErrCurrentBranch = errors.New("it is the current branch")
	// ErrDetached is returned when HEAD names a commit where a branch is needed.
	ErrDetached = errors.New("HEAD is on no branch")
)

// Ref is a branch and the commit it stands on.
type Ref struct {
	Name   string // without refs/heads/
	Commit merkle.Hash
}

// Head is where the next commit goes.
type Head struct {
	Branch string      // "" when HEAD names a commit itself
	Commit merkle.Hash // zero before the first commit
}

// CheckRefName holds the rules of `git check-ref-format --branch`, and refuses
// "@", which git allows although it is another name of HEAD. ErrRefName.
func CheckRefName(name string) error {
	bad := func(why string) error { return fmt.Errorf("%q: %w (%s)", name, ErrRefName, why) }
	switch {
	case name == "" || name == "@" || name == headRef:
		return bad("reserved or empty")
	case len(headsPrefix)+len(name) > maxRefName:
		return bad("too long")
	case strings.HasPrefix(name, "-"):
		return bad("starts with '-'")
	case strings.HasSuffix(name, "."):
		return bad("ends with '.'")
	case strings.Contains(name, ".."), strings.Contains(name, "@{"):
		return bad("holds '..' or '@{'")
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c <= ' ' || c == 0x7f || strings.IndexByte("~^:?*[\\", c) >= 0 {
			return bad(fmt.Sprintf("holds %q", c))
		}
	}
	for _, part := range strings.Split(name, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return bad("has a part that is empty, starts with '.' or ends with '.lock'")
		}
	}
	return nil
}

// A ref's value is 'h' and 32 bytes of hash, or 's' and the name of another ref.
func encodeDirect(h merkle.Hash) []byte { return append([]byte{'h'}, h[:]...) }

func encodeSymbolic(name string) []byte { return append([]byte{'s'}, name...) }

func decodeRef(name string, b []byte) (h merkle.Hash, symbolic string, err error) {
	switch {
	case len(b) == 1+merkle.HashSize && b[0] == 'h':
		copy(h[:], b[1:])
		return h, "", nil
	case len(b) > 1 && len(b) <= 1+maxRefName && b[0] == 's':
		return h, string(b[1:]), nil
	}
	return h, "", fmt.Errorf("ref %s: %w", name, merkle.ErrCorrupt)
}

// tableReader is what a read and a write transaction have in common.
type tableReader interface {
	Get(t lmdbstore.Table, key []byte) ([]byte, error)
	Scan(t lmdbstore.Table, prefix, start []byte, fn func(k, v []byte) error) error
}

// readRef follows symbolic refs once; a missing ref, or one that cannot be, is
// the zero hash. full is where the hash stands.
func readRef(t tableReader, name string) (target merkle.Hash, full string, err error) {
	if len(name) > maxRefName {
		return target, name, nil
	}
	for range 2 {
		b, err := t.Get(lmdbstore.Refs, []byte(name))
		if errors.Is(err, lmdbstore.ErrNotFound) {
			return merkle.Hash{}, name, nil
		}
		if err != nil {
			return target, name, fmt.Errorf("read ref %s: %w", name, err)
		}
		h, sym, err := decodeRef(name, b)
		if err != nil || sym == "" {
			return h, name, err
		}
		name = sym
	}
	return target, name, fmt.Errorf("ref %s: %w: symbolic refs nest", name, merkle.ErrCorrupt)
}

func readHead(t tableReader) (Head, error) {
	h, full, err := readRef(t, headRef)
	if err != nil {
		return Head{}, err
	}
	if full == headRef {
		return Head{Commit: h}, nil
	}
	branch, ok := strings.CutPrefix(full, headsPrefix)
	if !ok {
		return Head{}, fmt.Errorf("HEAD names %q: %w", full, merkle.ErrCorrupt)
	}
	return Head{Branch: branch, Commit: h}, nil
}

// Head reads HEAD.
func (r *Repo) Head() (head Head, err error) {
	err = r.db.View(func(rd *lmdbstore.Reader) error {
		head, err = readHead(rd)
		return err
	})
	return head, err
}

// Branches lists all branches that stand on a commit, sorted by name.
func (r *Repo) Branches() ([]Ref, error) {
	var refs []Ref
	err := r.db.View(func(rd *lmdbstore.Reader) error {
		return rd.Scan(lmdbstore.Refs, []byte(headsPrefix), nil, func(k, v []byte) error {
			h, _, err := decodeRef(string(k), v)
			if err != nil {
				return err
			}
			refs = append(refs, Ref{Name: string(k[len(headsPrefix):]), Commit: h})
			return nil
		})
	})
	return refs, err
}

// moveRef sets a full ref name by compare-and-swap and writes the reflog.
// A zero hash stands for "not there" on both sides. full must not be symbolic:
// a HEAD that is on a branch by now counts as moved.
func moveRef(w *lmdbstore.Writer, full string, from, to merkle.Hash, who, why string) error {
	now, at, err := readRef(w, full)
	if err != nil {
		return err
	}
	if now != from || at != full {
		return fmt.Errorf("%s stands on %.12s: %w", strings.TrimPrefix(full, headsPrefix), now, ErrRefMoved)
	}
	if branch, ok := strings.CutPrefix(full, headsPrefix); ok && from.IsZero() {
		if err := refConflict(w, branch); err != nil {
			return err
		}
	}
	if to.IsZero() {
		err = w.Delete(lmdbstore.Refs, []byte(full))
	} else {
		err = w.Put(lmdbstore.Refs, []byte(full), encodeDirect(to))
	}
	if err != nil {
		return fmt.Errorf("write ref %s: %w", full, err)
	}
	return appendReflog(w, full, ReflogEntry{When: time.Now().UnixNano(), Old: from, New: to, Who: who, Why: why})
}

// CreateBranch makes a branch at a commit. ErrRefExists unless force is set; then the
// branch is moved, but never the one that HEAD names.
func (r *Repo) CreateBranch(name string, at merkle.Hash, force bool) error {
	if err := CheckRefName(name); err != nil {
		return err
	}
	if _, err := r.ReadCommit(at); err != nil {
		return err
	}
	return r.db.Update(func(w *lmdbstore.Writer) error {
		old, _, err := readRef(w, headsPrefix+name)
		if err != nil {
			return err
		}
		if !old.IsZero() && !force {
			return fmt.Errorf("branch %s: %w", name, ErrRefExists)
		}
		if head, err := readHead(w); err != nil {
			return err
		} else if head.Branch == name && !old.IsZero() {
			return fmt.Errorf("branch %s: %w", name, ErrCurrentBranch)
		}
		return moveRef(w, headsPrefix+name, old, at, r.who(), "branch: created")
	})
}

// refConflict refuses a name that is a folder of another name, as git does.
func refConflict(t tableReader, name string) error {
	for i, c := range name {
		if c != '/' {
			continue
		}
		if h, _, err := readRef(t, headsPrefix+name[:i]); err != nil {
			return err
		} else if !h.IsZero() {
			return fmt.Errorf("branch %s: %w: %s is in its way", name, ErrRefExists, name[:i])
		}
	}
	return t.Scan(lmdbstore.Refs, []byte(headsPrefix+name+"/"), nil, func(k, _ []byte) error {
		return fmt.Errorf("branch %s: %w: %s is in its way", name, ErrRefExists, k[len(headsPrefix):])
	})
}

// DeleteBranch removes a branch. The commits stay in the reflog's reach.
func (r *Repo) DeleteBranch(name string) error {
	return r.db.Update(func(w *lmdbstore.Writer) error {
		old, _, err := readRef(w, headsPrefix+name)
		if err != nil {
			return err
		}
		if old.IsZero() {
			return fmt.Errorf("branch %s: %w", name, ErrNoRef)
		}
		if head, err := readHead(w); err != nil {
			return err
		} else if head.Branch == name {
			return fmt.Errorf("branch %s: %w", name, ErrCurrentBranch)
		}
		return moveRef(w, headsPrefix+name, old, merkle.Hash{}, r.who(), "branch: deleted")
	})
}

// RenameBranch gives a branch another name; HEAD follows.
func (r *Repo) RenameBranch(from, to string) error {
	if err := CheckRefName(to); err != nil {
		return err
	}
	return r.db.Update(func(w *lmdbstore.Writer) error {
		at, _, err := readRef(w, headsPrefix+from)
		if err != nil {
			return err
		}
		head, err := readHead(w)
		if err != nil {
			return err
		}
		if at.IsZero() && head.Branch != from {
			return fmt.Errorf("branch %s: %w", from, ErrNoRef)
		}
		if there, _, err := readRef(w, headsPrefix+to); err != nil {
			return err
		} else if !there.IsZero() {
			return fmt.Errorf("branch %s: %w", to, ErrRefExists)
		}
		if !at.IsZero() {
			why := "branch: renamed " + from + " to " + to
			if err := moveRef(w, headsPrefix+from, at, merkle.Hash{}, r.who(), why); err != nil {
				return err
			}
			if err := moveRef(w, headsPrefix+to, merkle.Hash{}, at, r.who(), why); err != nil {
				return err
			}
		} else if err := refConflict(w, to); err != nil {
			return err
		}
		if head.Branch == from {
			return w.Put(lmdbstore.Refs, []byte(headRef), encodeSymbolic(headsPrefix+to))
		}
		return nil
	})
}

// setHead points HEAD at a branch, or at a commit when branch is "".
func setHead(w *lmdbstore.Writer, h Head) error {
	v := encodeDirect(h.Commit)
	if h.Branch != "" {
		v = encodeSymbolic(headsPrefix + h.Branch)
	}
	if err := w.Put(lmdbstore.Refs, []byte(headRef), v); err != nil {
		return fmt.Errorf("write HEAD: %w", err)
	}
	return nil
}
