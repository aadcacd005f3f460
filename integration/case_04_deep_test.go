package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// deepTree makes n nested directories with names of size bytes below root, each
// step by descriptor, and a file in the last. It returns the file's path.
func deepTree(t testing.TB, root string, n, size int) string {
	t.Helper()
	fd, err := unix.Open(root, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	ok(t, err)
	var parts []string
	for i := range n {
		name := fmt.Sprintf("%03d", i) + strings.Repeat("n", size-3)
		ok(t, unix.Mkdirat(fd, name, 0o755))
		next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY, 0)
		ok(t, err)
		unix.Close(fd)
		fd, parts = next, append(parts, name)
	}
	file, err := unix.Openat(fd, "last", unix.O_WRONLY|unix.O_CREAT, 0o644)
	ok(t, err)
	_, err = unix.Write(file, []byte("deep down"))
	ok(t, err)
	unix.Close(file)
	unix.Close(fd)
	return strings.Join(parts, "/") + "/last"
}

func TestCase04PathLongerThan4096(t *testing.T) {
	t.Parallel()
	for _, shape := range []struct{ depth, size int }{{25, 200}, {16, 255}, {17, 240}, {400, 15}} {
		t.Run(fmt.Sprintf("%dx%d", shape.depth, shape.size), func(t *testing.T) {
			r := newRepo(t)
			write(t, r.path("near"), "by")
			long := deepTree(t, r.dir, shape.depth, shape.size)
			want := readTree(t, r.dir)
			if want[long].kind != "file" {
				t.Fatal("the tree was not made")
			}
			if st := r.run("status"); st.code != 0 && st.code != 1 {
				t.Errorf("status: %v", st)
			}
			id := r.commit()
			r.wantClean()
			r.fsck()
			if got := r.must("cat", "HEAD:"+long); got != "deep down" {
				t.Errorf("cat gives %q", got)
			}
			r.must("ls", "HEAD:"+filepath.Dir(long))
			r.must("tree", "HEAD:")
			r.views(id, func(t testing.TB, how, dir string) {
				sameTree(t, how, want, readTree(t, dir), sameOpts{})
				found := run(t, command{args: []string{"find", ".", "-name", "last", "-execdir", "cat", "{}", ";"}, dir: dir})
				if found.stdout != "deep down" {
					t.Errorf("%s: find -execdir: %v", how, found)
				}
			})

			// Away with it, and back.
			ok(t, os.RemoveAll(r.path(strings.SplitN(long, "/", 2)[0])))
			second := r.commit()
			r.must("checkout", id)
			sameTree(t, "checkout back", want, readTree(t, r.dir), sameOpts{dirTimes: true})
			r.must("checkout", second)
			if got := readTree(t, r.dir); len(got) != 2 {
				t.Errorf("%d entries after checkout of the short tree, want 2", len(got))
			}
		})
	}
}
