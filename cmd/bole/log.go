package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"bole/merkle"
	"bole/snapshot"
)

func newLogCmd(a *app) *cobra.Command {
	var oneline, asJSON bool
	limit := -1
	cmd := &cobra.Command{
		Use:   "log [REV]",
		Short: "list commits, newest first",
		Long: `Lists the commit that REV names (by default HEAD) and those before it, newest first.
Each begins with a line "commit ID".`,
		Example: `  bole log
  bole log --oneline -n 10 main
  bole log --json`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("max-count") && limit < 0 {
				return usagef("-n needs a number from 0 up")
			}
			return a.withRepo(func(r *snapshot.Repo) error {
				rev, err := resolve(r, argOr(args, 0, "HEAD"))
				if err != nil {
					return err
				}
				if rev.Path != "" {
					return usagef("log takes a revision without a path, not %q", args[0])
				}
				if asJSON {
					return a.logJSON(r, rev.Commit, limit)
				}
				return a.log(r, rev.Commit, limit, oneline)
			})
		},
	}
	f := cmd.Flags()
	f.BoolVar(&oneline, "oneline", false, "one line a commit: short id and subject")
	f.IntVarP(&limit, "max-count", "n", -1, "at most `N` commits")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) log(r *snapshot.Repo, from merkle.Hash, limit int, oneline bool) error {
	first := true
	return eachCommit(r, from, limit, func(id merkle.Hash, c *merkle.Commit) error {
		if oneline {
			_, err := fmt.Fprintf(a.out, "%s %s\n", colorID(shortID(id)), subject(c.Message))
			return err
		}
		if !first {
			fmt.Fprintln(a.out)
		}
		first = false
		fmt.Fprintln(a.out, colorID("commit "+id.String()))
		fmt.Fprintf(a.out, "Author: %s\n", signatureName(c.Author))
		if c.Committer.Name != c.Author.Name || c.Committer.Email != c.Author.Email {
			fmt.Fprintf(a.out, "Commit: %s\n", signatureName(c.Committer))
		}
		_, err := fmt.Fprintf(a.out, "Date:   %s\n\n", signatureTime(c.Author).Format("Mon Jan 2 15:04:05 2006 -0700"))
		for _, line := range text(c.Message) {
			if line != "" {
				line = "    " + line
			}
			_, err = fmt.Fprintln(a.out, line)
		}
		return err
	})
}

func (a *app) logJSON(r *snapshot.Repo, from merkle.Hash, limit int) error {
	list, err := a.newJSONList(struct{}{}, "commits")
	if err != nil {
		return err
	}
	err = eachCommit(r, from, limit, func(id merkle.Hash, c *merkle.Commit) error {
		return list.add(newCommitJSON(id, c))
	})
	if err != nil {
		return err
	}
	return list.end(nil)
}

// eachCommit calls fn for at most limit commits; a negative limit is none.
func eachCommit(r *snapshot.Repo, from merkle.Hash, limit int, fn func(merkle.Hash, *merkle.Commit) error) error {
	if limit == 0 {
		return nil
	}
	return r.Log(from, func(id merkle.Hash, c *merkle.Commit) (bool, error) {
		limit--
		return limit != 0, fn(id, c)
	})
}
