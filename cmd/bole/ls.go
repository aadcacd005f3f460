package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"bole/merkle"
	"bole/snapshot"
)

func newLsCmd(a *app) *cobra.Command {
	var long, asJSON bool
	cmd := &cobra.Command{
		Use:   "ls [REV[:PATH]]",
		Short: "list a folder of a commit",
		Long: `Lists what a folder of a commit holds, one name a line (by default the root folder of
HEAD), or one file. Names with control characters, quotes or bytes that are not UTF-8
are quoted as in C.

-l shows mode, size in bytes, time and name; the size of a folder is that of all files
below it.`,
		Example: `  bole ls
  bole ls -l main:2024/trip
  bole ls --json HEAD~1`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.withRepo(func(r *snapshot.Repo) error {
				rev, err := resolve(r, argOr(args, 0, "HEAD"))
				if err != nil {
					return err
				}
				e, err := r.Lookup(rev.Commit, rev.Path)
				if err != nil {
					return err
				}
				if asJSON {
					return a.lsJSON(r, rev, e)
				}
				return a.ls(r, rev, e, long)
			})
		},
	}
	cmd.Flags().BoolVarP(&long, "long", "l", false, "show mode, size and time")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// eachEntry calls fn for the entries of a folder, or for a file itself, with
// the path in the commit and a symlink's target. The entry is lent.
func eachEntry(r *snapshot.Repo, rev snapshot.Revision, e merkle.Entry, fn func(path string, e *merkle.Entry, target []byte) error) error {
	one := func(path string, e *merkle.Entry) error {
		var target []byte
		if e.Kind == merkle.KindSymlink {
			var err error
			if target, err = r.LinkTarget(e); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		return fn(path, e, target)
	}
	if e.Kind != merkle.KindDir {
		return one(rev.Path, &e)
	}
	return r.List(e.Hash, func(e *merkle.Entry) error { return one(under(rev.Path, string(e.Name)), e) })
}

// under joins a path inside a commit.
func under(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

func (a *app) ls(r *snapshot.Repo, rev snapshot.Revision, e merkle.Entry, long bool) error {
	return eachEntry(r, rev, e, func(_ string, e *merkle.Entry, target []byte) error {
		line := paint(e, quote(e.Name))
		if long {
			at := time.Unix(0, e.Mtime).Format("2006-01-02 15:04:05")
			line = fmt.Sprintf("%s %12d %s %s", modeText(e), e.Size, at, line)
			if e.Kind == merkle.KindSymlink {
				line += " -> " + quote(target)
			}
		}
		_, err := fmt.Fprintln(a.out, line)
		return err
	})
}

func (a *app) lsJSON(r *snapshot.Repo, rev snapshot.Revision, e merkle.Entry) error {
	list, err := a.newJSONList(treeHead(rev), "entries")
	if err != nil {
		return err
	}
	err = eachEntry(r, rev, e, func(path string, e *merkle.Entry, target []byte) error {
		return list.add(newEntryJSON(path, e, target))
	})
	if err != nil {
		return err
	}
	return list.end(nil)
}

// treeHead is the head of a JSON listing.
func treeHead(rev snapshot.Revision) any {
	return struct {
		Commit string `json:"commit"`
		pathJSON
	}{rev.Commit.String(), newPathJSON(rev.Path)}
}
