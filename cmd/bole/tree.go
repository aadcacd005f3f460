package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"bole/merkle"
	"bole/snapshot"
)

func newTreeCmd(a *app) *cobra.Command {
	var depth int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "tree [REV[:PATH]]",
		Short: "show a commit as a tree",
		Long: `Shows everything in a commit, or below one of its folders, as a tree (by default HEAD),
with the numbers of folders and files at the end.`,
		Example: `  bole tree
  bole tree --depth 2 main:2024
  bole tree --json HEAD`,
		Args: usage(cobra.MaximumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("depth") && depth < 1 {
				return usagef("--depth needs a number from 1 up")
			}
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
					return a.treeJSON(r, rev, e, depth)
				}
				return a.tree(r, rev, e, depth)
			})
		},
	}
	cmd.Flags().IntVar(&depth, "depth", 0, "only `N` levels of folders")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON: a flat list in path order")
	return cmd
}

func (a *app) tree(r *snapshot.Repo, rev snapshot.Revision, e merkle.Entry, depth int) error {
	name := "."
	if rev.Path != "" {
		name = quote(rev.Path)
	}
	fmt.Fprintln(a.out, paint(&e, name))
	p := treePrinter{a: a, r: r, depth: depth}
	if e.Kind == merkle.KindDir {
		err := r.View(func(rd merkle.Reader) error { return p.dir(rd, "", e.Hash, 1) })
		if err != nil {
			return err
		}
	} else {
		p.files++
	}
	fmt.Fprintf(a.out, "\n%s, %s\n", count(p.dirs, "directory"), count(p.files, "file"))
	return nil
}

type treePrinter struct {
	a           *app
	r           *snapshot.Repo
	depth       int // 0: all
	dirs, files int
}

// dir prints what one folder holds.
func (p *treePrinter) dir(rd merkle.Reader, indent string, h merkle.Hash, level int) error {
	d, err := merkle.OpenDir(rd, &h)
	if err != nil {
		return err
	}
	cur := d.Seek(0)
	var e merkle.Entry
	for i := uint64(1); ; i++ {
		ok, err := cur.Next(&e)
		if err != nil || !ok {
			return err
		}
		if err := p.entry(rd, indent, &e, level, i == d.Len()); err != nil {
			return err
		}
	}
}

func (p *treePrinter) entry(rd merkle.Reader, indent string, e *merkle.Entry, level int, last bool) error {
	branch, more := "├── ", "│   "
	if last {
		branch, more = "└── ", "    "
	}
	line := indent + branch + paint(e, quote(e.Name))
	if e.Kind == merkle.KindSymlink {
		target, err := p.r.LinkTarget(e)
		if err != nil {
			return err
		}
		line += " -> " + quote(target)
	}
	if _, err := fmt.Fprintln(p.a.out, line); err != nil {
		return err
	}
	if e.Kind != merkle.KindDir {
		p.files++
		return nil
	}
	p.dirs++
	if p.depth > 0 && level >= p.depth {
		return nil
	}
	return p.dir(rd, indent+more, e.Hash, level+1)
}

func (a *app) treeJSON(r *snapshot.Repo, rev snapshot.Revision, e merkle.Entry, depth int) error {
	list, err := a.newJSONList(treeHead(rev), "entries")
	if err != nil {
		return err
	}
	add := func(path string, e *merkle.Entry) (err error) {
		var target []byte
		if e.Kind == merkle.KindSymlink {
			if target, err = r.LinkTarget(e); err != nil {
				return fmt.Errorf("%s: %w", path, err)
			}
		}
		if err := list.add(newEntryJSON(path, e, target)); err != nil {
			return err
		}
		below := strings.TrimPrefix(strings.TrimPrefix(path, rev.Path), "/")
		if e.Kind == merkle.KindDir && depth > 0 && strings.Count(below, "/")+1 >= depth {
			return merkle.SkipDir
		}
		return nil
	}
	if e.Kind == merkle.KindDir {
		err = r.Walk(rev.Path, e, add)
	} else {
		err = add(rev.Path, &e)
	}
	if err != nil {
		return err
	}
	return list.end(nil)
}
