package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"bole/merkle"
	"bole/snapshot"
)

func newCatCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "cat REV:PATH…",
		Short: "print files of a commit",
		Long: `Prints the bytes of files as they are in a commit; of a symlink its target. Every
content is checked against its hash: damage is an error, exit code 1.`,
		Example: `  bole cat HEAD:notes.txt
  bole cat HEAD~1:notes.txt main:list.csv`,
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			for _, arg := range args {
				if !strings.Contains(arg, ":") {
					return usagef("%q is not of the form REV:PATH; a file of the newest commit is HEAD:%s", arg, arg)
				}
			}
			return a.withRepo(func(r *snapshot.Repo) error {
				var errs []error
				for _, arg := range args {
					errs = append(errs, a.cat(r, arg))
				}
				return errors.Join(errs...)
			})
		},
	}
}

func (a *app) cat(r *snapshot.Repo, arg string) error {
	rev, err := resolve(r, arg)
	if err != nil {
		return err
	}
	e, err := r.Lookup(rev.Commit, rev.Path)
	if err != nil {
		return err
	}
	switch e.Kind {
	case merkle.KindDir:
		return fmt.Errorf("%s: is a directory", arg)
	case merkle.KindSymlink:
		target, err := r.LinkTarget(&e)
		if err != nil {
			return fmt.Errorf("%s: %w", arg, err)
		}
		_, err = a.out.Write(target)
		return err
	}
	if err := a.catContent(r, e.Hash); err != nil {
		return fmt.Errorf("%s: %w", arg, err)
	}
	return nil
}

// catContent copies a content out and hashes what it copies: a whole file has
// not been checked when it is opened.
func (a *app) catContent(r *snapshot.Repo, h merkle.Hash) error {
	c, err := r.OpenContent(h)
	if err != nil {
		return err
	}
	defer c.Release()
	sum := merkle.NewContentHasher()
	src := io.NewSectionReader(c, 0, int64(c.Size()))
	if _, err := io.CopyBuffer(io.MultiWriter(a.out, sum), src, make([]byte, 256<<10)); err != nil {
		return err
	}
	if sum.Sum() != h {
		return fmt.Errorf("content %s: %w", h, snapshot.ErrDamaged)
	}
	return nil
}
