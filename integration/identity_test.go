package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bole/internal/treegen"

	"golang.org/x/sys/unix"
)

// identical judges two trees by the tools that users trust, and by this
// package's own comparison.
func identical(t testing.TB, what, want, got string) {
	t.Helper()
	needTool(t, "rsync", "diff")
	sync := run(t, command{args: []string{"rsync", "-aniX", "--checksum", "--delete", "--exclude=/.bole", want + "/", got + "/"}})
	if sync.code != 0 || sync.stdout != "" {
		t.Errorf("%s: rsync finds differences: %v", what, sync)
	}
	back := run(t, command{args: []string{"rsync", "-aniX", "--checksum", "--delete", "--exclude=/.bole", got + "/", want + "/"}})
	if back.code != 0 || back.stdout != "" {
		t.Errorf("%s: rsync back finds differences: %v", what, back)
	}
	diff := run(t, command{args: []string{"diff", "-r", "--no-dereference", "--exclude=.bole", want, got}})
	if diff.code != 0 || diff.stdout != "" {
		t.Errorf("%s: diff finds differences: %v", what, diff)
	}
	sameTree(t, what, readTree(t, want), readTree(t, got), sameOpts{})
}

func TestIdentityOfAWorkingDirectory(t *testing.T) {
	t.Parallel()
	needRoot(t)
	dir := filepath.Join(scratch(t), "R")
	mkdir(t, dir)
	ok(t, treegen.Odd(dir))
	r := initRepo(t, dir)
	id := r.commit()
	r.wantClean()
	r.fsck()
	for _, io := range []string{"auto", "stateless", "passthrough", "handles"} {
		m := r.mount(id, "--io", io)
		identical(t, "mount --io "+io, r.dir, m.dir)
		identical(t, "again, now cached", r.dir, m.dir)
		m.umount()
	}
	m := r.mount(id, "--verify")
	identical(t, "mount --verify", r.dir, m.dir)
	m.umount()
	other := r.elsewhere(id)
	identical(t, "checkout", r.dir, other.dir)
	other.wantClean()

	// A second commit of the checked-out place would hold the same tree.
	if res := other.run("commit", "-m", "nothing"); res.code == 0 {
		t.Errorf("a commit without a change: %v", res)
	}
}

func TestIdentityOfAnImport(t *testing.T) {
	t.Parallel()
	needRoot(t)
	for _, move := range []bool{false, true} {
		base := scratch(t)
		src, kept := filepath.Join(base, "src"), filepath.Join(base, "kept")
		mkdir(t, src)
		ok(t, treegen.Odd(src))
		tool(t, "cp", "-a", src, kept)
		r := initRepo(t, filepath.Join(base, "bare"), "--bare")
		args := []string{"import", src, "-m", "odd"}
		if move {
			args = []string{"import", "--move", src, "-m", "odd"}
		}
		r.must(args...)
		m := r.mount("HEAD")
		identical(t, "mount of an import", kept, m.dir)
		m.umount()
		if !move {
			identical(t, "the source", kept, src)
		} else {
			for p, n := range readTree(t, src) {
				if n.kind == "file" {
					t.Errorf("import --move left %q", p)
				}
			}
		}
		r.fsck()
	}
}

// What no commit holds is named and passed over, and never waited on.
func TestSpecialFilesAreSkipped(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("f"), "f")
	mkdir(t, r.path("special"))
	special, err := treegen.Special(r.path("special"))
	ok(t, err)
	res := r.run("add", ".")
	if res.code != 0 && res.code != 1 {
		t.Fatalf("%v", res)
	}
	for _, name := range special {
		if !strings.Contains(res.both(), name) {
			t.Errorf("add does not name %s: %v", name, res)
		}
	}
	r.must("commit", "-m", "x")
	r.wantClean()
	m := r.mount("HEAD")
	if got := readTree(t, m.dir); len(got) != 3 {
		t.Errorf("%d entries, want 3", len(got))
	}
	m.umount()
	r.must("checkout", "HEAD")
	for _, name := range special {
		if !exists(r.path("special", name)) {
			t.Errorf("checkout removed %s", name)
		}
	}
}

// A repository or a mount inside the working directory is not part of it.
func TestNestedRepositoriesAndMountsAreSkipped(t *testing.T) {
	t.Parallel()
	needRoot(t)
	r := newRepo(t)
	write(t, r.path("f"), "f")
	inner := initRepo(t, r.path("inner"))
	write(t, inner.path("g"), "g")
	inner.commit()
	mkdir(t, r.path("disk"))
	mountTmpfs(t, r.path("disk"), "1m")
	write(t, r.path("disk", "h"), "h")
	mkdir(t, r.path("view"))
	m := inner.mountAt(r.path("view"), "HEAD")
	res := r.run("add", ".")
	if res.code != 0 && res.code != 1 {
		t.Fatalf("%v", res)
	}
	for _, name := range []string{"inner", "disk", "view"} {
		if !strings.Contains(res.both(), name) {
			t.Errorf("add does not name %s: %v", name, res)
		}
	}
	r.must("commit", "-m", "x")
	for p := range readTree(t, r.elsewhere("HEAD").dir) {
		if strings.Contains(p, "/") {
			t.Errorf("%s was committed", p)
		}
	}
	m.umount()
	r.must("checkout", "HEAD")
	if read(t, inner.path("g")) != "g" || read(t, r.path("disk", "h")) != "h" {
		t.Error("checkout touched what is not its own")
	}
	if res := inner.run("status"); res.code != 0 {
		t.Errorf("the inner repository: %v", res)
	}
}

// The folder itself has a mode, a time and attributes too.
func TestIdentityOfTheRootFolder(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("f"), "f")
	ok(t, os.Chmod(r.dir, 0o750))
	ok(t, unix.Setxattr(r.dir, "user.root", []byte("of the tree"), 0))
	tool(t, "touch", "-d", "1901-12-31 23:59:59.999999999", r.dir)
	id := r.commit()
	want := readTree(t, r.dir)
	r.views(id, func(t testing.TB, how, dir string) {
		sameTree(t, how, want, readTree(t, dir), sameOpts{})
	})
	ok(t, os.Chmod(r.dir, 0o700))
	second := r.commit()
	if second == id {
		t.Fatal("the root's mode alone makes no commit")
	}
	m := r.mount(second)
	if got := readTree(t, m.dir)["."].perm; got != 0o700 {
		t.Errorf("the root has mode %o", got)
	}
	m.umount()
}
