package integration

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// oddNames are one name for each byte that a name may hold, and what tools
// tend to read as something else.
func oddNames() []string {
	var names []string
	for b := 1; b < 256; b++ {
		if b == '/' {
			continue
		}
		names = append(names, "x"+string([]byte{byte(b)})+"y")
		if b != '.' {
			names = append(names, string([]byte{byte(b)}))
		}
	}
	names = append(names, "\n\n", "trailing\n", "\nleading", "cr\r\nlf", "-n", "--", "--help", "-C", " ", "  two", "end ",
		"HEAD", "main", "HEAD~1", "a:b", ":", "~", "...", ".. ", "\xff\xfe", "e\u0301", "\u00e9", "\u2028", "\u202e",
		"\x1b[31mred", `back\slash`, `\n`, `"quoted"`, "'", "$(x)", "`x`", "*", "?", "[a]", "#", "!", "%s%n", "C:\\x",
		strings.Repeat("\n", 255), strings.Repeat("\xff", 255))
	slices.Sort(names)
	return slices.Compact(names)
}

// oneLineEach fails unless text has n lines that a terminal may show as they are.
func oneLineEach(t testing.TB, what, text string, n int) {
	t.Helper()
	if got := len(lines(text)); got != n {
		t.Errorf("%s: %d lines for %d entries", what, got, n)
	}
	printable(t, what, text)
}

// printable fails when text would move a terminal's cursor or hide something.
func printable(t testing.TB, what, text string) {
	t.Helper()
	for _, line := range lines(text) {
		if !utf8.ValidString(line) {
			t.Errorf("%s: raw bytes in the line %q", what, line)
		}
		for _, c := range line {
			if c != '\t' && unicode.IsControl(c) || c == '\u2028' || c == '\u202e' {
				t.Errorf("%s: a control character in the line %q", what, line)
				break
			}
		}
	}
}

func TestCase01NewlineInName(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("a\nb"), "x")
	mkdir(t, r.path("d\n"))
	write(t, r.path("d\n", "\nc"), "y")
	ok(t, os.Symlink("to\nhere", r.path("l\nk")))
	write(t, r.path(".boleignore"), "*.tmp\n")
	write(t, r.path("x\n.tmp"), "ignored")
	for i, name := range oddNames() {
		write(t, r.path("odd", name), fmt.Sprint(i))
		mkdir(t, r.path("odddirs", name))
	}
	want := readTree(t, r.dir)
	delete(want, "x\n.tmp")

	printable(t, "status before add", r.run("status").both())
	st := r.status()
	if st["a\nb"] == "" || st["x\n.tmp"] != "" {
		t.Errorf("status --json does not name the new file exactly: %v", st)
	}
	printable(t, "add --dry-run", r.run("add", "--dry-run", ".").both())
	r.must("add", "a\nb") // a path argument with a newline
	printable(t, "status after add", r.run("status").both())
	id := r.commit()
	r.wantClean()

	n := len(oddNames())
	oneLineEach(t, "ls of the root", r.must("ls", "HEAD:"), 6)
	oneLineEach(t, "ls of files", r.must("ls", "HEAD:odd"), n)
	printable(t, "tree", r.must("tree", "HEAD:"))
	if got := r.must("cat", "HEAD:a\nb"); got != "x" {
		t.Errorf("cat gives %q", got)
	}
	if got := r.must("cat", "HEAD:d\n/\nc"); got != "y" {
		t.Errorf("cat gives %q", got)
	}
	r.views(id, func(t testing.TB, how, dir string) {
		sameTree(t, how, want, readTree(t, dir), sameOpts{})
	})

	for _, name := range oddNames() {
		ok(t, os.WriteFile(r.path("odd", name), []byte("changed"), 0o644))
	}
	ok(t, os.Remove(r.path("a\nb")))
	if st := r.status(); len(st) != n+1 || st["a\nb"] == "" {
		t.Errorf("status names %d paths, want %d", len(st), n+1)
	}
	second := r.commit()
	printable(t, "log", r.must("log"))
	diff := r.run("diff", id, second)
	printable(t, "diff", diff.both())
	if got := len(r.diffPaths(id, second)); got != n+1 {
		t.Errorf("diff names %d paths, want %d", got, n+1)
	}
	m := r.mount("HEAD")
	sameTree(t, "second mount", withoutPath(readTree(t, r.dir), "x\n.tmp"), readTree(t, m.dir), sameOpts{dirTimes: true})
	m.umount()
	r.fsck()
}

func withoutPath(tree map[string]node, paths ...string) map[string]node {
	for _, p := range paths {
		delete(tree, p)
	}
	return tree
}

// diffPaths returns the paths that `diff --json` names.
func (r *repo) diffPaths(args ...string) map[string]bool {
	r.t.Helper()
	res := r.run(append([]string{"diff", "--json"}, args...)...)
	if res.code != 0 && res.code != 1 {
		r.t.Fatalf("%v", res)
	}
	paths := make(map[string]bool)
	for p := range parseStatus(r.t, res.stdout) {
		paths[p] = true
	}
	return paths
}
