package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

// node is all that is kept of one path, in a form that tests can compare.
type node struct {
	Kind   merkle.Kind
	Perm   uint16
	Mtime  int64
	Data   string // of a file; long ones by their hash
	Target string
	Attrs  string
}

// tree is a directory tree by path; the root is "".
type tree map[string]node

func shortData(b []byte) string {
	if len(b) > 100 {
		return fmt.Sprintf("%d bytes %s", len(b), merkle.ContentHash(b))
	}
	return string(b)
}

// readDisk reads a tree with the calls that any program uses, .bole in its root left out.
func readDisk(t tb, root string) tree {
	t.Helper()
	out := tree{}
	var walk func(rel string)
	walk = func(rel string) {
		name := root
		if rel != "" {
			name += "/" + rel
		}
		n := lstatNode(t, name)
		out[rel] = n
		if n.Kind != merkle.KindDir {
			return
		}
		list, err := os.ReadDir(name)
		ok(t, err)
		for _, d := range list {
			if rel != "" || d.Name() != DirName {
				walk(path.Join(rel, d.Name()))
			}
		}
	}
	walk("")
	return out
}

func lstatNode(t tb, name string) node {
	t.Helper()
	var st unix.Stat_t
	ok(t, unix.Lstat(name, &st))
	n := node{Perm: uint16(st.Mode & 0o777), Mtime: st.Mtim.Nano(), Attrs: diskAttrs(t, name)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		n.Kind = merkle.KindFile
		b, err := os.ReadFile(name)
		ok(t, err)
		n.Data = shortData(b)
	case unix.S_IFDIR:
		n.Kind = merkle.KindDir
	case unix.S_IFLNK:
		n.Kind, n.Perm = merkle.KindSymlink, 0o777
		target, err := os.Readlink(name)
		ok(t, err)
		n.Target = target
	}
	return n
}

func diskAttrs(t tb, name string) string {
	t.Helper()
	buf := make([]byte, 64<<10)
	n, err := unix.Llistxattr(name, buf)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return ""
	}
	ok(t, err)
	var list []merkle.Attr
	for _, a := range bytes.Split(buf[:n], []byte{0}) {
		if !strings.HasPrefix(string(a), "user.") || strings.HasPrefix(string(a), "user.bole.") {
			continue
		}
		v := make([]byte, 64<<10)
		n, err := unix.Lgetxattr(name, string(a), v)
		ok(t, err)
		list = append(list, merkle.Attr{Name: string(a), Value: v[:n]})
	}
	return showAttrs(list)
}

func showAttrs(list []merkle.Attr) string {
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	var b strings.Builder
	for _, a := range list {
		fmt.Fprintf(&b, "%s=%s;", a.Name, shortData(a.Value))
	}
	return b.String()
}

// readCommitTree reads a commit through Walk and ReadContent.
func readCommitTree(t tb, r *Repo, id merkle.Hash) tree {
	t.Helper()
	return readSubtree(t, r, id, "")
}

// readSubtree reads what a commit has at and below a path.
func readSubtree(t tb, r *Repo, id merkle.Hash, at string) tree {
	t.Helper()
	root, err := r.Lookup(id, at)
	ok(t, err)
	out := tree{"": entryNode(t, r, &root)}
	var totals merkle.Totals
	ok(t, r.Walk("", root, func(path string, e *merkle.Entry) error {
		out[path] = entryNode(t, r, e)
		switch {
		case e.Kind == merkle.KindDir:
			totals.Dirs++
		case e.Kind == merkle.KindFile:
			totals.Bytes += e.Size
			fallthrough
		default:
			totals.Files++
		}
		return nil
	}))
	if root.Totals() != totals {
		t.Fatalf("the entry of %q says %+v, it holds %+v", at, root.Totals(), totals)
	}
	return out
}

func entryNode(t tb, r *Repo, e *merkle.Entry) node {
	t.Helper()
	n := node{Kind: e.Kind, Perm: e.Perm, Mtime: e.Mtime}
	attrs, err := r.Attributes(e.Attrs)
	ok(t, err)
	n.Attrs = showAttrs(attrs)
	switch e.Kind {
	case merkle.KindFile:
		b, err := r.ReadContent(e.Hash, nil)
		ok(t, err)
		if uint64(len(b)) != e.Size {
			t.Fatalf("%q has %d bytes, its entry says %d", e.Name, len(b), e.Size)
		}
		n.Data = shortData(b)
	case merkle.KindSymlink:
		target, err := r.LinkTarget(e)
		ok(t, err)
		n.Target = string(target)
	}
	return n
}

// wantTree fails when two trees differ in anything.
func wantTree(t tb, what string, got, want tree) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("%s differs (-want +got):\n%s", what, diff)
	}
}

// sameIn says whether two nodes are equal by all but a time, and for directories mode and attributes alone.
func sameIn(a, b node) bool {
	a.Mtime, b.Mtime = 0, 0
	return a == b
}

// below lists the paths of a tree below a directory, one level deep, sorted.
func (tr tree) names(dir string) []string {
	var out []string
	for p := range tr {
		if p != "" && parentPath(p) == dir {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// drop removes a path and everything below it.
func (tr tree) drop(path string) {
	for p := range tr {
		if p == path || strings.HasPrefix(p, path+"/") {
			delete(tr, p)
		}
	}
}

func (tr tree) clone() tree { return maps.Clone(tr) }

// isDir says whether a path is a directory of the tree.
func (tr tree) isDir(path string) bool { return tr[path].Kind == merkle.KindDir }

// changesTo lists what differs between two trees, times aside. A directory that
// went away stands for everything in it; one that came does so where expand is
// not set, as in Status.
func (tr tree) changesTo(now tree, expand bool) []string {
	var out []string
	var walk func(dir string)
	walk = func(dir string) {
		names := append(tr.names(dir), now.names(dir)...)
		slices.Sort(names)
		for _, p := range slices.Compact(names) {
			a, inA := tr[p]
			b, inB := now[p]
			into := expand && b.Kind == merkle.KindDir
			switch {
			case !inB:
				out, into = append(out, "D "+p), false
			case !inA:
				out = append(out, "A "+p)
			case a.Kind != b.Kind:
				out = append(out, "T "+p)
				if a.Kind == merkle.KindDir {
					into = false
				}
			default:
				if !sameIn(a, b) {
					out = append(out, "M "+p)
				}
				into = a.Kind == merkle.KindDir
			}
			if into {
				walk(p)
			}
		}
	}
	if a, ok := tr[""]; ok && !sameIn(a, now[""]) {
		out = append(out, "M .")
	}
	walk("")
	slices.Sort(out)
	return out
}
