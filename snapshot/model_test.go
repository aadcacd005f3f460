package snapshot

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"bole/merkle"
)

// model is a working directory beside what its stage and commits should hold.
// The rules are written down once more here, over maps of paths.
type model struct {
	*work
	base    tree // nil before the first commit
	index   tree
	commits []modelCommit
	on      int // which of the commits the working directory stands on
}

type modelCommit struct {
	id   merkle.Hash
	tree tree
}

// same is what counts as unchanged.
func (m *model) keep(path string, disk node) node {
	if was, ok := m.index[path]; ok && sameIn(was, disk) {
		return was
	}
	if was, ok := m.base[path]; ok && disk.Kind != merkle.KindDir && sameIn(was, disk) {
		return was
	}
	return disk
}

// record says what Add of paths makes of the index.
func (m *model) record(disk tree, paths ...string) {
	if m.index == nil {
		m.index = tree{"": disk[""]}
	}
	want := newWanted(paths)
	m.recordDir(disk, "", want)
}

func (m *model) recordDir(disk tree, dir string, want *wanted) {
	was, had := m.index[dir]
	onDisk := disk.isDir(dir)
	if onDisk && (!had || was.Kind != merkle.KindDir) {
		m.index.drop(dir)
		m.index[dir] = disk[dir]
		had = false
	}
	touched := false
	names := append(disk.names(dir), m.index.names(dir)...)
	slices.Sort(names)
	for _, p := range slices.Compact(names) {
		_, name := splitPath(p)
		below := want.below(name)
		if !want.all && want.kids[name] == nil {
			continue
		}
		touched = m.recordName(disk, p, below) || touched
	}
	if !onDisk || !had {
		return
	}
	now := disk[dir]
	moved := want.all && (now.Perm != was.Perm || now.Attrs != was.Attrs)
	if !want.all {
		now.Perm, now.Attrs = was.Perm, was.Attrs
	}
	if moved || touched {
		m.index[dir] = now
	}
}

// recordName records one name; true when anything about it changed the directory around it.
func (m *model) recordName(disk tree, p string, want *wanted) bool {
	now, onDisk := disk[p]
	was, had := m.index[p]
	switch {
	case onDisk && now.Kind == merkle.KindDir:
		m.recordDir(disk, p, want)
		return !had || was.Kind != merkle.KindDir
	case onDisk && want.all:
		kept := m.keep(p, now)
		if had && sameIn(was, now) {
			return false
		}
		m.index.drop(p)
		m.index[p] = kept
		return true
	case had && want.all:
		m.index.drop(p)
		return true
	case had && was.Kind == merkle.KindDir:
		m.recordDir(tree{}, p, want)
	}
	return false
}

// compareStatus holds Status to what index and disk say.
func (m *model) compareStatus(t tb) {
	t.Helper()
	st := m.status()
	disk := readDisk(t, m.root)
	var unstaged, untracked []string
	for _, c := range m.index.changesTo(disk, false) {
		if path, ok := strings.CutPrefix(c, "A "); ok {
			if disk.isDir(path) {
				path += "/"
			}
			untracked = append(untracked, path)
		} else {
			unstaged = append(unstaged, c)
		}
	}
	slices.Sort(untracked)
	got := letters(st.Unstaged)
	slices.Sort(got)
	staged := letters(st.Staged)
	slices.Sort(staged)
	var wantStaged []string
	if m.index != nil {
		wantStaged = m.base.changesTo(m.index, true)
	}
	if d := cmp.Diff(unstaged, got); d != "" {
		t.Fatalf("unstaged (-want +got):\n%s", d)
	}
	if d := cmp.Diff(untracked, st.Untracked); d != "" {
		t.Fatalf("untracked (-want +got):\n%s", d)
	}
	if d := cmp.Diff(wantStaged, staged); d != "" {
		t.Fatalf("staged (-want +got):\n%s", d)
	}
}

// build makes a tree from nothing and returns the name of its root.
func (tr tree) build(t tb) merkle.Hash {
	t.Helper()
	entries := map[string]merkle.Entry{}
	for p, n := range tr {
		if p != "" {
			entries[p] = n.entry(t)
		}
	}
	return buildEntries(t, merkle.NewMemStore(), entries).Hash
}

