package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/moby/sys/mountinfo"
	"github.com/spf13/cobra"

	"bole/snapshot"
)

func newWarmCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "warm PATH…",
		Short: "put small files of a mount into memory",
		Long: `Puts the contents of all small files below PATH, which lies in a mount, into the page
cache, so that reading them in any order never asks the process that serves the mount.
Large files are read at full speed without this.`,
		Example: `  bole warm ~/view
  bole warm ~/view/2024 ~/view/notes.txt`,
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			ctx, stop := a.interruptible()
			defer stop()
			var errs []error
			for _, arg := range args {
				if err := a.warm(ctx, arg); err != nil {
					errs = append(errs, fmt.Errorf("warm %s: %w", arg, err))
				}
			}
			return errors.Join(errs...)
		},
	}
}

func (a *app) warm(ctx context.Context, arg string) error {
	path, m, err := inMount(arg)
	if err != nil {
		return err
	}
	lease, ok := leaseOf(m)
	if !ok {
		return fmt.Errorf("nobody serves %s", m.Mountpoint)
	}
	below := strings.TrimPrefix(strings.TrimPrefix(path, m.Mountpoint), "/")
	var show func(controlReply)
	if bar := a.progress(); bar != nil {
		show = func(r controlReply) { bar(snapshot.Progress{Phase: "warm", Files: r.Files, Bytes: r.Bytes}) }
	}
	last, err := askMount(ctx, lease.Socket, controlRequest{Op: "warm", Paths: [][]byte{[]byte(below)}}, show)
	a.stopProgress()
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s: %s, %s in memory\n", quote(path), count(last.Files, "small file"), size(last.Bytes))
	return nil
}

// inMount resolves a path and finds our mount that it lies in.
func inMount(arg string) (path string, m *mountinfo.Info, err error) {
	if path, err = mountPath(arg); err != nil {
		return "", nil, err
	}
	if m, err = mountOver(path); err != nil {
		return "", nil, err
	}
	if m == nil {
		return "", nil, errors.New("not inside a mount of bole's")
	}
	return path, m, nil
}
