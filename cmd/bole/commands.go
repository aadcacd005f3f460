package main

import "github.com/spf13/cobra"

// groups are the headings of the list of commands.
var groups = []*cobra.Group{
	{ID: "begin", Title: "Begin:"},
	{ID: "record", Title: "Record changes:"},
	{ID: "look", Title: "Look at history:"},
	{ID: "mount", Title: "Use commits as folders:"},
	{ID: "care", Title: "Look after a repository:"},
}

// commands lists every subcommand, in the order in which a newcomer meets them.
func commands(a *app) []*cobra.Command {
	in := func(group string, list ...*cobra.Command) []*cobra.Command {
		for _, c := range list {
			c.GroupID = group
		}
		return list
	}
	var all []*cobra.Command
	all = append(all, in("begin", newInitCmd(a), newConfigCmd(a), newVersionCmd(a))...)
	all = append(all, in("record", newAddCmd(a), newStatusCmd(a), newCommitCmd(a), newImportCmd(a))...)
	all = append(all, in("look", newLogCmd(a), newLsCmd(a), newTreeCmd(a), newCatCmd(a), newDiffCmd(a), newBranchCmd(a),
		newCheckoutCmd(a), newUpdateCmd(a))...)
	all = append(all, in("mount", newMountCmd(a), newUmountCmd(a), newMountsCmd(a), newWarmCmd(a))...)
	all = append(all, in("care", newFsckCmd(a), newInfoCmd(a))...)
	return all
}