func (n node) entry(t tb) merkle.Entry {
	e := merkle.Entry{Kind: n.Kind, Perm: n.Perm, Mtime: n.Mtime}
	switch n.Kind {
	case merkle.KindFile:
		data := []byte(n.Data)
		if full, ok := longData[n.Data]; ok {
			data = full
		}
		e.Hash, e.Size = merkle.ContentHash(data), uint64(len(data))
	case merkle.KindSymlink:
		e.Size = uint64(len(n.Target))
		if len(n.Target) > merkle.InlineTarget {
			e.Hash = merkle.ContentHash([]byte(n.Target))
		} else {
			e.Target = []byte(n.Target)
		}
	}
	var attrs []merkle.Attr
	for _, a := range strings.Split(strings.TrimSuffix(n.Attrs, ";"), ";") {
		if name, value, ok := strings.Cut(a, "="); ok {
			attrs = append(attrs, merkle.Attr{Name: name, Value: []byte(value)})
		}
	}
	if len(attrs) > 0 {
		b, err := merkle.EncodeAttrs(attrs)
		ok(t, err)
		e.Attrs = merkle.NodeHash(b)
	}
	return e
}

// longData finds the bytes that a tree shows by their hash.
var longData = map[string][]byte{}

// contents are drawn often enough to come twice; several have one size.
var contents = func() []string {
	list := []string{"", "a", "b", "aaaa", "bbbb", "cccc", strings.Repeat("x", 5000), strings.Repeat("y", 5000)}
	for _, c := range []string{"u", "v"} {
		list = append(list, strings.Repeat(c, 140_000), c+strings.Repeat("\x00", 300_000)+c)
	}
	for _, c := range list {
		longData[shortData([]byte(c))] = []byte(c)
	}
	return list
}()

var names = []string{"a", "b", "c", "A", "x y", "n\nl", "\xff\xfe", "é", "é", ".hid", "a.b", "a-", strings.Repeat("L", 255)}

// path draws a path; existing ones come more often than others.
func (m *model) path(t *rapid.T) string {
	disk := m.paths()
	if len(disk) > 0 && rapid.IntRange(0, 3).Draw(t, "new") > 0 {
		return rapid.SampledFrom(disk).Draw(t, "path")
	}
	dir := ""
	if dirs := m.dirs(); len(dirs) > 0 && rapid.IntRange(0, 3).Draw(t, "deep") > 0 {
		dir = rapid.SampledFrom(dirs).Draw(t, "dir")
	}
	if strings.Count(dir, "/") > 2 {
		dir = parentPath(dir)
	}
	return joinPath(dir, rapid.SampledFrom(names).Draw(t, "name"))
}

// paths lists what is on disk, sorted.
func (m *model) paths() (list []string) {
	ok(m.t, filepath.WalkDir(m.root, func(p string, d os.DirEntry, err error) error {
		rel := strings.TrimPrefix(strings.TrimPrefix(p, m.root), "/")
		if rel == DirName {
			return filepath.SkipDir
		}
		if rel != "" {
			list = append(list, rel)
		}
		return err
	}))
	return list
}

func (m *model) dirs() []string {
	return slices.DeleteFunc(m.paths(), func(p string) bool {
		fi, err := os.Lstat(m.at(p))
		return err != nil || !fi.IsDir()
	})
}

// TestModel compares the repository with the model after each of many operations.
func TestModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		root := filepath.Join(t.TempDir(), "r")
		ok(rt, Init(root, InitOptions{}))
		r, err := Open(root, OpenOptions{})
		ok(rt, err)
		defer r.Close()
		m := &model{work: &work{rt, r}, on: -1}
		usual := limits
		defer func() { limits = usual }()
		if rapid.Bool().Draw(rt, "small limits") {
			n := rapid.SampledFrom([]int{1, 2, 3}).Draw(rt, "limit")
			limits.chunk, limits.window, limits.entries, limits.records, limits.fresh = n, n, n, n, n
		}
		rt.Repeat(m.actions())
		m.wantSound()
	})
}

// wantUnchanged fails when a refused command changed the disk or the stage.
func (m *model) wantUnchanged(t tb, before tree) {
	t.Helper()
	wantTree(t, "the disk after a refused command", readDisk(t, m.root), before)
	m.compareStatus(t)
}

func (m *model) save(t *rapid.T) {
	_, err := m.tryCommit(fmt.Sprint(len(m.commits)))
	if m.index == nil || m.base != nil && len(m.base.changesTo(m.index, true)) == 0 {
		wantErr(t, err, ErrNothing)
		return
	}
	ok(t, err)
	head, err := m.Head()
	ok(t, err)
	if head.Branch == "" && m.on < 0 {
		t.Fatal("HEAD is on no branch")
	}
	m.base = m.index.clone()
	m.commits = append(m.commits, modelCommit{head.Commit, m.base})
	m.on = len(m.commits) - 1
	wantTree(t, "the commit", readCommitTree(t, m.Repo, head.Commit), m.base)
	c, err := m.ReadCommit(head.Commit)
	ok(t, err)
	if want := m.base.build(t); c.Tree != want {
		t.Fatalf("the tree is %s, built anew it is %s", c.Tree, want)
	}
}

