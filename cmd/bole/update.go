package main

import (
	"github.com/spf13/cobra"

	"bole/snapshot"
)

func newUpdateCmd(a *app) *cobra.Command {
	var force bool
	cmd := &cobra.Command{
		Use:   "update",
		Short: "bring the working directory to its branch's newest commit",
		Long: `Brings the working directory to the commit that its branch stands on now, when someone
else has committed there meanwhile. Unsaved work is kept; where the new commit changes
the same files, update refuses, names them, and changes nothing. --force overwrites
them.`,
		Example: "  bole update",
		Args:    noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.withRepo(func(r *snapshot.Repo) error { return a.moveFiles(r, force, r.Update) })
		},
	}
	cmd.Flags().BoolVar(&force, "force", false, "overwrite unsaved work")
	return cmd
}
