package main

import (
	"fmt"
	"sort"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

func newInfoCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "info",
		Short: "show sizes of a repository",
		Long: `Shows what a repository holds and what it takes on disk: the current commit, the page
use of the database and each of its tables, and the contents of files.`,
		Example: `  bole info
  bole info --json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.withRepo(func(r *snapshot.Repo) error {
				i, err := r.Info()
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(i)
				}
				return a.printInfo(i)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) printInfo(i *snapshot.Info) error {
	w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
	row := func(name, value string) { fmt.Fprintf(w, "%s\t%s\n", name, value) }
	row("repository", quote(i.Root)+kindOfRepository(i))
	row("head", quote(i.Head))
	if i.Commit != "" {
		row("commit", i.Commit)
		row("holds", fmt.Sprintf("%s, %s, %s", count(i.Files, "file"), count(i.Dirs, "directory"), size(i.Bytes)))
	} else {
		row("commit", "none yet")
	}
	row("branches", fmt.Sprint(i.Branches))
	row("node store", i.NodeStore)
	d := i.Database
	row("database", fmt.Sprintf("%s, last transaction %d, pages of %s, %d free, %d readers, up to %s",
		size(uint64(d.FileSize)), d.LastTxn, size(uint64(d.PageSize)), d.FreePages, d.Readers, size(uint64(d.MapSize))))
	names := make([]string, 0, len(d.Tables))
	for name := range d.Tables {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
		t := d.Tables[name]
		row("  "+name, fmt.Sprintf("%d records, %s (%d branch, %d leaf, %d overflow pages, depth %d)",
			t.Entries, size(t.Bytes), t.Branch, t.Leaf, t.Overflow, t.Depth))
	}
	c := i.Contents
	row("contents", fmt.Sprintf("%d, %s, %s on disk, in %s and %s", c.Contents, size(c.Bytes), size(c.Allocated),
		count(c.Packs, "pack"), count(c.Whole, "whole file")))
	row("contents folder", quote(i.ContentsDir))
	return w.Flush()
}

func kindOfRepository(i *snapshot.Info) string {
	switch {
	case i.Bare && i.Shared:
		return " (bare, shared)"
	case i.Bare:
		return " (bare)"
	case i.Shared:
		return " (shared)"
	}
	return ""
}
