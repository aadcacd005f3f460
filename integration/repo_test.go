package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// repo is a repository with a working directory, driven through the program.
type repo struct {
	t   testing.TB
	dir string
	env []string // added to each command
	as  *account // nil: the user that runs the tests
}

// newRepo makes an empty repository in a folder of its own.
func newRepo(t testing.TB) *repo {
	t.Helper()
	return initRepo(t, filepath.Join(scratch(t), "R"))
}

// newFastRepo makes an empty repository in memory; see fast.
func newFastRepo(t testing.TB) *repo {
	t.Helper()
	return initRepo(t, filepath.Join(fast(t), "R"))
}

// initRepo makes an empty repository at dir.
func initRepo(t testing.TB, dir string, args ...string) *repo {
	t.Helper()
	r := &repo{t: t, dir: dir}
	res := bole(t, append(append([]string{"init"}, args...), dir)...)
	if res.code != 0 {
		t.Fatalf("init: %v", res)
	}
	return r
}

// path joins names below the working directory.
func (r *repo) path(names ...string) string {
	return filepath.Join(append([]string{r.dir}, names...)...)
}

// run runs a bole command on this repository, whatever its exit code.
func (r *repo) run(args ...string) result {
	r.t.Helper()
	return r.runIn("", args...)
}

// runIn runs a bole command from a folder of choice.
func (r *repo) runIn(dir string, args ...string) result {
	r.t.Helper()
	c := command{args: append([]string{boleBin, "-C", r.dir}, args...), dir: dir, env: r.env}
	if r.as != nil {
		c = r.as.wrap(c)
	}
	return run(r.t, c)
}

// measured runs a bole command and measures what it takes.
func (r *repo) measured(args ...string) result {
	r.t.Helper()
	return run(r.t, command{args: append([]string{boleBin, "-C", r.dir}, args...), env: r.env, measure: true})
}

// must runs a bole command and fails the test unless it exits 0.
func (r *repo) must(args ...string) string {
	r.t.Helper()
	res := r.run(args...)
	if res.code != 0 {
		r.t.Fatalf("%v", res)
	}
	return res.stdout
}

// refused runs a command that must say no: exit 1 or 2, by no signal, with a
// message on standard error that holds each of the words.
func (r *repo) refused(words []string, args ...string) result {
	r.t.Helper()
	res := r.run(args...)
	checkRefused(r.t, res, words...)
	return res
}

func checkRefused(t testing.TB, res result, words ...string) {
	t.Helper()
	if res.code != 1 && res.code != 2 {
		t.Fatalf("want a refusal with exit 1 or 2: %v", res)
	}
	if strings.TrimSpace(res.stderr) == "" {
		t.Errorf("refused without a word: %v", res)
	}
	for _, w := range words {
		if !strings.Contains(res.stderr, w) {
			t.Errorf("the message does not name %q: %v", w, res)
		}
	}
}

// commit adds everything and commits; it returns the new id.
func (r *repo) commit() string {
	r.t.Helper()
	r.must("add", ".")
	r.must("commit", "-m", "x")
	return r.head()
}

var commitLine = regexp.MustCompile(`(?m)^commit ([0-9a-f]{64})\b`)

// log returns the ids of the history, newest first; none before the first commit.
func (r *repo) log() []string {
	r.t.Helper()
	res := r.run("log")
	if res.code != 0 && !strings.Contains(res.stderr, "no commit yet") {
		r.t.Fatalf("%v", res)
	}
	var ids []string
	for _, m := range commitLine.FindAllStringSubmatch(res.stdout, -1) {
		ids = append(ids, m[1])
	}
	return ids
}

// head returns the id of HEAD.
func (r *repo) head() string {
	r.t.Helper()
	m := commitLine.FindStringSubmatch(r.must("log", "-n", "1"))
	if m == nil {
		r.t.Fatal("log -n 1 names no commit")
	}
	return m[1]
}

// status returns what `status --json` lists, staged or not, as path -> words.
func (r *repo) status() map[string]string {
	r.t.Helper()
	res := r.run("status", "--json")
	if res.code != 0 && res.code != 1 {
		r.t.Fatalf("%v", res)
	}
	return parseStatus(r.t, res.stdout)
}

// parseStatus reads `status --json`. A path in two lists (staged and changed
// again since) has both words.
func parseStatus(t testing.TB, out string) map[string]string {
	t.Helper()
	var top map[string]json.RawMessage
	if err := json.Unmarshal([]byte(out), &top); err != nil {
		t.Fatalf("status --json: %v in %s", err, clip(out))
	}
	all := make(map[string]string)
	for key, raw := range top {
		var list []map[string]any
		if key == "skipped" || key == "ignored" || json.Unmarshal(raw, &list) != nil {
			continue
		}
		for _, e := range list {
			path := jsonPath(t, e)
			word := key
			for _, k := range []string{"change", "kind", "status", "code"} {
				if v, isText := e[k].(string); isText {
					word = key + ":" + v
					break
				}
			}
			if old := all[path]; old != "" {
				word = old + " " + word
			}
			all[path] = word
		}
	}
	return all
}

// wantClean fails the test unless status reports nothing.
func (r *repo) wantClean() {
	r.t.Helper()
	if got := r.status(); len(got) != 0 {
		r.t.Errorf("status is not clean: %v", got)
	}
}

// wantStatus fails the test unless status names exactly these paths.
func (r *repo) wantStatus(paths ...string) map[string]string {
	r.t.Helper()
	got := r.status()
	wanted := make(map[string]bool)
	for _, p := range paths {
		wanted[p] = true
		if got[p] == "" {
			r.t.Errorf("status does not name %q: %v", p, got)
		}
	}
	for p, word := range got {
		if !wanted[p] {
			r.t.Errorf("status names %q (%s), which has not changed", p, word)
		}
	}
	return got
}

// fsck checks everything, contents too, and wants no damage.
func (r *repo) fsck() {
	r.t.Helper()
	if res := r.run("fsck", "--contents"); res.code != 0 {
		r.t.Errorf("fsck finds damage: %v", res)
	}
}

// elsewhere makes a second working directory of the same history, by copying
// the repository's own folder, and checks rev out there.
func (r *repo) elsewhere(rev string) *repo {
	r.t.Helper()
	place := scratch
	if fastDir != "" && strings.HasPrefix(r.dir, fastDir) {
		place = fast
	}
	dir := filepath.Join(place(r.t), "elsewhere")
	mkdir(r.t, dir)
	tool(r.t, "cp", "-a", r.path(".bole"), dir)
	other := &repo{t: r.t, dir: dir, env: r.env, as: r.as}
	other.must("checkout", "--force", rev)
	return other
}

// views calls fn for each way back to a commit: a fresh mount, and a checkout
// into another place.
func (r *repo) views(rev string, fn func(t testing.TB, how, dir string)) {
	r.t.Helper()
	m := r.mount(rev)
	fn(r.t, "mount", m.dir)
	m.umount()
	fn(r.t, "checkout", r.elsewhere(rev).dir)
}

// wipe removes everything of the working directory but the repository.
func (r *repo) wipe() {
	r.t.Helper()
	names, err := os.ReadDir(r.dir)
	ok(r.t, err)
	for _, n := range names {
		if n.Name() != ".bole" {
			ok(r.t, os.RemoveAll(r.path(n.Name())))
		}
	}
}

// settle waits until files written now are no longer racily clean, so that
// the next add may trust the stat table.
func settle() { time.Sleep(20 * time.Millisecond) }
