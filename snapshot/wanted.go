package snapshot

import (
	"errors"
	"fmt"
	"path/filepath"
	"sort"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

var (
	// ErrOutside is returned for a path argument outside the working directory.
	ErrOutside = errors.New("outside the working directory")
	// ErrBeyondLink is returned for a path argument that leads through a symlink.
	ErrBeyondLink = errors.New("beyond a symbolic link")
)

// wanted is the set of paths that a command was asked for, as a tree of names.
type wanted struct {
	all  bool // this path and everything below
	kids map[string]*wanted
	seen atomic.Bool // on disk or in the index
}

func newWanted(paths []string) *wanted {
	root := &wanted{}
	if len(paths) == 0 {
		root.all = true
	}
	for _, p := range paths {
		w := root
		for _, name := range strings.Split(p, "/") {
			if name == "" || w.all {
				continue
			}
			if w.kids == nil {
				w.kids = make(map[string]*wanted)
			}
			if w.kids[name] == nil {
				w.kids[name] = &wanted{}
			}
			w = w.kids[name]
		}
		w.all = true
	}
	return root
}

func (w *wanted) sorted() []string {
	names := make([]string, 0, len(w.kids))
	for n := range w.kids {
		names = append(names, n)
	}
	sort.Strings(names)
	return names
}

// saw notes that a name which was asked for exists.
func (w *wanted) saw(name string) {
	if k := w.kids[name]; k != nil {
		k.seen.Store(true)
	}
}

// below is what is wanted of a directory in this one.
func (w *wanted) below(name string) *wanted {
	if w.all {
		return w
	}
	if k := w.kids[name]; k != nil {
		return k
	}
	return &wanted{}
}

// unseen lists the paths that were neither on disk nor in the index.
func (w *wanted) unseen(prefix string) []string {
	if w.all {
		if prefix != "" && !w.seen.Load() {
			return []string{prefix}
		}
		return nil
	}
	var out []string
	for _, n := range w.sorted() {
		out = append(out, w.kids[n].unseen(joinPath(prefix, n))...)
	}
	return out
}

// WorkPath turns a path argument, relative to cwd, into a path relative to the
// root ("" for the root itself). Links above the root are followed, as the
// shell does; a path that leads through one below it is refused, as git does.
// ErrOutside, ErrBeyondLink, ErrNotDir, ErrNoPath, ErrBare.
func (r *Repo) WorkPath(cwd, arg string) (string, error) {
	if r.Bare() {
		return "", ErrBare
	}
	if arg == "" {
		return "", fmt.Errorf("an empty path: %w", ErrNoPath)
	}
	if strings.ContainsRune(arg, 0) {
		return "", fmt.Errorf("%q: a path holds no NUL", arg)
	}
	abs := arg
	if !filepath.IsAbs(arg) {
		abs = filepath.Join(cwd, arg)
	}
	rel, ok := r.insideRoot(filepath.Clean(abs))
	if !ok {
		return "", fmt.Errorf("%s: %w %s", arg, ErrOutside, r.root)
	}
	if rel == "" {
		return "", nil
	}
	if first, _, _ := strings.Cut(rel, "/"); strings.EqualFold(first, DirName) {
		return "", fmt.Errorf("%s: %w", arg, merkle.ErrBadName)
	}
	asLink := strings.HasSuffix(arg, "/") || strings.HasSuffix(arg, "/.")
	if at, err := r.linkOnTheWay(rel, asLink); err != nil {
		return "", fmt.Errorf("%s: %w", arg, err)
	} else if at != "" {
		return "", fmt.Errorf("%s: %w %s", arg, ErrBeyondLink, at)
	}
	return rel, nil
}

// insideRoot finds the part of an absolute path behind the root, where the
// root may be spelled through links.
func (r *Repo) insideRoot(abs string) (string, bool) {
	var root unix.Stat_t
	if unix.Stat(r.root, &root) != nil {
		return "", false
	}
	// The outermost match counts: a link inside the working directory that leads
	// back to its root is a link on the way, not another spelling of the root.
	rest, rel, ok := "", "", false
	for dir := abs; ; dir = filepath.Dir(dir) {
		var st unix.Stat_t
		if dir == r.root || unix.Stat(dir, &st) == nil && st.Dev == root.Dev && st.Ino == root.Ino {
			rel, ok = rest, true
		}
		if dir == filepath.Dir(dir) {
			return rel, ok
		}
		rest = strings.TrimSuffix(filepath.Base(dir)+"/"+rest, "/")
	}
}

// linkOnTheWay returns the first proper prefix of a path that is a symlink; the
// path itself counts when it was written with a slash behind it, and must be no
// file then.
func (r *Repo) linkOnTheWay(rel string, whole bool) (string, error) {
	parts := strings.Split(rel, "/")
	n := len(parts) - 1
	if whole {
		n++
	}
	fd, err := unix.Open(r.root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("open %s: %w", r.root, err)
	}
	defer func() { unix.Close(fd) }()
	for i := range n {
		var st fileStat
		if err := lstatAt(fd, parts[i], &st); err != nil {
			return "", nil // absent: the index may know it
		}
		if st.kind == merkle.KindFile || st.kind == 0 {
			if i == len(parts)-1 {
				return "", ErrNotDir
			}
			return "", nil
		}
		if st.kind == merkle.KindSymlink {
			return strings.Join(parts[:i+1], "/"), nil
		}
		next, err := unix.Openat(fd, parts[i], unix.O_PATH|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		if err != nil {
			return "", nil
		}
		unix.Close(fd)
		fd = next
	}
	return "", nil
}
