package main

import "github.com/spf13/cobra"

// commands lists every subcommand.
func commands(a *app) []*cobra.Command {
	return []*cobra.Command{
		newInitCmd(a),
		newConfigCmd(a),
		newAddCmd(a),
		newStatusCmd(a),
		newCommitCmd(a),
		newLogCmd(a),
		newLsCmd(a),
		newTreeCmd(a),
		newCatCmd(a),
		newDiffCmd(a),
		newBranchCmd(a),
		newCheckoutCmd(a),
		newUpdateCmd(a),
		newMountCmd(a),
		newUmountCmd(a),
		newMountsCmd(a),
		newWarmCmd(a),
		newFsckCmd(a),
		newInfoCmd(a),
		newImportCmd(a),
		newVersionCmd(a),
	}
}
