package integration

import (
	"os"
	"path/filepath"
	"testing"
)

// permissionTree is one entry for each kind of mode that forbids something.
func permissionTree(t testing.TB, r *repo) []string {
	t.Helper()
	modes := map[string]os.FileMode{"f644": 0o644, "f400": 0o400, "f000": 0, "f755": 0o755, "f004": 0o004}
	var paths []string
	for name, mode := range modes {
		write(t, r.path(name), "content")
		ok(t, os.Chmod(r.path(name), mode))
		paths = append(paths, name)
	}
	dirs := map[string]os.FileMode{"d755": 0o755, "d311": 0o311, "d700": 0o700, "d444": 0o444}
	for name, mode := range dirs {
		write(t, r.path(name, "in-"+name), "inside")
		ok(t, os.Chmod(r.path(name), mode))
		paths = append(paths, name, name+"/in-"+name)
	}
	return paths
}

func under(dir string, paths []string) []string {
	var full []string
	for _, p := range paths {
		full = append(full, filepath.Join(dir, p))
	}
	return full
}

// The mount of root with allow_other: another user gets what the modes of
// others allow, exactly as on the disk below.
func TestCase35OtherUser(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	paths := permissionTree(t, r)
	r.commit()
	user := asNobody(t)
	closed := r.mount("HEAD")
	if res := user.run(t, "ls", closed.dir); res.code == 0 {
		t.Errorf("another user may list a mount without --allow-other: %v", res)
	}
	for op, got := range user.helper(t, "access", under(closed.dir, paths)...) {
		if got != "EACCES" {
			t.Errorf("without --allow-other %s gives %s", op, got)
		}
	}
	closed.umount()

	// The answers of a plain disk are the measure: the same tree, checked out.
	plain := r.elsewhere("HEAD")
	want := user.helper(t, "access", under(plain.dir, paths)...)
	open := r.mount("HEAD", "--allow-other")
	got := user.helper(t, "access", under(open.dir, paths)...)
	readOnly(want)
	wantAnswers(t, got, want)
	open.umount()
}

// readOnly changes the answers of a writable disk to those of a read-only one:
// asking to write what one may write is EROFS.
func readOnly(answers map[string]string) {
	for op, a := range answers {
		if len(op) > 9 && op[len(op)-9:] == " access w" {
			// The kernel asks for the mode first or for read-only first,
			// depending on the call.
			answers[op] = a + "|EROFS"
			if a == "ok" {
				answers[op] = "EROFS"
			}
		}
	}
}

// A mount of nobody's own: the mounting user owns all entries, and the modes
// of the owner are enforced.
func TestCase35OwnMountOfAUser(t *testing.T) {
	t.Parallel()
	user := asNobody(t).withFuse(t)
	needTool(t, "fusermount3")
	r := nobodyRepo(t)
	r.as = user
	paths := permissionTree(t, r)
	tool(t, "chown", "-R", "nobody", r.dir)
	// 0000 and 0400 cannot all be read by their owner: commit as root.
	root := *r
	root.as = nil
	root.commit()
	tool(t, "chown", "-R", "nobody", r.dir)

	want := user.helper(t, "access", under(r.dir, paths)...)
	dir := filepath.Join(scratch(t), "M")
	mkdir(t, dir)
	user.own(t, dir)
	if res := r.run("mount", "HEAD", dir); res.code != 0 {
		t.Fatalf("mount as nobody: %v", res)
	}
	got := user.helper(t, "access", under(dir, paths)...)
	readOnly(want)
	wantAnswers(t, got, want)
	wantAnswers(t, user.helper(t, "access", filepath.Join(dir, "f644")), map[string]string{
		"f644 stat": "ok", "f644 access r": "ok", "f644 access w": "EROFS", "f644 access x": "EACCES", "f644 open": "ok", "f644 read": "ok"})
	if out := user.run(t, "stat", "-c", "%U", filepath.Join(dir, "f644")).stdout; out != "nobody\n" {
		t.Errorf("the mount shows the owner %q", out)
	}
	if out := user.run(t, "grep", " "+dir+" ", "/proc/self/mountinfo").stdout; !mountOptions(out, "ro", "nosuid", "nodev") {
		t.Errorf("options of the user's mount: %s", out)
	}
	if res := user.run(t, boleBin, "umount", dir); res.code != 0 {
		t.Errorf("umount as nobody: %v", res)
	}
	// The allowance that fusermount3 asks for is named when it refuses.
	res := r.run("mount", "--allow-other", "HEAD", dir)
	if res.code != 0 {
		checkRefused(t, res, "user_allow_other", "/etc/fuse.conf")
	} else if res := user.run(t, boleBin, "umount", dir); res.code != 0 {
		t.Errorf("umount: %v", res)
	}
}
