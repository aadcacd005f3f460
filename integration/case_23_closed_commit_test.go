package integration

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// readOnlyAnswers are what a read-only file system says: EROFS wherever
// something would change, whoever asks. What the kernel refuses by itself
// before the file system is asked keeps its own errno.
func readOnlyAnswers() map[string]string {
	want := map[string]string{
		"create excl": "EROFS", "create": "EROFS", "create in dir": "EROFS", "write": "EROFS", "read-write": "EROFS",
		"append": "EROFS", "truncate on open": "EROFS", "read and truncate": "EROFS", "create and truncate": "EROFS",
		"tmpfile": "EROFS|EOPNOTSUPP", "truncate": "EROFS", "unlink": "EROFS", "unlink link": "EROFS", "rmdir": "EROFS",
		"mkdir": "EROFS", "rename": "EROFS", "rename over": "EROFS", "rename dir": "EROFS", "exchange": "EROFS",
		"link": "EROFS", "symlink": "EROFS", "chmod": "EROFS", "chmod dir": "EROFS", "chown": "EROFS", "touch": "EROFS",
		"touch link": "EROFS", "fifo": "EROFS", "socket": "EROFS", "setxattr": "EROFS", "setxattr virtual": "EROFS|EPERM",
		"removexattr": "EROFS", "removexattr virtual": "EROFS|EPERM",
		"open to read": "ok", "fchmod": "EROFS", "fchown": "EROFS", "ftruncate": "EINVAL|EBADF", "fallocate": "EBADF",
		"fsetxattr": "EROFS", "write to reader": "EBADF", "map for writing": "EACCES", "fsync": "ok|EINVAL|EROFS",
	}
	return want
}

func mutableRepo(t testing.TB) *repo {
	t.Helper()
	r := newRepo(t)
	write(t, r.path("f"), "file content")
	write(t, r.path("d", "g"), "g")
	mkdir(t, r.path("e"))
	ok(t, os.Symlink("f", r.path("l")))
	ok(t, unix.Setxattr(r.path("f"), "user.x", []byte("kept"), 0))
	r.commit()
	return r
}

func TestCase23ClosedCommitCannotBeChanged(t *testing.T) {
	t.Parallel()
	r := mutableRepo(t)
	want := readTree(t, r.dir)
	root := r.rootHash("HEAD")
	for _, io := range []string{"auto", "stateless", "passthrough", "handles"} {
		t.Run(io, func(t *testing.T) {
			r := *r
			r.t = t
			m := r.mount("HEAD", "--io", io, "--allow-other")
			var root0 *account
			wantAnswers(t, root0.helper(t, "mutate", m.dir), readOnlyAnswers())
			wantAnswers(t, asNobody(t).helper(t, "mutate", m.dir), readOnlyAnswers())
			sameTree(t, "after all attempts", want, readTree(t, m.dir), sameOpts{})
			if got := getAttr(t, m.dir, "user.bole.hash"); got != root {
				t.Errorf("the root's name is %s, was %s", got, root)
			}
			if st, err := os.Stat(m.path("f")); err != nil || st.Mode().Perm() != 0o644 {
				t.Errorf("the mode does not look normal: %v, %v", st.Mode(), err)
			}
			m.umount()
		})
	}
	if got := r.rootHash("HEAD"); got != root {
		t.Errorf("the root's name is %s after a fresh mount, was %s", got, root)
	}
	r.wantClean()
	r.fsck()
}
