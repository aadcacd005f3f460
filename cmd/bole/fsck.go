package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

func newFsckCmd(a *app) *cobra.Command {
	var contents, asJSON bool
	cmd := &cobra.Command{
		Use:   "fsck",
		Short: "check the repository for damage",
		Long: `Hashes every node of the repository again, checks that all that commits refer to is
there, and with --contents reads and hashes every byte of every file. Reports all
damage and what it touches; changes nothing. Exit code 1 when there is damage.`,
		Example: `  bole fsck
  bole fsck --contents
  bole fsck --json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			return a.withRepo(func(r *snapshot.Repo) error { return a.fsck(r, contents, asJSON) })
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

func (a *app) fsck(r *snapshot.Repo, contents, asJSON bool) error {
	ctx, stop := a.interruptible()
	defer stop()
	var list *jsonList
	var err, writeErr error
	if asJSON {
		if list, err = a.newJSONList(map[string]bool{"contents_checked": contents}, "damage"); err != nil {
			return err
		}
	}
	res, err := r.Fsck(ctx, snapshot.FsckOptions{Contents: contents, Progress: a.progress(), Damage: func(d snapshot.Damage) {
		a.stopProgress()
		if list == nil {
			a.printDamage(d)
			return
		}
		if err := list.add(damageJSON{d.Kind, d.Hash, d.Reason, pathsJSON(d.Touches)}); err != nil && writeErr == nil {
			writeErr = err
		}
	}})
	a.stopProgress()
	if err == nil {
		err = writeErr
	}
	if err != nil {
		return err
	}
	if list != nil {
		err = list.end(map[string]uint64{"commits": res.Commits, "nodes": res.Nodes,
			"contents": res.Contents, "bytes": res.Bytes, "damaged": res.Damaged})
	} else {
		fmt.Fprintf(a.out, "checked %s, %s, %s (%s)\n", count(res.Commits, "commit"), count(res.Nodes, "node"),
			count(res.Contents, "content"), size(res.Bytes))
	}
	if err != nil || res.Damaged == 0 {
		return err
	}
	return fmt.Errorf("%s", count(res.Damaged, "damaged object"))
}

func (a *app) printDamage(d snapshot.Damage) {
	fmt.Fprintf(a.out, "damaged %s %s: %s\n", d.Kind, d.Hash, escapeLine(d.Reason))
	for _, t := range d.Touches {
		fmt.Fprintf(a.out, "  touches %s\n", quote(t))
	}
}
