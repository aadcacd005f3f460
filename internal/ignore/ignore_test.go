package ignore

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// ignoredBelow asks as a walker does: a path is left out when one of the
// directories above it is.
func ignoredBelow(s *Stack, path string, isDir bool) bool {
	for i := range len(path) {
		if path[i] == '/' && s.Ignored(path[:i], true) {
			return true
		}
	}
	return s.Ignored(path, isDir)
}

// want is what one pattern file says about one path.
type want struct {
	path    string // a directory when it ends in "/"
	ignored bool
}

func yes(path string) want { return want{path, true} }
func no(path string) want  { return want{path, false} }

// patternTable is judged twice: by TestPatterns, which holds the matcher to
// it, and by TestTableAgainstGit, which holds the table itself to git.
var patternTable = []struct {
	file  string
	wants []want
}{
	{"", []want{no("a"), no("a/")}},
	{"\n\r\n   \n#x\n", []want{no("#x"), no(" "), no("x")}},
	{"foo", []want{yes("foo"), yes("a/foo"), yes("foo/"), yes("a/b/foo/"), no("foob"), no("afoo"), no("Foo")}},
	{"/foo", []want{yes("foo"), no("a/foo"), yes("foo/")}},
	{"foo/", []want{no("foo"), yes("foo/"), yes("a/foo/"), no("a/foo")}},
	{"/foo/", []want{yes("foo/"), no("foo"), no("a/foo/")}},
	{"foo//", []want{no("foo/"), no("foo")}},
	{"a/b", []want{yes("a/b"), no("c/a/b"), no("b"), yes("a/b/")}},
	{"a/b/", []want{yes("a/b/"), no("a/b"), no("c/a/b/")}},
	{"*.o", []want{yes("x.o"), yes("d/x.o"), yes(".o"), no("x.oo"), no("o")}},
	{"*", []want{yes("x"), yes("d/x"), yes("d/")}},
	{"*/", []want{no("x"), yes("d/")}},
	{"/*", []want{yes("x"), yes("d/")}},
	{"a*c", []want{yes("ac"), yes("abc"), yes("d/abbc"), no("a/c")}},
	{"a/*c", []want{yes("a/c"), yes("a/bc"), no("a/b/c"), no("x/a/bc")}},
	{"a/*/c", []want{yes("a/b/c"), no("a/c"), no("a/b/b/c")}},
	{"**/foo", []want{yes("foo"), yes("a/foo"), yes("a/b/foo"), no("afoo"), no("a/bfoo")}},
	{"**foo", []want{yes("foo"), yes("a/foo"), yes("a/bfoo")}},
	{"**/foo/bar", []want{yes("foo/bar"), yes("a/foo/bar"), no("foo/a/bar")}},
	{"foo/**", []want{no("foo"), no("foo/"), yes("foo/a"), yes("foo/a/b"), no("a/foo/b")}},
	{"a/**/b", []want{yes("a/b"), yes("a/x/b"), yes("a/x/y/b"), no("a/xb"), no("ab"), no("x/a/b")}},
	{"a/**b", []want{yes("a/b"), yes("a/xb"), no("a/x/b")}},
	{"a/x**b", []want{yes("a/xb"), yes("a/xyb"), no("a/xy/b")}},
	{"a/x?**b", []want{yes("a/xyb"), no("a/xy/b")}},
	{"a/b**", []want{yes("a/b"), yes("a/bc"), yes("a/bc/d")}},
	{`a/**\/b`, []want{yes("a/x/b"), yes("a/x/y/b"), no("a/b"), no("a/xb")}},
	{"a/***/b", []want{yes("a/b"), yes("a/x/y/b")}},
	{"a/**/*.c", []want{yes("a/x.c"), yes("a/b/x.c"), no("x.c")}},
	{"**/", []want{yes("a/"), yes("a/b/"), no("a")}},
	{"**", []want{yes("a"), yes("a/b")}},
	{"?", []want{yes("a"), yes("d/a"), no("ab"), yes("\xff")}},
	{"a/?b", []want{yes("a/xb"), no("a/b"), no("a//b")}},
	{"a?b/c", []want{yes("axb/c"), no("a/b/c")}},
	{"\xc3?", []want{yes("\u00e9")}},
	{"[ab]c", []want{yes("ac"), yes("bc"), no("cc"), no("c")}},
	{"[!ab]c", []want{no("ac"), yes("cc"), yes("d/\xffc")}},
	{"[^ab]c", []want{no("ac"), yes("cc")}},
	{"[]]x", []want{yes("]x"), no("x")}},
	{"[!]]x", []want{no("]x"), yes("ax")}},
	{"[a-c]", []want{yes("a"), yes("b"), yes("c"), no("d"), no("-")}},
	{"[c-a]", []want{no("a"), no("b"), yes("c")}},
	{"[a-]", []want{yes("a"), yes("-"), no("b")}},
	{"[-a]", []want{yes("a"), yes("-")}},
	{"[a-c-e]", []want{yes("b"), yes("-"), yes("e"), no("d")}},
	{`[a\-c]`, []want{yes("a"), yes("-"), yes("c"), no("b")}},
	{`[\]]`, []want{yes("]"), no(`\`)}},
	{`[+-\]]`, []want{yes("A"), yes("]"), no("^")}},
	{"[[:digit:]x]", []want{yes("5"), yes("x"), no("d")}},
	{"[[:alpha:]-z]", []want{yes("-"), yes("z"), yes("q"), no("5")}},
	{"[[:space:]]", []want{yes(" "), yes("\t"), no("\v"), no("a")}},
	{"[[:nope:]]", []want{no("n"), no(":")}},
	{"[[:digit]", []want{yes(":"), yes("d"), yes("["), no("5")}},
	{"[[:]", []want{yes("["), yes(":")}},
	{"a[/]b", []want{no("a/b"), no("a[/]b")}},
	{"a[!x]b/c", []want{yes("ayb/c"), no("a/b/c")}},
	{"[a/b]", []want{yes("a"), yes("b"), no("d/a"), no("/")}},
	{"a[bc", []want{no("a[bc"), no("ab")}},
	{"[", []want{no("[")}},
	{"[]", []want{no("[]"), no("]")}},
	{`\!a`, []want{yes("!a"), no("a")}},
	{`\#a`, []want{yes("#a"), no("a")}},
	{`a\*`, []want{yes("a*"), no("ab")}},
	{`\a`, []want{yes("a"), no(`\a`)}},
	{`a\`, []want{no("a"), no(`a\`)}},
	{`a\\`, []want{yes(`a\`)}},
	{`a\/`, []want{no("a/"), no("a")}},
	{`\/a`, []want{no("a")}},
	{"a \n", []want{yes("a"), no("a ")}},
	{"a\\ \n", []want{yes("a "), no("a")}},
	{"a\\  \n", []want{yes("a "), no("a  ")}},
	{" a", []want{yes(" a"), no("a")}},
	{"a\t", []want{yes("a\t"), no("a")}},
	{"a\r\n*.x \r\n", []want{yes("a"), yes("b.x"), no("a\r")}},
	{"a\r", []want{yes("a")}},
	{"a\r\r\n", []want{no("a"), yes("a\r")}},
	{"\xef\xbb\xbffoo\n", []want{yes("foo")}},
	{"x\n\xef\xbb\xbffoo\n", []want{no("foo"), yes("\xef\xbb\xbffoo")}},
	{"a\x00b", []want{yes("a"), no("b")}},
	{"*.o\n!keep.o", []want{yes("x.o"), no("keep.o"), no("d/keep.o")}},
	{"!keep.o\n*.o", []want{yes("keep.o")}},
	{"d/\n!d/keep", []want{yes("d/keep"), yes("d/other")}},
	{"d/*\n!d/keep", []want{no("d/keep"), yes("d/other")}},
	{"!!a\n", []want{no("a"), no("!a")}},
	{"*\n!!a\n", []want{yes("a"), no("!a")}},
	{"!\n/\n//\n", []want{no("a"), no("a/")}},
	{"na\xefve\nna\u00efve", []want{yes("na\xefve"), yes("na\u00efve"), no("nai\u0308ve")}},
}

func TestPatterns(t *testing.T) {
	for _, c := range patternTable {
		s := (*Stack)(nil).Push("", []byte(c.file))
		for _, w := range c.wants {
			path, isDir := strings.CutSuffix(w.path, "/")
			if got := ignoredBelow(s, path, isDir); got != w.ignored {
				t.Errorf("patterns %q: Ignored(%q) = %v, want %v", c.file, w.path, got, w.ignored)
			}
		}
	}
}

func TestDefaults(t *testing.T) {
	s := Defaults()
	for path, want := range map[string]bool{
		".DS_Store": true, "a/b/.DS_Store": true, "._photo.jpg": true, ".AppleDouble/": true, ".AppleDouble": false,
		".LSOverride": true, ".Spotlight-V100/": true, ".DocumentRevisions-V100/": true, ".TemporaryItems/": true,
		".Trashes/": true, ".fseventsd/": true, ".apdisk": true, ".Trash-1000/": true, ".Trash-1000": false,
		".directory": true, ".~lock.report.odt#": true, ".fuse_hidden0001": true, ".nfs00ab": true, "Thumbs.db": true,
		"desktop.ini": true, "$RECYCLE.BIN/": true, "$RECYCLE.BIN": false,
		"thumbs.db": false, "photo.jpg": false, ".boleignore": false, ".gitignore": false, "Trashes/": false,
	} {
		p, isDir := strings.CutSuffix(path, "/")
		if got := s.Ignored(p, isDir); got != want {
			t.Errorf("Ignored(%q) = %v, want %v", path, got, want)
		}
	}
	s = s.Push("", []byte("!Thumbs.db\n"))
	if s.Ignored("a/Thumbs.db", false) || !s.Ignored("a/desktop.ini", false) {
		t.Error("a negated line must take back exactly one default")
	}
}

func TestNestedFiles(t *testing.T) {
	root := Defaults().Push("", []byte("*.log\n/build\nsub/exact\n"))
	sub := root.Push("sub", []byte("!*.log\n/build\nx/y\n"))
	deep := sub.Push("sub/deep", []byte("*.log\n!.DS_Store\n"))
	for _, c := range []struct {
		s    *Stack
		path string
		want bool
	}{
		{root, "a.log", true}, {root, "build", true}, {root, "x/build", false},
		{sub, "sub/a.log", false}, {sub, "sub/build", true}, {sub, "sub/q/build", false}, {sub, "sub/exact", true},
		{sub, "sub/x/y", true}, {sub, "x/y", false}, {sub, "sub/.DS_Store", true},
		{deep, "sub/deep/a.log", true}, {deep, "sub/deep/.DS_Store", false}, {deep, "sub/deep/build", false},
		// A path outside a file's directory is none of that file's business.
		{sub, "subway/build", false}, {sub, "sub", false}, {sub, "other/a.log", true},
	} {
		if got := c.s.Ignored(c.path, false); got != c.want {
			t.Errorf("Ignored(%q) = %v, want %v", c.path, got, c.want)
		}
	}
}

func TestPushKeepsNothingOfItsInput(t *testing.T) {
	contents := []byte("abc\n*.tmp\n[xy]z\n")
	s := Defaults().Push("", contents)
	clear(contents)
	for _, p := range []string{"abc", "q.tmp", "yz"} {
		if !s.Ignored(p, false) {
			t.Errorf("Ignored(%q) = false after the input was overwritten", p)
		}
	}
	if empty := s.Push("d", []byte("# nothing\n\n")); empty != s {
		t.Error("a file without patterns must not make the stack longer")
	}
}

func TestZeroStackIgnoresNothing(t *testing.T) {
	var s Stack
	if s.Ignored("a/b", true) || (*Stack)(nil).Ignored(".DS_Store", false) {
		t.Error("an empty stack must ignore nothing")
	}
}

func TestIgnoredAllocatesNothing(t *testing.T) {
	s := Defaults().Push("", []byte("*.o\n/a/**/b*c\n[a-z]?.tmp\n")).Push("dir", []byte("!x.o\n**/y\n"))
	for _, p := range []string{"plain", "dir/sub/name.txt", "a/b/c/bxc", "dir/x.o"} {
		if n := testing.AllocsPerRun(100, func() { s.Ignored(p, false) }); n != 0 {
			t.Errorf("Ignored(%q) makes %v allocations", p, n)
		}
	}
}

// TestWorkIsBounded runs patterns that take exponential time in matchers that
// try every star again; this one finishes at once or the test runs for years.
func TestWorkIsBounded(t *testing.T) {
	long := strings.Repeat("a", 250)
	deep := strings.Repeat("a/", 120) + "a"
	for _, c := range []struct{ pattern, path string }{
		{strings.Repeat("a*", 60) + "b", long},
		{"/" + strings.Repeat("**/a*", 60) + "b", deep},
		{"/" + strings.Repeat("**/*", 60) + "b", deep},
		{strings.Repeat("*[a]", 60) + "b", long},
	} {
		if (*Stack)(nil).Push("", []byte(c.pattern)).Ignored(c.path, false) {
			t.Errorf("%q must not match", c.pattern)
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	base := Defaults().Push("", []byte("*.o\n"))
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			dir := fmt.Sprintf("d%d", g)
			s := base.Push(dir, []byte("!keep.o\n"))
			for range 200 {
				if s.Ignored(dir+"/keep.o", false) || !base.Ignored(dir+"/keep.o", false) {
					t.Error("stacks of two directories got in each other's way")
				}
			}
		})
	}
	wg.Wait()
}

func BenchmarkIgnored(b *testing.B) {
	s := Defaults().Push("", []byte("*.o\n*.tmp\n/build/\nnode_modules/\n**/cache/*.bin\n"))
	b.ReportAllocs()
	for b.Loop() {
		s.Ignored("images/train/n01440764/n01440764_10026.JPEG", false)
	}
}
