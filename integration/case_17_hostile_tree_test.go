package integration

import (
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bole/merkle"

	"golang.org/x/sys/unix"
)

// hostileTree is a directory node that no honest program writes.
type hostileTree struct {
	name  string
	node  func(h merkle.Hash) []byte
	words string // something the hostile entry would write, below the checkout
}

func patched(off int, val byte) func(h merkle.Hash) []byte {
	return func(h merkle.Hash) []byte {
		b := rawDir(file("f", h, 7), file("g", h, 7))
		b[off] = val
		return b
	}
}

func oneEntry(name string) func(h merkle.Hash) []byte {
	return func(h merkle.Hash) []byte { return rawDir(file(name, h, 7)) }
}

var hostileTrees = []hostileTree{
	{"dot-dot", oneEntry(".."), ""},
	{"dot", oneEntry("."), ""},
	{"empty name", oneEntry(""), ""},
	{"slash", oneEntry("a/b"), "a/b"},
	{"parent", oneEntry("../evil"), "../evil"},
	{"absolute", oneEntry("/tmp/evil"), ""},
	{"NUL", oneEntry("a\x00b"), "a"},
	{".bole", oneEntry(".bole"), ""},
	{".BOLE", oneEntry(".BOLE"), ".BOLE"},
	{".Bole", oneEntry(".Bole"), ".Bole"},
	{"duplicate", func(h merkle.Hash) []byte { return rawDir(file("f", h, 7), file("f", h, 7)) }, ""},
	{"unsorted", func(h merkle.Hash) []byte { return rawDir(file("g", h, 7), file("f", h, 7)) }, ""},
	{"256 bytes", func(h merkle.Hash) []byte {
		e := file(strings.Repeat("n", 256), h, 7)
		e.nameLen = 255
		return rawDir(e)
	}, ""},
	{"name longer than its item", func(h merkle.Hash) []byte {
		e := file("f", h, 7)
		e.nameLen = 200
		return rawDir(e)
	}, ""},
	{"unknown kind", func(h merkle.Hash) []byte {
		e := file("f", h, 7)
		e.kind = 9
		return rawDir(e)
	}, "f"},
	{"set-id bits", func(h merkle.Hash) []byte {
		e := file("f", h, 7)
		e.perm = 0o4755
		return rawDir(e)
	}, ""},
	{"directory without node", func(h merkle.Hash) []byte { return rawDir(rawSubdir("d", merkle.Hash{}, 0, 0, 0)) }, ""},
	{"link without target", func(h merkle.Hash) []byte { return rawDir(rawEntry{name: "l", kind: 3, perm: 0o777}) }, "l"},
	{"link with NUL", func(h merkle.Hash) []byte {
		return rawDir(rawEntry{name: "l", kind: 3, perm: 0o777, size: 3, tail: []byte("a\x00b")})
	}, "l"},
	{"absurd count", patched(7, 0x7f), ""},
	{"absurd totals", patched(35, 0x7f), ""},
	{"wrong version", patched(1, 9), ""},
	{"wrong level", patched(2, 3), ""},
	{"heap beyond the end", patched(40+48+1, 0xff), ""},
	{"cut off", func(h merkle.Hash) []byte { b := rawDir(file("f", h, 7)); return b[:len(b)-1] }, ""},
	{"bytes behind the end", func(h merkle.Hash) []byte { return append(rawDir(file("f", h, 7)), 0) }, ""},
	{"a header cut off", func(merkle.Hash) []byte { return []byte("D\x01") }, ""},
	{"a VNode as root", func(h merkle.Hash) []byte { b := rawDir(file("f", h, 7)); b[0] = 'V'; return b }, ""},
}

func TestCase17HostileTrees(t *testing.T) {
	t.Parallel()
	for _, tree := range hostileTrees {
		for _, nested := range []bool{false, true} {
			name := tree.name
			if nested {
				name += " below"
			}
			t.Run(name, func(t *testing.T) {
				r := newFastRepo(t)
				write(t, r.path("f"), "content")
				first := r.commit()
				h := r.contentHash("f")
				bad := r.putNodes(tree.node(h))[0]
				root, totals := bad, merkle.Totals{Files: 1, Bytes: 7}
				if nested {
					root = r.putNodes(rawDir(file("a", h, 7), rawSubdir("d", bad, 1, 0, 7)))[0]
					totals = merkle.Totals{Files: 2, Dirs: 1, Bytes: 14}
				}
				id := r.putCommit(root, totals).String()
				checkHostile(t, r, first, id, bad, nested, tree.words)
			})
		}
	}
}

