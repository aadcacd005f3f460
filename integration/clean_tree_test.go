package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"bole/internal/treegen"
)

// openedFiles runs a command under strace and returns which files of the tree
// below root it opened, directories not counted.
func openedFiles(t testing.TB, root string, args ...string) []string {
	t.Helper()
	needTool(t, "strace")
	log := filepath.Join(scratch(t), "strace")
	res := run(t, command{args: append([]string{"strace", "-f", "-qq", "-y", "-s", "4096", "-o", log, "-e", "trace=open,openat,openat2"}, args...)})
	if res.code != 0 {
		t.Fatalf("%v", res)
	}
	b, err := os.ReadFile(log)
	ok(t, err)
	var opened []string
	for _, m := range openResult.FindAllStringSubmatch(string(b), -1) {
		path := m[1]
		if !strings.HasPrefix(path, root+"/") || strings.HasPrefix(path, root+"/.bole") {
			continue
		}
		if st, err := os.Lstat(path); err == nil && st.Mode().IsRegular() {
			opened = append(opened, path)
		}
	}
	return opened
}

// openResult is an open that succeeded: strace -y prints the path behind the
// new descriptor.
var openResult = regexp.MustCompile(`(?m)(?:open|openat|openat2)(?:\(| resumed>).*\) += \d+<([^>]+)>`)

// What the stat table proves clean is neither opened nor read.
func TestCleanFilesAreNotOpened(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	ok(t, treegen.Flat(r.path(), 500, 100))
	for i := range 500 {
		write(t, r.path(fmt.Sprintf("d%d", i%20), fmt.Sprint(i)), fmt.Sprint(i))
	}
	// Files of the tick in which add ran are racily clean: old ones are not.
	r.setTimes()
	if got := openedFiles(t, r.dir, boleBin, "-C", r.dir, "add", "."); len(got) < 1000 {
		t.Fatalf("the first add opens %d files: the test sees nothing", len(got))
	}
	r.must("commit", "-m", "x")
	settle()
	r.must("add", ".") // settles what was racily clean
	for _, args := range [][]string{{"status"}, {"add", "."}, {"add", "--dry-run", "."}} {
		if got := openedFiles(t, r.dir, append([]string{boleBin, "-C", r.dir}, args...)...); len(got) != 0 {
			t.Errorf("%v opens %d unchanged files, %s among them", args, len(got), got[0])
		}
	}
	write(t, r.path("d3", "3"), "changed")
	if got := openedFiles(t, r.dir, boleBin, "-C", r.dir, "add", "."); len(got) != 1 {
		t.Errorf("one file has changed, add opens %q", got)
	}
	// checkout writes only what differs, and leaves a clean table behind.
	first := r.head()
	r.must("commit", "-m", "y")
	r.must("checkout", first)
	settle()
	r.must("status")
	if got := openedFiles(t, r.dir, boleBin, "-C", r.dir, "status"); len(got) != 0 {
		t.Errorf("status after checkout opens %q", got)
	}
}

// Without changes a command writes nothing: the last transaction stays.
func TestCleanTreeWritesNothing(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for i := range 50 {
		write(t, r.path(fmt.Sprint(i)), fmt.Sprint(i))
	}
	r.setTimes()
	r.commit()
	settle()
	r.must("add", ".")
	before := lastTxn(t, r.info())
	for _, args := range [][]string{{"status"}, {"log"}, {"ls", "HEAD:"}, {"diff"}, {"fsck", "--contents"}, {"add", "."}, {"branch"}, {"info"}} {
		r.must(args...)
		if now := lastTxn(t, r.info()); now != before {
			t.Errorf("%v makes %d transactions", args, now-before)
			before = now
		}
	}
	if res := r.run("commit", "-m", "nothing"); res.code != 1 {
		t.Errorf("%v", res)
	}
	if now := lastTxn(t, r.info()); now != before {
		t.Errorf("a commit of nothing makes %d transactions", now-before)
	}
}
