package snapshot

import (
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"bole/lmdbstore"
	"bole/merkle"
)

var (
	// ErrUnknownRevision is returned for a revision that names no commit.
	ErrUnknownRevision = errors.New("unknown revision")
	// ErrAmbiguous is returned for a hex prefix that several commits share.
	ErrAmbiguous = errors.New("ambiguous revision")
	// ErrNoPath is returned for a path that is not in a commit.
	ErrNoPath = errors.New("no such path")
	// ErrUnborn is returned for HEAD of a repository without a commit.
	ErrUnborn = errors.New("there is no commit yet")
)

// minPrefix is the shortest hex prefix that is tried as an id, in digits.
const minPrefix = 4

// Revision is what a text like main~2:dir/file names.
type Revision struct {
	Commit merkle.Hash
	Branch string // the branch, when the text is its name alone or HEAD on it
	Path   string // behind ':', cleaned; "" is the root
}

// Resolve understands a branch, a unique hex prefix of at least 4 digits, HEAD
// (also @), REV~N, REV^ and REV:PATH.
func (r *Repo) Resolve(text string) (Revision, error) {
	rev, path, hasPath := strings.Cut(text, ":")
	var out Revision
	if hasPath {
		p, err := cleanRevPath(path)
		if err != nil {
			return out, fmt.Errorf("%q: %w", text, err)
		}
		out.Path = p
	}
	err := r.db.View(func(rd *lmdbstore.Reader) error {
		base, steps, err := splitSteps(rev)
		if err != nil {
			return err
		}
		out.Commit, out.Branch, err = resolveBase(rd, base)
		if err != nil {
			return err
		}
		if steps > 0 {
			out.Branch = ""
		}
		out.Commit, err = ancestor(rd, out.Commit, steps)
		return err
	})
	if err != nil {
		return out, fmt.Errorf("%q: %w", text, err)
	}
	return out, nil
}

// cleanRevPath accepts the spellings of one path inside a commit.
func cleanRevPath(p string) (string, error) {
	var parts []string
	for _, c := range strings.Split(p, "/") {
		switch c {
		case "", ".":
		case "..":
			return "", fmt.Errorf("%w: it leads out of the commit", ErrNoPath)
		default:
			parts = append(parts, c)
		}
	}
	return strings.Join(parts, "/"), nil
}

// splitSteps takes ~N and ^ off the end of a revision.
func splitSteps(rev string) (base string, steps int, err error) {
	base = rev
	if i := strings.IndexAny(rev, "~^"); i >= 0 {
		base = rev[:i]
		for rest := rev[i:]; rest != ""; {
			j := 1
			for j < len(rest) && rest[j] >= '0' && rest[j] <= '9' {
				j++
			}
			n := 1
			if j > 1 {
				if n, err = strconv.Atoi(rest[1:j]); err != nil || n > 1<<30 {
					return "", 0, ErrUnknownRevision
				}
			}
			switch {
			case rest[0] == '~':
				steps += n
			case rest[0] == '^' && n <= 1:
				steps += n
			default:
				return "", 0, fmt.Errorf("%w: only ~N and ^ are understood", ErrUnknownRevision)
			}
			rest = rest[j:]
		}
	}
	if base == "" || base == "@" {
		base = headRef
	}
	return base, steps, nil
}

func resolveBase(rd *lmdbstore.Reader, base string) (merkle.Hash, string, error) {
	if base == headRef {
		head, err := readHead(rd)
		if err == nil && head.Commit.IsZero() {
			err = ErrUnborn
		}
		return head.Commit, head.Branch, err
	}
	name := strings.TrimPrefix(base, headsPrefix)
	if len(headsPrefix)+len(name) <= maxRefName {
		h, _, err := readRef(rd, headsPrefix+name)
		if err != nil || !h.IsZero() {
			return h, name, err
		}
	}
	h, err := resolvePrefix(rd, base)
	return h, "", err
}

// resolvePrefix finds the one commit whose id starts with the digits.
func resolvePrefix(rd *lmdbstore.Reader, digits string) (found merkle.Hash, err error) {
	digits = strings.ToLower(digits)
	if len(digits) < minPrefix || len(digits) > 2*merkle.HashSize || strings.Trim(digits, "0123456789abcdef") != "" {
		return found, ErrUnknownRevision
	}
	prefix, err := hex.DecodeString(digits[:len(digits)/2*2])
	if err != nil {
		return found, ErrUnknownRevision
	}
	n := 0
	err = rd.Scan(lmdbstore.Nodes, prefix[:min(len(prefix), len(merkle.Key{}))], nil, func(_, b []byte) error {
		if merkle.KindOf(b) != merkle.NodeCommit {
			return nil
		}
		h := merkle.NodeHash(b)
		if strings.HasPrefix(h.String(), digits) {
			found = h
			if n++; n > 1 {
				return fmt.Errorf("%w: give more digits", ErrAmbiguous)
			}
		}
		return nil
	})
	if err == nil && n == 0 {
		err = ErrUnknownRevision
	}
	return found, err
}

// ancestor follows first parents.
func ancestor(rd merkle.Reader, h merkle.Hash, steps int) (merkle.Hash, error) {
	for ; steps > 0; steps-- {
		c, err := readCommit(rd, h)
		if err != nil {
			return h, err
		}
		if len(c.Parents) == 0 {
			return h, fmt.Errorf("%w: history ends %d commits earlier", ErrUnknownRevision, steps)
		}
		h = c.Parents[0]
	}
	return h, nil
}

func readCommit(rd merkle.Reader, id merkle.Hash) (*merkle.Commit, error) {
	b, err := rd.Node(&id)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", id, err)
	}
	c, err := merkle.DecodeCommit(&id, b)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", id, err)
	}
	return c, nil
}

// ReadCommit reads a commit by its id.
func (r *Repo) ReadCommit(id merkle.Hash) (c *merkle.Commit, err error) {
	err = r.View(func(rd merkle.Reader) error {
		c, err = readCommit(rd, id)
		return err
	})
	return c, err
}

// Log calls fn for a commit and its first parents, newest first, until fn
// returns false or history ends.
func (r *Repo) Log(from merkle.Hash, fn func(id merkle.Hash, c *merkle.Commit) (more bool, err error)) error {
	for id := from; !id.IsZero(); {
		c, err := r.ReadCommit(id)
		if err != nil {
			return err
		}
		more, err := fn(id, c)
		if err != nil || !more {
			return err
		}
		id = merkle.Hash{}
		if len(c.Parents) > 0 {
			id = c.Parents[0]
		}
	}
	return nil
}