// checkHostile runs everything that reads a tree on one that is hostile.
func checkHostile(t *testing.T, r *repo, first, id string, bad merkle.Hash, nested bool, words string) {
	t.Helper()
	res := r.run("fsck")
	checkRefused(t, result{code: res.code, stderr: res.both(), args: res.args}, bad.String())
	for _, args := range [][]string{{"ls", id + ":"}, {"tree", id + ":"}, {"diff", first, id}, {"status"}, {"log"}} {
		if res := r.run(args...); res.signal != 0 || res.code < 0 || res.code > 2 {
			t.Errorf("%v", res)
		}
	}

	// A mount shows an error at most for that entry.
	m := &mnt{t: t, dir: scratch(t) + "/M"}
	mkdir(t, m.dir)
	t.Cleanup(m.destroy)
	if res := r.run("mount", id, m.dir); res.code == 0 {
		walk := run(t, command{args: []string{"find", m.dir, "-ls"}, limit: 20 * time.Second})
		if walk.code == 0 {
			t.Errorf("the mount shows the hostile tree without an error: %v", walk)
		}
		if nested && read(t, m.path("a")) != "content" {
			t.Error("the honest file beside it cannot be read")
		}
		if nested && exists(m.path("d", words)) && words != "" {
			t.Errorf("the hostile entry %q is shown", words)
		}
		m.pid = daemonOf(t, m.dir)
		m.umount()
	} else {
		checkRefused(t, res)
		if nested {
			t.Errorf("one bad directory keeps the whole commit from being mounted: %v", res)
		}
	}

	// Checkout writes nothing outside and says which node it is.
	place := filepath.Join(fast(t), "place")
	mkdir(t, place)
	tool(t, "cp", "-a", r.path(".bole"), place)
	above := readTree(t, filepath.Dir(place))
	out := &repo{t: t, dir: place}
	out.refused([]string{bad.String()}, "checkout", "--force", id)
	for p := range readTree(t, filepath.Dir(place)) {
		if _, before := above[p]; !before && !strings.HasPrefix(p, "place/") {
			t.Errorf("checkout wrote %s", p)
		}
	}
	if exists("/tmp/evil") {
		_ = os.Remove("/tmp/evil")
		t.Error("checkout wrote /tmp/evil")
	}
	out.must("log", "-n", "1", first)
}

// Trees whose single nodes are right but whose whole is not.
func TestCase17HostileReferences(t *testing.T) {
	t.Parallel()
	r := newFastRepo(t)
	write(t, r.path("f"), "content")
	first := r.commit()
	h := r.contentHash("f")
	honest := r.putNodes(rawDir(file("f", h, 7)))[0]
	commit, err := merkle.ParseHash(first)
	ok(t, err)
	// A node cannot name itself, its name being its hash; the nearest is one
	// that names a node of the wrong kind, or one that is not there.
	trees := map[string][]byte{
		"a file's content as directory": rawDir(rawSubdir("d", h, 1, 0, 7)),
		"a commit as directory":         rawDir(rawSubdir("d", commit, 1, 0, 7)),
		"a directory as content":        rawDir(file("x", honest, 7)),
		"wrong totals":                  rawDir(rawSubdir("d", honest, 1000, 0, 7)),
		"a missing directory":           rawDir(rawSubdir("d", merkle.NodeHash([]byte("none")), 1, 0, 7)),
		"a missing content":             rawDir(file("x", merkle.ContentHash([]byte("none")), 7)),
		"a size that does not match":    rawDir(file("x", h, 6)),
		"a larger size":                 rawDir(file("x", h, 7_000_000)),
		"an absurd size":                rawDir(file("x", h, 1<<62)),
	}
	for name, node := range trees {
		t.Run(name, func(t *testing.T) {
			root := r.putNodes(node)[0]
			id := r.putCommit(root, rawTotals(node)).String()
			res := r.run("fsck", "--contents")
			if res.code != 1 {
				t.Errorf("fsck: %v", res)
			}
			m := r.mount(id)
			deadline(t, time.Minute, m)
			// Not ReadFile: it would make room for as much as the size says.
			if f, err := os.Open(m.path("x")); err == nil {
				buf := make([]byte, 100)
				if n, err := f.Read(buf); !errors.Is(err, unix.EIO) || n > 0 {
					t.Errorf("x reads as %q, %v", buf[:max(n, 0)], err)
				}
				ok(t, f.Close())
			}
			if list, err := os.ReadDir(m.path("d")); err == nil && name != "wrong totals" {
				t.Errorf("d lists %v", list)
			}
			m.umount()
			place := r.copyTo(t)
			res = place.run("checkout", "--force", id)
			if name != "wrong totals" {
				checkRefused(t, res)
			}
		})
	}
	r.putCommit(honest, merkle.Totals{Files: 1, Bytes: 7})
	r.must("checkout", "--force", first)
	r.wantClean()
}

// rawTotals reads the totals that a directory node claims.
func rawTotals(b []byte) merkle.Totals {
	le := binary.LittleEndian
	return merkle.Totals{Files: le.Uint64(b[16:]), Dirs: le.Uint64(b[24:]), Bytes: le.Uint64(b[32:])}
}

// copyTo copies the repository's own folder to a new working directory.
func (r *repo) copyTo(t testing.TB) *repo {
	t.Helper()
	dir := filepath.Join(fast(t), "copy")
	mkdir(t, dir)
	tool(t, "cp", "-a", r.path(".bole"), dir)
	return &repo{t: t, dir: dir}
}
