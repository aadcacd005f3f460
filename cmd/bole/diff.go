package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"bole/merkle"
	"bole/snapshot"
)

type diffFlags struct {
	staged, nameOnly, stat, asJSON bool
}

func newDiffCmd(a *app) *cobra.Command {
	var o diffFlags
	cmd := &cobra.Command{
		Use:   "diff [A [B]]",
		Short: "list what differs",
		Long: `Lists the paths that differ, each with the letter of what happened to it (A added, M
modified, D deleted, T another kind of file), and their numbers at the end.

Without arguments: what has changed in the working directory since it was recorded.
--staged: what the next commit takes. With one revision: the working directory against
that commit. With two: commit B against commit A; A:PATH B:PATH compares one folder.`,
		Example: `  bole diff
  bole diff --staged
  bole diff HEAD~1 HEAD
  bole diff --stat HEAD~1:2024 HEAD:2024
  bole diff --json HEAD`,
		Args: usage(cobra.MaximumNArgs(2)),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(args); err != nil {
				return err
			}
			return a.withRepo(func(r *snapshot.Repo) error { return a.diff(r, o, args) })
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.staged, "staged", false, "what the next commit takes")
	f.BoolVar(&o.nameOnly, "name-only", false, "names alone")
	f.BoolVar(&o.stat, "stat", false, "sizes before and after")
	f.BoolVar(&o.asJSON, "json", false, "print JSON")
	return cmd
}

func (o diffFlags) check(args []string) error {
	if o.staged && len(args) > 0 {
		return usagef("--staged compares with the commit that the working directory stands on and takes no revision")
	}
	if o.nameOnly && o.stat || o.nameOnly && o.asJSON || o.stat && o.asJSON {
		return usagef("only one of --name-only, --stat and --json can be given")
	}
	return nil
}

func (a *app) diff(r *snapshot.Repo, o diffFlags, args []string) error {
	out, err := a.newDiffPrinter(o)
	if err != nil {
		return err
	}
	switch {
	case o.staged:
		err = r.DiffStaged(out.change)
	case len(args) == 2:
		err = diffCommits(r, args[0], args[1], out.change)
	default:
		err = a.diffWorktree(r, argOr(args, 0, ""), out.change)
	}
	if err != nil && !errors.Is(err, errNo) {
		return err
	}
	return errors.Join(out.end(), err)
}

func diffCommits(r *snapshot.Repo, from, to string, fn func(snapshot.PathChange) error) error {
	a, err := resolve(r, from)
	if err != nil {
		return err
	}
	b, err := resolve(r, to)
	if err != nil {
		return err
	}
	if a.Path != "" && b.Path != "" && a.Path != b.Path {
		return usagef("both revisions must name the same path, not %q and %q", a.Path, b.Path)
	}
	return r.Diff(a.Commit, b.Commit, max(a.Path, b.Path), fn)
}

// diffWorktree compares the working directory with what was recorded, or with a commit.
func (a *app) diffWorktree(r *snapshot.Repo, from string, fn func(snapshot.PathChange) error) error {
	var rev snapshot.Revision
	var paths []string
	if from != "" {
		var err error
		if rev, err = resolve(r, from); err != nil {
			return err
		}
		if rev.Path != "" {
			paths = []string{rev.Path}
		}
	}
	ctx, stop := a.interruptible()
	defer stop()
	st, err := r.Status(ctx, snapshot.StatusOptions{Paths: paths, Progress: a.progress()})
	a.stopProgress()
	if err = a.sayUnreadable(err); st == nil {
		return err
	}
	changes := st.Unstaged
	if from != "" {
		var failed error
		if changes, failed = sinceCommit(r, rev, st); failed != nil {
			return failed
		}
	}
	for _, c := range changes {
		if err := fn(c); err != nil {
			return err
		}
	}
	return err
}

// sinceCommit is how the working directory differs from a commit.
func sinceCommit(r *snapshot.Repo, rev snapshot.Revision, st *snapshot.Status) ([]snapshot.PathChange, error) {
	var between []snapshot.PathChange
	err := r.Diff(rev.Commit, st.Base, rev.Path, func(c snapshot.PathChange) error {
		between = append(between, c)
		return nil
	})
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(r.Root())
	if err != nil {
		return nil, fmt.Errorf("open working directory: %w", err)
	}
	defer root.Close()
	return compose(workHash(root), between, st.Staged, st.Unstaged)
}

// diffPrinter prints changes one by one.
type diffPrinter struct {
	a    *app
	o    diffFlags
	n    counts
	list *jsonList
}

func (a *app) newDiffPrinter(o diffFlags) (p *diffPrinter, err error) {
	p = &diffPrinter{a: a, o: o}
	if o.asJSON {
		p.list, err = a.newJSONList(struct{}{}, "changes")
	}
	return p, err
}

type diffJSON struct {
	changeJSON
	Old *entryJSON `json:"old,omitempty"`
	New *entryJSON `json:"new,omitempty"`
}

func (p *diffPrinter) change(c snapshot.PathChange) error {
	if onlyTime(c) {
		return nil
	}
	if err := p.n.add(c); err != nil {
		return err
	}
	var err error
	switch {
	case p.list != nil:
		err = p.list.add(diffJSON{changeJSON{newPathJSON(c.Path), c.Kind.String()}, sideJSON(c.Path, c.Old), sideJSON(c.Path, c.New)})
	case p.o.nameOnly:
		_, err = fmt.Fprintln(p.a.out, quote(c.Path))
	case p.o.stat:
		_, err = fmt.Fprintf(p.a.out, "%s | %s -> %s\n", changeLine(c), sideText(c.Old), sideText(c.New))
	default:
		_, err = fmt.Fprintln(p.a.out, changeLine(c))
	}
	return err
}

func sideJSON(path string, e *merkle.Entry) *entryJSON {
	if e == nil {
		return nil
	}
	j := newEntryJSON(path, e, e.Target)
	return &j
}

func sideText(e *merkle.Entry) string {
	switch {
	case e == nil:
		return "nothing"
	case e.Kind == merkle.KindFile:
		return size(e.Size)
	}
	return kindText(e.Kind)
}

func (p *diffPrinter) end() error {
	switch {
	case p.list != nil:
		return p.list.end(p.n.json())
	case p.o.nameOnly || p.n == counts{}:
		return nil
	}
	_, err := fmt.Fprintln(p.a.out, p.n)
	return err
}
