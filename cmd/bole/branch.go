package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

type branchFlags struct {
	remove, move, force, asJSON bool
}

func newBranchCmd(a *app) *cobra.Command {
	var o branchFlags
	cmd := &cobra.Command{
		Use:   "branch [NAME [REV]]",
		Short: "list, make, rename and delete branches",
		Long: `Without arguments lists branches; the current one is marked. With NAME makes a branch
at REV (by default HEAD); -f moves one that is there already, but never the current
one.

-m renames a branch (with one name: the current one). -d deletes branches; their
commits stay.`,
		Example: `  bole branch
  bole branch experiment
  bole branch -f experiment HEAD~1
  bole branch -m experiment trial
  bole branch -d trial`,
		RunE: func(_ *cobra.Command, args []string) error {
			if err := o.check(args); err != nil {
				return err
			}
			return a.withRepo(func(r *snapshot.Repo) error { return a.branch(r, o, args) })
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&o.remove, "delete", "d", false, "delete branches")
	f.BoolVarP(&o.move, "move", "m", false, "rename a branch: [OLD] NEW")
	f.BoolVarP(&o.force, "force", "f", false, "move a branch that is there already")
	f.BoolVar(&o.asJSON, "json", false, "list as JSON")
	return cmd
}

func (o branchFlags) check(args []string) error {
	switch {
	case o.remove && o.move, (o.remove || o.move) && (o.force || o.asJSON), o.force && o.asJSON:
		return usagef("only one of -d, -m, -f and --json can be given")
	case o.remove && len(args) == 0:
		return usagef("-d needs the name of a branch")
	case o.move && (len(args) == 0 || len(args) > 2):
		return usagef("-m needs one or two names: [OLD] NEW")
	case o.asJSON && len(args) > 0:
		return usagef("--json lists branches and takes no argument")
	case o.force && len(args) == 0:
		return usagef("-f needs the name of a branch")
	case !o.remove && len(args) > 2:
		return usagef("at most a name and a revision expected")
	}
	return nil
}

func (a *app) branch(r *snapshot.Repo, o branchFlags, args []string) error {
	switch {
	case o.remove:
		return a.deleteBranches(r, args)
	case o.move:
		return renameBranch(r, args)
	case len(args) == 0:
		return a.listBranches(r, o.asJSON)
	}
	rev, err := resolve(r, argOr(args, 1, "HEAD"))
	if err != nil {
		return err
	}
	if rev.Path != "" {
		return usagef("a branch stands on a commit, not on a path: %q", args[1])
	}
	return r.CreateBranch(args[0], rev.Commit, o.force)
}

func (a *app) deleteBranches(r *snapshot.Repo, names []string) error {
	for _, name := range names {
		rev, err := r.Resolve("refs/heads/" + name)
		if err != nil {
			return fmt.Errorf("branch %s: %w", name, snapshot.ErrNoRef)
		}
		if err := r.DeleteBranch(name); err != nil {
			return err
		}
		fmt.Fprintf(a.out, "deleted branch %s (was %s)\n", name, shortID(rev.Commit))
	}
	return nil
}

func renameBranch(r *snapshot.Repo, args []string) error {
	from, to := args[0], args[len(args)-1]
	if len(args) == 1 {
		head, err := r.Head()
		if err != nil {
			return err
		}
		if head.Branch == "" {
			return fmt.Errorf("rename branch: %w", snapshot.ErrDetached)
		}
		from = head.Branch
	}
	return r.RenameBranch(from, to)
}

func (a *app) listBranches(r *snapshot.Repo, asJSON bool) error {
	head, err := r.Head()
	if err != nil {
		return err
	}
	refs, err := r.Branches()
	if err != nil {
		return err
	}
	type branchJSON struct {
		Name    string `json:"name"`
		Commit  string `json:"commit"`
		Current bool   `json:"current"`
	}
	list := []branchJSON{}
	for _, ref := range refs {
		list = append(list, branchJSON{ref.Name, ref.Commit.String(), ref.Name == head.Branch})
	}
	if asJSON {
		return a.printJSON(map[string]any{"branches": list})
	}
	if head.Branch == "" {
		fmt.Fprintf(a.out, "* %s\n", colorAdded("(no branch, at "+shortID(head.Commit)+")"))
	}
	for _, b := range list {
		if b.Current {
			fmt.Fprintf(a.out, "* %s\n", colorAdded(quote(b.Name)))
		} else {
			fmt.Fprintf(a.out, "  %s\n", quote(b.Name))
		}
	}
	return nil
}
