package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

type addFlags struct {
	all, dryRun, force bool
}

func newAddCmd(a *app) *cobra.Command {
	var o addFlags
	cmd := &cobra.Command{
		Use:   "add PATH…",
		Short: "record what the next commit takes",
		Long: `Stores the contents of files and records them for the next commit, with everything
below a folder, and also what was deleted there. -A records the whole working
directory, wherever it is called.

Names that .boleignore files or the default patterns leave out are skipped unless
--force is given. Sockets, pipes, devices, nested repositories and anything mounted
below are reported and skipped. What cannot be read is named, exit code 1; everything
else is recorded, and nothing unreadable counts as deleted.

A killed add loses at most its last 30 seconds or 1 GiB: run it again.`,
		Example: `  bole add .
  bole add notes.txt pictures
  bole add -A
  bole add --dry-run .`,
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && !o.all {
				return usagef("nothing to add was named: 'bole add .' records this folder, 'bole add -A' everything")
			}
			if len(args) > 0 && o.all {
				return usagef("-A records everything and takes no paths")
			}
			return a.withRepo(func(r *snapshot.Repo) error { return a.add(r, o, args) })
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.all, "all", "A", false, "record the whole working directory")
	f.BoolVarP(&o.dryRun, "dry-run", "n", false, "only list what would be recorded")
	f.BoolVar(&o.force, "force", false, "record names that ignore patterns leave out")
	return cmd
}

func (a *app) add(r *snapshot.Repo, o addFlags, args []string) error {
	paths, err := workPaths(r, args)
	if err != nil {
		return err
	}
	ctx, stop := a.interruptible()
	defer stop()
	opts := snapshot.AddOptions{Paths: paths, DryRun: o.dryRun, Force: o.force,
		Plan: a.sayPlan("copy into the repository"), Progress: a.progress(), Skipped: a.saySkipped}
	if o.dryRun {
		opts.Plan = nil
		opts.Changed = func(c snapshot.PathChange) { fmt.Fprintln(a.out, changeLine(c)) }
	}
	res, err := r.Add(ctx, opts)
	a.stopProgress()
	err = a.sayUnreadable(err)
	if err == nil || errors.Is(err, errNo) {
		n := counts{added: res.Added, modified: res.Modified, deleted: res.Deleted}
		verb := "recorded"
		if o.dryRun {
			verb = "would record"
		}
		fmt.Fprintf(a.out, "%s: %s (%s read)\n", verb, n, size(res.Bytes))
	}
	return err
}

// sayUnreadable names each file that could not be read, and makes of that an
// error that needs no more words.
func (a *app) sayUnreadable(err error) error {
	var bad *snapshot.UnreadableError
	if !errors.As(err, &bad) {
		return err
	}
	for _, p := range bad.Problems {
		a.warnf("cannot read %s: %s", quote(p.Path), p.Reason)
	}
	return errNo
}

// workPaths turns path arguments into paths of the working directory.
func workPaths(r *snapshot.Repo, args []string) ([]string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("find the current folder: %w", err)
	}
	var paths []string
	for _, arg := range args {
		p, err := r.WorkPath(cwd, arg)
		if err != nil {
			return nil, err
		}
		paths = append(paths, p)
	}
	return paths, nil
}

// planAloud is how many bytes are worth a word when nobody looks at a terminal.
const planAloud = 1 << 30

// sayPlan returns a callback that says how much will be copied, and warns when it does not fit.
func (a *app) sayPlan(what string) func(snapshot.Plan) {
	return func(p snapshot.Plan) {
		fits := p.Bytes <= p.Free
		if p.Bytes > 0 && fits && (p.Bytes >= planAloud || isTerminal(os.Stderr)) {
			a.warnf("%s, %s to %s; %s free", count(p.Files, "file"), size(p.Bytes), what, size(p.Free))
		}
		if !fits {
			a.warnf("warning: %s, %s to %s, but only %s free: it may not fit",
				count(p.Files, "file"), size(p.Bytes), what, size(p.Free))
		}
	}
}

// saySkipped reports what was left out although nobody asked for that.
func (a *app) saySkipped(p snapshot.Problem) { a.warnf("skipped %s: %s", quote(p.Path), p.Reason) }

// changeLine is one changed path: a letter, a tab, the name.
func changeLine(c snapshot.PathChange) string {
	return fmt.Sprintf("%s\t%s", colorChange(c.Kind), quote(c.Path))
}

func colorChange(k snapshot.ChangeKind) string {
	if k == snapshot.Added {
		return colorAdded(k.String())
	}
	return colorChanged(k.String())
}