// move checks out an earlier commit.
func (m *model) move(t *rapid.T, force bool) {
	if len(m.commits) == 0 {
		t.Skip("no commit")
	}
	to := rapid.IntRange(0, len(m.commits)-1).Draw(t, "commit")
	target := m.commits[to]
	before := readDisk(t, m.root)
	_, err := m.Checkout(ctx, Revision{Commit: target.id}, CheckoutOptions{Force: force})
	if errors.Is(err, ErrConflict) && !force {
		if len(m.index.changesTo(before, false)) == 0 && len(m.base.changesTo(m.index, true)) == 0 {
			t.Fatalf("nothing is unsaved, and yet: %v", err)
		}
		m.wantUnchanged(t, before)
		return
	}
	ok(t, err)
	m.checkMoved(t, before, target.tree, force)
	m.on, m.base = to, target.tree
	m.compareStatus(t)
}

// checkMoved holds the disk after a checkout to the rules, and takes over what stays staged.
func (m *model) checkMoved(t *rapid.T, before, target tree, force bool) {
	after := readDisk(t, m.root)
	index := target.clone()
	if force {
		for p, n := range target {
			// A time alone is no work: it is set where the commits differ.
			if got := after[p]; got != n && (m.base[p] != n || !sameIn(got, n)) {
				t.Fatalf("%q is %+v after a forced checkout, want %+v", p, after[p], n)
			}
		}
	} else {
		index = m.movedIndex(target)
	}
	for p, n := range before {
		_, tracked := m.index[p]
		now, there := after[p]
		want, isIn := target[p]
		switch {
		case !force && !sameIn(n, m.base[p]) && (!there || !sameIn(now, n)):
			// Unsaved: it stays, unless it was the mode of a folder that goes, or of one that nobody tracked.
			if n.Kind != merkle.KindDir || m.base.isDir(p) && target.isDir(p) {
				t.Fatalf("unsaved %q was %+v and is %+v", p, n, now)
			}
		case !tracked && !isIn && !there && !force:
			t.Fatalf("untracked %q is gone", p)
		case isIn && !there && sameIn(n, m.base[p]):
			t.Fatalf("%q is in the target and gone", p)
		case isIn && there && sameIn(n, m.base[p]) && !sameIn(now, want) && !force && m.base[p] != target[p]:
			t.Fatalf("%q is %+v, the target has %+v", p, now, want)
		}
	}
	m.index = index
}

// movedIndex lays what was staged over the target.
func (m *model) movedIndex(target tree) tree {
	index := target.clone()
	var kept []string    // what stays staged for its own sake
	var folders []string // directories of which the stage has a time, and maybe no more
	for p, n := range m.index {
		was, had := m.base[p]
		now, isIn := target[p]
		switch {
		case had && was == n, isIn && now.Kind == n.Kind && n.Kind != merkle.KindDir && sameIn(now, n):
		case n.Kind == merkle.KindDir && isIn && now.Kind == n.Kind && (sameIn(now, n) || had && sameIn(was, n)):
			folders = append(folders, p)
		case n.Kind == merkle.KindDir && had && sameIn(was, n): // goes with the target, or there is a conflict below
		default:
			index[p] = n
			kept = append(kept, p)
		}
	}
	for p := range m.base {
		if _, ok := m.index[p]; !ok {
			if _, isIn := target[p]; isIn {
				kept = append(kept, p)
			}
			index.drop(p)
		}
	}
	for _, dir := range folders {
		if slices.ContainsFunc(kept, func(p string) bool { return dir == "" || strings.HasPrefix(p, dir+"/") }) {
			n := index[dir]
			n.Mtime = m.index[dir].Mtime
			index[dir] = n
		}
	}
	return index
}

func (m *model) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"write":   m.doWrite,
		"pwrite":  m.doPwrite,
		"mkdir":   func(t *rapid.T) { _ = os.MkdirAll(m.at(m.path(t)), 0o755) },
		"remove":  func(t *rapid.T) { ok(t, os.RemoveAll(m.at(m.path(t)))) },
		"rename":  m.doRename,
		"chmod":   m.doChmod,
		"symlink": m.doSymlink,
		"attr":    m.doAttr,
		"time":    m.doTime,
		"add": func(t *rapid.T) {
			m.add()
			m.record(readDisk(t, m.root))
		},
		"addPath": m.doAddPath,
		"status":  func(t *rapid.T) { m.compareStatus(t) },
		"commit":  m.save,
		"saveAll": func(t *rapid.T) {
			m.add()
			m.record(readDisk(t, m.root))
			m.save(t)
			m.wantClean()
		},
		"checkout":      func(t *rapid.T) { m.move(t, false) },
		"forceCheckout": func(t *rapid.T) { m.move(t, true) },
		"restore": func(t *rapid.T) {
			m.move(t, true)
			if m.on >= 0 && len(m.status().Untracked) == 0 {
				if left := m.base.changesTo(readDisk(t, m.root), true); len(left) > 0 {
					t.Fatalf("after a forced checkout the disk differs: %q", left)
				}
				m.wantClean()
			}
		},
	}
}

