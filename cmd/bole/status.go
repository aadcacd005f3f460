package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

type statusFlags struct {
	asJSON, ignored, short bool
}

func newStatusCmd(a *app) *cobra.Command {
	var o statusFlags
	cmd := &cobra.Command{
		Use:   "status [PATH…]",
		Short: "show what has changed",
		Long: `Shows what the next commit takes, what has changed since it was recorded, and files
that no commit holds. Names are as seen from the current folder; --json gives them from
the working directory's root. Exit code 0, whatever there is.

--short prints one line a path: the letter of what is recorded, the letter of what is
not, and the name ("??" is a file that no commit holds, "!!" an ignored one). Letters:
A added, M modified, D deleted, T another kind of file.`,
		Example: `  bole status
  bole status --short pictures
  bole status --json --ignored`,
		RunE: func(_ *cobra.Command, args []string) error {
			if o.asJSON && o.short {
				return usagef("either --json or --short, not both")
			}
			return a.withRepo(func(r *snapshot.Repo) error { return a.status(r, o, args) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	f.BoolVar(&o.ignored, "ignored", false, "also show what ignore patterns leave out")
	f.BoolVarP(&o.short, "short", "s", false, "one line a path")
	return cmd
}

func (a *app) status(r *snapshot.Repo, o statusFlags, args []string) error {
	paths, err := workPaths(r, args)
	if err != nil {
		return err
	}
	ctx, stop := a.interruptible()
	defer stop()
	st, err := r.Status(ctx, snapshot.StatusOptions{Paths: paths, Ignored: o.ignored, Progress: a.progress()})
	a.stopProgress()
	if st == nil {
		return err
	}
	switch {
	case o.asJSON:
		err = errors.Join(a.printJSON(newStatusJSON(st)), a.sayUnreadable(err))
	case o.short:
		a.statusShort(st, fromHere(r))
		err = a.sayUnreadable(err)
	default:
		a.statusLong(st, fromHere(r))
		err = a.sayUnreadable(err)
	}
	return err
}

// fromHere returns how a path of the working directory is written in the
// current folder, quoted, so that it can be given to the next command. Outside
// the working directory it stays as it is.
func fromHere(r *snapshot.Repo) func(path string) string {
	cwd, err := os.Getwd()
	here := ""
	if err == nil {
		here, err = r.WorkPath(cwd, ".")
	}
	if err != nil || here == "" {
		return quote[string]
	}
	return func(path string) string {
		rel, err := filepath.Rel("/"+here, "/"+path)
		if err != nil {
			return quote(path)
		}
		if strings.HasSuffix(path, "/") {
			rel += "/"
		}
		return quote(rel)
	}
}

func (a *app) statusLong(st *snapshot.Status, name func(string) string) {
	fmt.Fprintln(a.out, headLine(st.Head))
	if st.Moved {
		fmt.Fprintf(a.out, "the branch has moved since: this directory stands on %s\n  'bole update' brings it forward and keeps unsaved work\n",
			colorID(shortID(st.Base)))
	}
	section := func(title string, n int, line func(i int) string) {
		if n == 0 {
			return
		}
		fmt.Fprintf(a.out, "\n%s:\n", title)
		for i := range n {
			fmt.Fprintf(a.out, "  %s\n", line(i))
		}
	}
	change := func(list []snapshot.PathChange, paint func(...any) string) func(int) string {
		return func(i int) string { return paint(list[i].Kind.String() + "  " + name(list[i].Path)) }
	}
	section("recorded for the next commit", len(st.Staged), change(st.Staged, colorAdded))
	section("changed, not recorded ('bole add' records)", len(st.Unstaged), change(st.Unstaged, colorChanged))
	section("in no commit ('bole add' records)", len(st.Untracked), func(i int) string { return colorChanged(name(st.Untracked[i])) })
	section("ignored", len(st.Ignored), func(i int) string { return name(st.Ignored[i]) })
	section("left out", len(st.Skipped), func(i int) string {
		return name(st.Skipped[i].Path) + " (" + escapeLine(st.Skipped[i].Reason) + ")"
	})
	if st.Clean() {
		fmt.Fprintln(a.out, "nothing to commit, everything is recorded")
	}
}

func headLine(h snapshot.Head) string {
	switch {
	case h.Commit.IsZero():
		return "on branch " + quote(h.Branch) + ", no commit yet"
	case h.Branch == "":
		return "on no branch, at " + colorID(shortID(h.Commit))
	}
	return "on branch " + quote(h.Branch) + " at " + colorID(shortID(h.Commit))
}

// statusShort prints one line a path, in the order of paths.
func (a *app) statusShort(st *snapshot.Status, name func(string) string) {
	letters := map[string][2]byte{}
	set := func(path string, i int, c byte) {
		l, ok := letters[path]
		if !ok {
			l = [2]byte{' ', ' '}
		}
		l[i] = c
		letters[path] = l
	}
	for _, c := range st.Staged {
		set(c.Path, 0, byte(c.Kind))
	}
	for _, c := range st.Unstaged {
		set(c.Path, 1, byte(c.Kind))
	}
	for _, p := range st.Untracked {
		letters[p] = [2]byte{'?', '?'}
	}
	for _, p := range st.Ignored {
		letters[p] = [2]byte{'!', '!'}
	}
	paths := make([]string, 0, len(letters))
	for p := range letters {
		paths = append(paths, p)
	}
	sort.Strings(paths)
	for _, p := range paths {
		l := letters[p]
		fmt.Fprintf(a.out, "%s%s %s\n", colorAdded(string(l[:1])), colorChanged(string(l[1:])), name(p))
	}
}

type statusJSON struct {
	Branch    string        `json:"branch,omitempty"`
	Head      string        `json:"head,omitempty"` // commit; absent before the first
	Base      string        `json:"base,omitempty"` // commit that the directory stands on
	Moved     bool          `json:"moved"`
	Clean     bool          `json:"clean"`
	Staged    []changeJSON  `json:"staged"`
	Unstaged  []changeJSON  `json:"unstaged"`
	Untracked []pathJSON    `json:"untracked"`
	Ignored   []pathJSON    `json:"ignored"`
	Skipped   []problemJSON `json:"skipped"`
}

type changeJSON struct {
	pathJSON
	Change string `json:"change"` // A, M, D, T
}

type problemJSON struct {
	pathJSON
	Reason string `json:"reason"`
}

func newStatusJSON(st *snapshot.Status) statusJSON {
	j := statusJSON{Branch: st.Head.Branch, Moved: st.Moved, Clean: st.Clean(),
		Staged: changesJSON(st.Staged), Unstaged: changesJSON(st.Unstaged),
		Untracked: pathsJSON(st.Untracked), Ignored: pathsJSON(st.Ignored), Skipped: []problemJSON{}}
	if !st.Head.Commit.IsZero() {
		j.Head = st.Head.Commit.String()
	}
	if !st.Base.IsZero() {
		j.Base = st.Base.String()
	}
	for _, p := range st.Skipped {
		j.Skipped = append(j.Skipped, problemJSON{newPathJSON(p.Path), p.Reason})
	}
	return j
}

func changesJSON(list []snapshot.PathChange) []changeJSON {
	out := make([]changeJSON, 0, len(list))
	for _, c := range list {
		out = append(out, changeJSON{newPathJSON(c.Path), c.Kind.String()})
	}
	return out
}

func pathsJSON(list []string) []pathJSON {
	out := make([]pathJSON, 0, len(list))
	for _, p := range list {
		out = append(out, newPathJSON(p))
	}
	return out
}
