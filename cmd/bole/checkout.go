package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

func newCheckoutCmd(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "checkout REV",
		Short: "bring the working directory to a commit",
		Long: `Brings the files of the working directory to REV. With a branch the next commit goes
there; with any other revision HEAD is on no branch.

Unsaved work is never overwritten without a word: where REV differs from what is
changed and not committed, checkout refuses, names the files, and changes nothing.
--force overwrites them.`,
		Example: `  bole checkout main
  bole checkout HEAD~1
  bole checkout --force main`,
		Args: usage(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withRepo(func(r *snapshot.Repo) error {
				rev, err := resolve(r, args[0])
				if err != nil {
					return err
				}
				if rev.Path != "" {
					return usagef("checkout takes a whole commit, not a path: %q", args[0])
				}
				return a.moveFiles(r, force, func(ctx context.Context, o snapshot.CheckoutOptions) (snapshot.CheckoutResult, error) {
					return r.Checkout(ctx, rev, o)
				})
			})
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite unsaved work")
	return cmd
}

// moveFiles runs a checkout or an update and says what came of it.
func (a *app) moveFiles(r *snapshot.Repo, force bool, move func(context.Context, snapshot.CheckoutOptions) (snapshot.CheckoutResult, error)) error {
	before, err := r.Head()
	if err != nil {
		return err
	}
	ctx, stop := a.interruptible()
	defer stop()
	bad := false
	res, err := move(ctx, snapshot.CheckoutOptions{Force: force, Progress: a.progress(), Problem: func(p snapshot.Problem) {
		bad = true
		a.warnf("%s: %s", quote(p.Path), p.Reason)
	}})
	a.stopProgress()
	var conflict *snapshot.ConflictError
	if errors.As(err, &conflict) {
		for _, p := range conflict.Paths {
			a.warnf("unsaved work would be overwritten: %s", quote(p))
		}
		a.warnf("nothing was changed; commit or move these files, or give --force to overwrite them")
		return errNo
	}
	if err != nil {
		return err
	}
	head, err := r.Head()
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s: %d written, %d removed\n", headLine(head), res.Written, res.Removed)
	if before.Branch == "" && before.Commit != head.Commit { // perhaps the last name of commits made there
		id := shortID(before.Commit)
		a.warnf("HEAD was on no branch, at %s; 'bole branch NAME %s' gives it a name", id, id)
	}
	if bad {
		return errNo
	}
	return nil
}
