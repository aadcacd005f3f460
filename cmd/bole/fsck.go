package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

func newFsckCmd(a *app) *cobra.Command {
	var contents, asJSON bool
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "check the repository for damage",
		Long: `Checks every page of the database, hashes every node again, checks that all that
commits refer to is there, and with --contents reads and hashes every byte of every
file. Reports all damage and what it touches; changes nothing. Exit code 1 when there
is damage.`,
		Example: `  bole fsck
  bole fsck --contents
  bole fsck --json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.fsck(contents, asJSON)
		},
	}
	cmd.Flags().BoolVar(&contents, "contents", false, "read and hash every byte")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

type damageJSON struct {
	Kind    string     `json:"kind"`
	Hash    string     `json:"hash,omitempty"`
	Reason  string     `json:"reason"`
	Touches []pathJSON `json:"touches"` // COMMIT:PATH
}

// fsck checks the pages of the database before it opens the repository: LMDB
// trusts them.
func (a *app) fsck(contents, asJSON bool) error {
	root, err := a.findRoot()
	if err != nil {
		return err
	}
	rep := &fsckReport{a: a}
	if asJSON {
		if rep.list, err = a.newJSONList(map[string]bool{"contents_checked": contents}, "damage"); err != nil {
			return err
		}
	}
	var res snapshot.FsckResult
	res.Damaged, err = snapshot.CheckPages(root, snapshot.OpenOptions{ReadOnly: onReadOnlyDisk(root)}, rep.damage)
	if err == nil && res.Damaged == 0 {
		err = a.withRepoAt(root, func(r *snapshot.Repo) (err error) {
			ctx, stop := a.interruptible()
			defer stop()
			res, err = r.Fsck(ctx, snapshot.FsckOptions{Contents: contents, Progress: a.progress(), Damage: rep.damage})
			a.stopProgress()
			return err
		})
	}
	if err = errors.Join(err, rep.err); err != nil {
		return err
	}
	if err := rep.end(res); err != nil || res.Damaged == 0 {
		return err
	}
	return fmt.Errorf("%s", count(res.Damaged, "damaged object"))
}

// fsckReport prints damage as it is found.
type fsckReport struct {
	a    *app
	list *jsonList // nil for text
	err  error     // the first of writing
}

func (r *fsckReport) damage(d snapshot.Damage) {
	r.a.stopProgress()
	if r.list == nil {
		r.a.printDamage(d)
		return
	}
	if err := r.list.add(damageJSON{d.Kind, d.Hash, d.Reason, pathsJSON(d.Touches)}); err != nil && r.err == nil {
		r.err = err
	}
}

func (r *fsckReport) end(res snapshot.FsckResult) error {
	if r.list != nil {
		return r.list.end(map[string]uint64{"commits": res.Commits, "nodes": res.Nodes, "node_bytes": res.NodeBytes,
			"contents": res.Contents, "bytes": res.Bytes, "damaged": res.Damaged})
	}
	fmt.Fprintf(r.a.out, "checked %s, %s, %s (%s)\n", count(res.Commits, "commit"), count(res.Nodes, "node"),
		count(res.Contents, "content"), size(res.Bytes))
	return nil
}

func (a *app) printDamage(d snapshot.Damage) {
	fmt.Fprintf(a.out, "damaged %s %s: %s\n", d.Kind, d.Hash, escapeLine(d.Reason))
	for _, t := range d.Touches {
		fmt.Fprintf(a.out, "  touches %s\n", quote(t))
	}
}
