package integration

import (
	"fmt"
	"sort"
	"strings"
	"testing"
)

func TestCase11LinkCountOfDirectories(t *testing.T) {
	t.Parallel()
	needTool(t, "perl")
	r := newRepo(t)
	for _, d := range []string{"a/b/c/1", "a/b/c/2", "a/b/c/3", "x", "y/z"} {
		mkdir(t, r.path(d))
	}
	for i := range 50 {
		write(t, r.path(fmt.Sprintf("many/%02d/f", i)), "")
	}
	r.commit()
	m := r.mount("HEAD")
	for path, n := range readTree(t, m.dir) {
		if n.kind != "dir" {
			continue
		}
		subdirs := uint64(len(lines(tool(t, "find", m.path(path), "-noleaf", "-mindepth", "1", "-maxdepth", "1", "-type", "d"))))
		if n.nlink != 1 && n.nlink != 2+subdirs {
			t.Errorf("%s has link count %d and %d subdirectories", path, n.nlink, subdirs)
		}
	}
	script := `find({wanted => sub { print "$File::Find::name\n" }, no_chdir => 1}, $ARGV[0])`
	byPerl := lines(tool(t, "perl", "-MFile::Find", "-e", script, m.dir))
	byFind := lines(tool(t, "find", m.dir, "-noleaf"))
	byLeaf := lines(tool(t, "find", m.dir))
	for _, l := range [][]string{byPerl, byFind, byLeaf} {
		sort.Strings(l)
	}
	if strings.Join(byPerl, "\n") != strings.Join(byFind, "\n") {
		t.Errorf("perl sees %d names, find -noleaf %d", len(byPerl), len(byFind))
	}
	if strings.Join(byLeaf, "\n") != strings.Join(byFind, "\n") {
		t.Errorf("find sees %d names, find -noleaf %d", len(byLeaf), len(byFind))
	}
	m.umount()
}
