package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"text/tabwriter"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"bole/fs"
	"bole/snapshot"
)

func newMountsCmd(a *app) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "mounts",
		Short: "list mounts",
		Long: `Lists the mounts of the repository that the current folder lies in; outside any
repository all mounts: the commit each shows, its io mode, the process that serves it,
requests of the kernel since the mount began and since the last time somebody asked,
bytes read, and the log.`,
		Example: `  bole mounts
  bole -C ~/photos mounts --json`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			list, dead, err := a.listMounts()
			if err != nil {
				return err
			}
			if asJSON {
				return a.printJSON(map[string]any{"mounts": list, "dead": dead})
			}
			return a.printMounts(list, dead)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// mountJSON is one mount that is being served. What is not UTF-8 stands in
// full in the fields that end in _b64.
type mountJSON struct {
	Mountpoint string `json:"mountpoint"`
	MountB64   []byte `json:"mountpoint_b64,omitempty"`
	RepoB64    []byte `json:"repository_b64,omitempty"`
	PathB64    []byte `json:"path_b64,omitempty"`
	Repository string `json:"repository"`
	Revision   string `json:"revision"` // as it was given
	Commit     string `json:"commit"`
	Path       string `json:"path"` // folder of the commit, "" for its root
	IO         string `json:"io"`
	PID        int    `json:"pid"`
	Started    string `json:"started"` // RFC 3339
	mountStats
	Log   string `json:"log"`
	Error string `json:"error,omitempty"` // why there are no counts
}

// listMounts returns the living mounts, and the mount points of dead ones.
func (a *app) listMounts() (list []mountJSON, dead []string, err error) {
	list, dead = []mountJSON{}, []string{}
	ours, err := ourMounts()
	if err != nil {
		return nil, nil, err
	}
	root, err := a.findRoot()
	if err != nil {
		root = "" // outside any repository: all of them
	}
	roots := map[string]bool{}
	if root != "" {
		roots[root] = true
	}
	for _, m := range ours {
		if from := sourceRoot(m.Source); from != "" && (root == "" || root == from) {
			roots[from] = true
		}
	}
	served := map[string]bool{}
	for from := range roots {
		leases, err := snapshot.LeasesOf(from)
		if err != nil {
			return nil, nil, err
		}
		for _, l := range leases {
			served[l.Mountpoint] = true
			list = append(list, newMountJSON(l))
		}
	}
	for _, m := range ours {
		// A living mount is never asked: that would be a request, and counted.
		if roots[sourceRoot(m.Source)] && !served[m.Mountpoint] && fs.Dead(m.Mountpoint) {
			dead = append(dead, m.Mountpoint)
		}
	}
	sort.Slice(list, func(i, j int) bool { return list[i].Mountpoint < list[j].Mountpoint })
	return list, dead, nil
}

func newMountJSON(l snapshot.LeaseInfo) mountJSON {
	m := mountJSON{Mountpoint: l.Mountpoint, Repository: l.Repository, Revision: l.Revision, Path: l.Path, IO: l.IO,
		PID: l.PID, Started: time.Unix(0, l.Started).UTC().Format(time.RFC3339Nano), Log: l.Log}
	m.MountB64, m.RepoB64, m.PathB64 = notText(l.Mountpoint), notText(l.Repository), notText(l.Path)
	if len(l.Commits) > 0 {
		m.Commit = l.Commits[0]
	}
	reply, err := askMount(context.Background(), l.Socket, controlRequest{Op: "stats"}, nil)
	switch {
	case err != nil:
		m.Error = err.Error()
	case reply.Stats != nil:
		m.mountStats = *reply.Stats
	}
	return m
}

// notText is a name that JSON cannot hold, nil for UTF-8.
func notText(s string) []byte {
	if utf8.ValidString(s) {
		return nil
	}
	return []byte(s)
}

func (a *app) printMounts(list []mountJSON, dead []string) error {
	for i, m := range list {
		if i > 0 {
			fmt.Fprintln(a.out)
		}
		fmt.Fprintln(a.out, colorDir(quote(m.Mountpoint)))
		w := tabwriter.NewWriter(a.out, 0, 0, 2, ' ', 0)
		row := func(name, value string) { fmt.Fprintf(w, "  %s\t%s\n", name, value) }
		row("repository", quote(m.Repository))
		row("revision", escapeLine(m.Revision)+" ("+m.Commit[:min(len(m.Commit), shortDigits)]+")")
		row("served by", fmt.Sprintf("process %d, io %s, since %s", m.PID, m.IO, m.Started))
		if m.Error != "" {
			row("no counts", escapeLine(m.Error))
		} else {
			row("requests", countsText(m.Requests))
			row("since last asked", countsText(m.RequestsSince))
			row("bytes read", size(m.BytesRead))
		}
		row("log", quote(m.Log))
		if err := w.Flush(); err != nil {
			return err
		}
	}
	for _, d := range dead {
		fmt.Fprintf(a.out, "%s: its process has died; 'bole umount' removes it\n", quote(d))
	}
	return nil
}

// countsText is "12 LOOKUP, 3 READ", the most frequent first.
func countsText(n map[string]uint64) string {
	if len(n) == 0 {
		return "none"
	}
	kinds := make([]string, 0, len(n))
	for k := range n {
		kinds = append(kinds, k)
	}
	sort.Slice(kinds, func(i, j int) bool {
		a, b := kinds[i], kinds[j]
		return n[a] > n[b] || n[a] == n[b] && a < b
	})
	for i, k := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", n[k], k)
	}
	return strings.Join(kinds, ", ")
}
