package ignore

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// gitRepo is an empty git repository with a tree of odd names in it, the judge
// of what a pattern means.
type gitRepo struct {
	dir   string
	paths []string // relative; a directory ends in "/"
}

// dirs are the directories of the tree, parents first; the first four are
// those that get a pattern file.
var dirs = []string{
	"", "a", "a/b", "ab",
	"a/b/ab", "a/b/[a]", "a/b/a.c", "ab/a", "ab/a b", "ab/a b/b", "b", "b/a", "b/a/b", "b/a/b/abc", "b/a/b/abc/a",
	"]", "]/a", " a", "\xff", "\xff/b", "!a", "#a", "a\n", "a\n/ab", ".a", "-", `\a`, "*", "5", "A",
}

// names are the files of each directory, where it has no directory so named.
var names = []string{
	"a", "b", "ab", "abc", "A", "a.c", ".a", "a b", "a ", " a", "!a", "#a", "a\n", "a\nb", "\xff", "\xff\xfe", "\u00e9",
	"]", "[a]", "-", `\`, `\a`, "*", "?", "5", "_", "\t", "\v", "a\r", "\xef\xbb\xbfa",
}

// newGitRepo makes the repository and the tree.
func newGitRepo(t *testing.T) *gitRepo {
	r := &gitRepo{dir: gitInit(t)}
	for _, dir := range dirs[1:] {
		must(t, os.Mkdir(filepath.Join(r.dir, dir), 0o755))
		r.paths = append(r.paths, dir+"/")
	}
	for _, dir := range dirs {
		for _, name := range names {
			path := strings.TrimPrefix(dir+"/"+name, "/")
			if slices.Contains(dirs, path) {
				continue
			}
			must(t, os.WriteFile(filepath.Join(r.dir, path), nil, 0o644))
			r.paths = append(r.paths, path)
		}
	}
	return r
}

// gitInit makes an empty git repository; it skips the test only where git is
// not installed.
func gitInit(t *testing.T) string {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
	r := &gitRepo{dir: t.TempDir()}
	r.git(t, nil, "init", "-q", "--template=")
	return r.dir
}

// git runs one git command in the repository, untouched by anybody's settings,
// and returns its output. Exit status 1 of check-ignore means "none of them".
func (r *gitRepo) git(t failer, stdin []byte, args ...string) []byte {
	cmd := exec.Command("git", args...)
	cmd.Dir = r.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() > 1 || stderr.Len() > 0 {
		t.Fatalf("git %q: %v: %s", args, err, stderr.Bytes())
	}
	return out
}

// failer is what testing.T and rapid.T have in common here.
type failer interface {
	Fatalf(format string, args ...any)
}

func must(t failer, err error) {
	if err != nil {
		t.Fatalf("%v", err)
	}
}

// ignored asks git about all paths at once.
func (r *gitRepo) ignored(t failer) map[string]bool {
	var stdin []byte
	for _, p := range r.paths {
		stdin = append(append(stdin, strings.TrimSuffix(p, "/")...), 0)
	}
	out := r.git(t, stdin, "check-ignore", "-z", "-v", "-n", "--no-index", "--stdin")
	fields := strings.Split(string(out), "\x00") // source, line, pattern, path of each
	if len(fields) != 4*len(r.paths)+1 {
		t.Fatalf("git answered %d fields about %d paths", len(fields), len(r.paths))
	}
	verdict := make(map[string]bool, len(r.paths))
	for i := range r.paths {
		pattern, path := fields[4*i+2], fields[4*i+3]
		verdict[path] = pattern != "" && pattern[0] != '!'
	}
	return verdict
}

// compare writes the pattern files (directory -> contents) and holds our
// answers against git's for every path of the tree.
func (r *gitRepo) compare(t failer, files map[string]string) {
	stack := (*Stack)(nil)
	for _, dir := range dirs[:4] {
		name := filepath.Join(r.dir, dir, ".gitignore")
		contents, ok := files[dir]
		if !ok {
			must(t, os.RemoveAll(name))
			continue
		}
		must(t, os.WriteFile(name, []byte(contents), 0o644))
		stack = stack.Push(dir, []byte(contents))
	}
	verdict := r.ignored(t)
	for _, p := range r.paths {
		path, isDir := strings.CutSuffix(p, "/")
		if got := ignoredBelow(stack, path, isDir); got != verdict[path] {
			t.Fatalf("patterns %q: Ignored(%q) = %v, git says %v", files, p, got, verdict[path])
		}
	}
}

// TestAgainstGit draws pattern files for the root and three directories and
// compares every answer with git's.
func TestAgainstGit(t *testing.T) {
	repo := newGitRepo(t)
	rapid.Check(t, func(t *rapid.T) {
		files := map[string]string{"": patternFile.Draw(t, "root")}
		for _, dir := range dirs[1:4] {
			if rapid.Bool().Draw(t, "has "+dir) {
				files[dir] = patternFile.Draw(t, dir)
			}
		}
		repo.compare(t, files)
	})
}

// TestBracketsAgainstGit does the same with one class of patterns in which
// matchers differ most.
func TestBracketsAgainstGit(t *testing.T) {
	repo := newGitRepo(t)
	member := rapid.SampledFrom([]string{
		"a", "b", "A", "5", "-", "]", "[", "!", "^", `\`, `\]`, `\-`, `\\`, "/", ":", "a-c", "+-\\]", "\xff", " ", "\t", "\n", "*", "?",
		"[:alnum:]", "[:alpha:]", "[:blank:]", "[:cntrl:]", "[:digit:]", "[:graph:]", "[:lower:]", "[:print:]", "[:punct:]",
		"[:space:]", "[:upper:]", "[:xdigit:]", "[:nope:]", "[:", "[:]", "[:alpha]", ":]",
	})
	set := rapid.Custom(func(t *rapid.T) string {
		open := rapid.SampledFrom([]string{"[", "[", "[!", "[^", "a[", "a/[", "*["}).Draw(t, "open")
		members := strings.Join(rapid.SliceOfN(member, 0, 4).Draw(t, "members"), "")
		return open + members + rapid.SampledFrom([]string{"]", "]", "]", "]*", "", "]/"}).Draw(t, "close")
	})
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(set, 1, 3).Draw(t, "lines")
		repo.compare(t, map[string]string{"": strings.Join(lines, "\n") + "\n"})
	})
}

// TestTableAgainstGit holds the table of patterns to git's opinion: each line of
// it becomes a directory with its own pattern file.
func TestTableAgainstGit(t *testing.T) {
	repo := &gitRepo{dir: gitInit(t)}
	wants := map[string]bool{}
	for i, c := range patternTable {
		for j, w := range c.wants {
			if strings.Contains("/"+w.path, "//") {
				continue // no such path on a disk
			}
			dir := fmt.Sprintf("line%d-%d/", i, j)
			name := filepath.Join(repo.dir, dir+w.path)
			must(t, os.MkdirAll(filepath.Dir(name), 0o755))
			must(t, os.WriteFile(filepath.Join(repo.dir, dir, ".gitignore"), []byte(c.file), 0o644))
			path, isDir := strings.CutSuffix(dir+w.path, "/")
			if isDir {
				must(t, os.Mkdir(name, 0o755))
			} else {
				must(t, os.WriteFile(name, nil, 0o644))
			}
			repo.paths = append(repo.paths, path)
			wants[path] = w.ignored
		}
	}
	if diff := cmp.Diff(wants, repo.ignored(t)); diff != "" {
		t.Errorf("the table differs from git (-table +git):\n%s", diff)
	}
}

// patternFile draws a pattern file whose lines are put together from pieces
// that mean something to somebody.
var patternFile = rapid.Custom(func(t *rapid.T) string {
	piece := rapid.SampledFrom([]string{
		"a", "b", "c", "ab", "a", "b", "/", "/", "/", "*", "*", "**", "**/", "/**", "/**/", "***", "?", ".", " ", `\`, `\ `, `\a`, `\*`, `\/`,
		"[ab]", "[!a]", "[^b]", "[a-c]", "[]", "[]]", "[", "]", "[[:alpha:]]", "!", "#", "\t", "\r", "\xff", "\xef\xbb\xbf", "A", "5", "-", "\x00",
	})
	line := rapid.Custom(func(t *rapid.T) string {
		start := rapid.SampledFrom([]string{"", "", "", "", "!", "!", "/", `\`, "#", "**/", "*"}).Draw(t, "start")
		end := rapid.SampledFrom([]string{"", "", "", "", "/", " ", "  ", "\r", "*", "/**"}).Draw(t, "end")
		return start + strings.Join(rapid.SliceOfN(piece, 0, 5).Draw(t, "pieces"), "") + end
	})
	start := rapid.SampledFrom([]string{"", "", "", "", "\xef\xbb\xbf", "*\n", "/*\n"}).Draw(t, "file start")
	end := rapid.SampledFrom([]string{"\n", "\n", "", "\r\n"}).Draw(t, "file end")
	return start + strings.Join(rapid.SliceOfN(line, 1, 8).Draw(t, "lines"), "\n") + end
})
