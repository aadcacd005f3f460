package integration

import (
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
)

func TestCase15Negation(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path(".boleignore"), "ignore.txt\n!no-ignore.txt\n")
	write(t, r.path("ignore.txt"), "i")
	write(t, r.path("no-ignore.txt"), "n")
	r.wantStatus(".boleignore", "no-ignore.txt")
	r.commit()
	r.wantClean()
	if got := lines(r.must("ls", "HEAD:")); len(got) != 2 {
		t.Errorf("ls lists %q", got)
	}
	write(t, r.path(".boleignore"), "*.bin\n!keep.bin\n")
	for _, n := range []string{"a.bin", "keep.bin", "sub/keep.bin", "sub/b.bin"} {
		write(t, r.path(n), n)
	}
	r.commit()
	m := r.mount("HEAD")
	got := readTree(t, m.dir)
	for p, in := range map[string]bool{"a.bin": false, "keep.bin": true, "sub/keep.bin": true, "sub/b.bin": false, "ignore.txt": true} {
		if (got[p].kind == "file") != in {
			t.Errorf("%s in the commit: %v, want %v", p, !in, in)
		}
	}
	m.umount()

	// Tracked first and ignored later: it stays, and its changes are seen.
	write(t, r.path(".boleignore"), "no-ignore.txt\nsub/\n")
	write(t, r.path("no-ignore.txt"), "changed")
	write(t, r.path("sub", "untracked"), "u")
	if st := r.status(); st["no-ignore.txt"] == "" || st["sub/untracked"] != "" {
		t.Errorf("status: %v", st)
	}
	r.commit()
	checkKept(t, r, "no-ignore.txt", "changed")
	checkKept(t, r, "sub/keep.bin", "sub/keep.bin")
	r.wantClean()
	if out := r.must("status", "--ignored"); !strings.Contains(out, "sub/untracked") && !strings.Contains(out, "sub/") {
		t.Errorf("status --ignored does not show what is hidden:\n%s", out)
	}
}

// ignoreRules is a set of rule files and names; git is the judge.
var ignoreRules = []struct {
	name  string
	rules map[string]string // folder -> rules
}{
	{"plain", map[string]string{"": "ignore.txt\n*.o\n# comment\n\n\\#hash\n\\!bang\ntrailing   \nkept\\ \n"}},
	{"negated", map[string]string{"": "*.txt\n!keep.txt\n/a/*\n!/a/keep.txt\nb/\n!b/keep.txt\n"}},
	{"anchored", map[string]string{"": "/keep.txt\na/deep/\n**/x.o\na/**/ignore.txt\ndeep/**\n"}},
	{"classes", map[string]string{"": "[a-c].o\n[!x].txt\n?.bin\n[[:digit:]]*\n\\*\n"}},
	{"nested", map[string]string{"": "*.txt\n*.o\n", "a": "!keep.txt\nx.o\n", "a/deep": "!*.o\nignore.txt\n"}},
	{"directories", map[string]string{"": "deep/\n!a/deep/\n*/x.o\n"}},
	{"everything", map[string]string{"": "*\n!*/\n!keep.txt\n"}},
}

func TestCase15RulesAsGit(t *testing.T) {
	t.Parallel()
	needTool(t, "git")
	leaves := []string{"ignore.txt", "keep.txt", "no-ignore.txt", "x.o", "a.o", "d.o", "q.bin", "qq.bin", "1st", "*", "#hash", "!bang", "trailing", "kept ", "kept"}
	for _, set := range ignoreRules {
		t.Run(set.name, func(t *testing.T) {
			r := newRepo(t)
			g := filepath.Join(scratch(t), "git")
			tool(t, "git", "init", "-q", g)
			for _, dir := range []string{"", "a", "b", "a/deep", "a/deep/er", "deep"} {
				for _, leaf := range leaves {
					write(t, r.path(dir, leaf), leaf)
					write(t, filepath.Join(g, dir, leaf), leaf)
				}
			}
			for dir, text := range set.rules {
				write(t, r.path(dir, ".boleignore"), text)
				write(t, filepath.Join(g, dir, ".gitignore"), text)
			}
			tool(t, "git", "-C", g, "add", "-A")
			byGit := strings.Split(strings.TrimSuffix(tool(t, "git", "-C", g, "ls-files", "-z"), "\x00"), "\x00")
			r.commit()
			r.wantClean()
			var byBole []string
			for p, n := range readTree(t, r.elsewhere("HEAD").dir) {
				if n.kind == "file" {
					byBole = append(byBole, strings.ReplaceAll(p, ".boleignore", ".gitignore"))
				}
			}
			sort.Strings(byGit)
			sort.Strings(byBole)
			if a, b := strings.Join(byGit, "\n"), strings.Join(byBole, "\n"); a != b {
				t.Errorf("git keeps\n%s\nbole keeps\n%s", a, b)
			}
		})
	}
}

// An ignored directory is not even read: it may be closed to the user.
func TestCase15IgnoredDirectoryIsNotRead(t *testing.T) {
	t.Parallel()
	r := nobodyRepo(t)
	write(t, r.path("a"), "a")
	write(t, r.path(".boleignore"), "closed/\n")
	mkdir(t, r.path("closed"))
	ok(t, os.Chmod(r.path("closed"), 0)) // owned by root
	r.must("add", ".")
	r.must("commit", "-m", "x")
	r.wantClean()
}