func (m *model) doWrite(t *rapid.T) {
	p := m.at(m.path(t))
	if fi, err := os.Lstat(p); err == nil && (fi.IsDir() || rapid.Bool().Draw(t, "replace")) {
		ok(t, os.RemoveAll(p))
	}
	if fi, err := os.Lstat(p); err == nil && !fi.Mode().IsRegular() {
		ok(t, os.Remove(p))
	}
	_ = os.WriteFile(p, []byte(rapid.SampledFrom(contents).Draw(t, "content")), 0o644)
}

// doPwrite changes bytes and neither the size nor the time.
func (m *model) doPwrite(t *rapid.T) {
	p := m.at(m.path(t))
	fi, err := os.Lstat(p)
	if err != nil || !fi.Mode().IsRegular() || fi.Size() == 0 {
		t.Skip("no file")
	}
	f, err := os.OpenFile(p, os.O_RDWR, 0)
	ok(t, err)
	defer f.Close()
	b := make([]byte, fi.Size())
	_, err = f.ReadAt(b, 0)
	ok(t, err)
	for _, c := range contents {
		if len(c) == len(b) && c != string(b) {
			_, err = f.WriteAt([]byte(c), 0)
			ok(t, err)
			break
		}
	}
	ok(t, os.Chtimes(p, fi.ModTime(), fi.ModTime()))
}

func (m *model) doRename(t *rapid.T) {
	if err := os.Rename(m.at(m.path(t)), m.at(m.path(t))); err != nil {
		t.Skip(err)
	}
}

func (m *model) doChmod(t *rapid.T) {
	p := ""
	if rapid.IntRange(0, 4).Draw(t, "root") > 0 {
		p = m.path(t)
	}
	if fi, err := os.Lstat(m.at(p)); err == nil && fi.Mode()&os.ModeSymlink == 0 {
		ok(t, os.Chmod(m.at(p), rapid.SampledFrom([]os.FileMode{0o644, 0o755, 0o700, 0o600, 0o444}).Draw(t, "mode")))
	}
}

func (m *model) doSymlink(t *rapid.T) {
	p := m.at(m.path(t))
	ok(t, os.RemoveAll(p))
	_ = os.Symlink(rapid.SampledFrom([]string{"a", "../x", "/etc/passwd", strings.Repeat("t", 128), strings.Repeat("t", 129), strings.Repeat("d/", 700)}).Draw(t, "target"), p)
}

func (m *model) doAttr(t *rapid.T) {
	p := m.at(m.path(t))
	if fi, err := os.Lstat(p); err != nil || fi.Mode()&os.ModeSymlink != 0 {
		t.Skip("cannot have attributes")
	}
	name := rapid.SampledFrom([]string{"user.a", "user.bb"}).Draw(t, "attr")
	if rapid.Bool().Draw(t, "set") {
		ok(t, unix.Setxattr(p, name, []byte(rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, "value")), 0))
	} else if err := unix.Removexattr(p, name); err != nil && !errors.Is(err, unix.ENODATA) {
		t.Fatal(err)
	}
}

func (m *model) doTime(t *rapid.T) {
	p := ""
	if rapid.IntRange(0, 4).Draw(t, "root") > 0 {
		p = m.path(t)
	}
	ns := rapid.SampledFrom([]int64{-1, 0, 1, 1_234_567_891, 5_000_000_000_000_000_001, -4_000_000_000_000_000_001}).Draw(t, "ns")
	if err := unix.UtimesNanoAt(unix.AT_FDCWD, m.at(p), mtimeSpec(ns), unix.AT_SYMLINK_NOFOLLOW); err != nil {
		t.Skip(err)
	}
}

func (m *model) doAddPath(t *rapid.T) {
	p := m.path(t)
	disk := readDisk(t, m.root)
	_, onDisk := disk[p]
	_, inIndex := m.index[p]
	_, err := m.tryAdd(p)
	if !onDisk && !inIndex {
		if !errors.Is(err, ErrNoPath) {
			t.Fatalf("adding %q, which is nowhere: %v", p, err)
		}
		return
	}
	ok(t, err)
	m.record(disk, p)
}
