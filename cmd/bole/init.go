package main

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

func newInitCmd(a *app) *cobra.Command {
	var o snapshot.InitOptions
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "make an empty repository",
		Long: `Makes an empty repository in DIR (by default the current folder), which is created
when it is not there and may hold files already. Everything that Bole keeps lies in
DIR/.bole.

--bare makes a repository without a working directory: history comes into it by
'bole import'. --contents puts the contents of files into another folder, which may
lie on another disk or on a network file system; the database itself needs a local
disk. --shared lets the group of DIR write.`,
		Example: `  bole init
  bole init photos
  bole init --bare --contents contents archive`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			dir := argOr(args, 0, ".")
			if err := snapshot.Init(dir, o); err != nil {
				return err
			}
			abs, err := filepath.Abs(dir)
			if err != nil {
				return fmt.Errorf("init: %w", err)
			}
			fmt.Fprintf(a.out, "made an empty repository in %s\n", quote(abs))
			return nil
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Bare, "bare", false, "without a working directory")
	f.BoolVar(&o.Shared, "shared", false, "writable for the group")
	f.StringVar(&o.Contents, "contents", "", "keep contents of files in `FOLDER`")
	f.StringVar(&o.Branch, "branch", "main", "`NAME` of the first branch")
	return cmd
}
