package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

type importFlags struct {
	commitFlags
	branch string
	move   bool
}

func newImportCmd(a *app) *cobra.Command {
	var o importFlags
	cmd := &cobra.Command{
		Use:   "import DIR [DEST] -m MESSAGE",
		Short: "commit a tree that lies outside the working directory",
		Long: `Commits everything in DIR onto a branch, below the folder DEST of the commit (by default
its root). It needs no working directory: 'bole init --bare' makes a repository
without one.

--move takes the files themselves where DIR lies on the file system of the contents: no
byte is copied, each is read once to be hashed, and the sources are removed only when
the commit is durable. A file that a program has open for writing is copied instead.

import says before it starts how much will be copied and whether it fits. Killed, it
goes on where it was when it is run again.`,
		Example: `  bole import ~/camera 2024 -m "pictures of 2024"
  bole import --move ~/films -m "films"`,
		Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(_ *cobra.Command, args []string) error {
			meta, err := o.meta()
			if err != nil {
				return err
			}
			if meta.Message, err = o.message(); err != nil {
				return err
			}
			return a.withRepo(func(r *snapshot.Repo) error {
				if err := o.setDate(r, &meta); err != nil {
					return err
				}
				return a.importTree(r, snapshot.ImportOptions{Source: args[0], Dest: argOr(args, 1, ""),
					Branch: o.branch, Move: o.move, Meta: meta}, o.asJSON)
			})
		},
	}
	o.addTo(cmd.Flags())
	cmd.Flags().StringVar(&o.branch, "branch", "", "`NAME` of the branch (by default the current one)")
	cmd.Flags().BoolVar(&o.move, "move", false, "take the files themselves and remove the sources")
	return cmd
}

func (a *app) importTree(r *snapshot.Repo, o snapshot.ImportOptions, asJSON bool) error {
	ctx, stop := a.interruptible()
	defer stop()
	what := "copy into the repository"
	if o.Move {
		what = "move into the repository"
	}
	o.Plan, o.Progress, o.Skipped = a.sayPlan(what), a.progress(), a.saySkipped
	res, err := r.Import(ctx, o)
	a.stopProgress()
	if err = a.sayUnreadable(err); errors.Is(err, errNo) {
		a.warnf("no commit was made; what is stored already is kept for the next run")
	}
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string]any{"commit": res.ID.String(), "files": res.Files, "bytes": res.Bytes,
			"linked_bytes": res.Linked, "copied_bytes": res.Copied, "left_in_place": res.Remain})
	}
	fmt.Fprintf(a.out, "[%s] %s\n", colorID(shortID(res.ID)), subject(o.Meta.Message))
	fmt.Fprintf(a.out, " %s: %s taken over, %s copied\n", count(res.Files, "file"), size(res.Linked), size(res.Copied))
	if res.Remain > 0 {
		a.warnf("%s left in %s: they are not what was committed any more", count(res.Remain, "file"), quote(o.Source))
	}
	return nil
}
