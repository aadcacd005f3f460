package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"bole/snapshot"
)

func TestReport(t *testing.T) {
	cmd := &cobra.Command{Use: "thing"}
	for name, c := range map[string]struct {
		err  error
		code int
		want string
	}{
		"plain":       {errors.New("it broke"), 1, "bole: it broke\n"},
		"wrong use":   {usagef("needs %d", 2), 2, "bole: needs 2\nsee 'thing --help'\n"},
		"shown":       {errors.Join(nil, errUsageShown), 2, ""},
		"said":        {errNo, 1, ""},
		"said of two": {errors.Join(errors.New("first"), errNo), 1, "bole: first\n"},
		"two":         {errors.Join(errors.New("a"), errors.Join(errors.New("b"), errors.New("c"))), 1, "bole: a\nbole: b\nbole: c\n"},
		"two lines":   {errors.New("in \"a\nb\""), 1, "bole: in \"a\\nb\"\n"},
		"hint": {fmt.Errorf("x: %w", snapshot.ErrUnborn), 1,
			"bole: x: " + snapshot.ErrUnborn.Error() + "\nrecord files with 'bole add .' and make the first commit with 'bole commit -m MESSAGE'\n"},
		"canceled by nobody": {context.Canceled, 1, "bole: context canceled\n"},
		"output":             {&outputError{unix.ENOSPC}, 1, "bole: write standard output: no space left on device\n"},
	} {
		a, _, errOut := testApp()
		if code := a.report(cmd, c.err); code != c.code || errOut.String() != c.want {
			t.Errorf("%s: exit %d, %q; want %d, %q", name, code, errOut, c.code, c.want)
		}
	}
}

func TestHints(t *testing.T) {
	lock := &fs.PathError{Op: "open", Path: "/r/.bole/db/lock.mdb", Err: unix.EACCES}
	for want, err := range map[string]error{
		"init --shared":   fmt.Errorf("open: %w", lock),
		"package fuse3":   fmt.Errorf("mount: %w", &exec.Error{Name: "fusermount3", Err: exec.ErrNotFound}),
		"bole update":     snapshot.ErrRefMoved,
		"fsck --contents": fmt.Errorf("a: %w", snapshot.ErrDamaged),
	} {
		if got := hint(err); !strings.Contains(got, want) {
			t.Errorf("%v: hint %q, want one with %q", err, got, want)
		}
	}
	for _, err := range []error{errors.New("x"), &fs.PathError{Op: "open", Path: "/etc/shadow", Err: unix.EACCES}} {
		if got := hint(err); got != "" {
			t.Errorf("%v: a hint out of place: %q", err, got)
		}
	}
}

// The first signal ends the context and becomes the exit code.
func TestInterrupt(t *testing.T) {
	for sig, code := range map[unix.Signal]int{unix.SIGINT: 130, unix.SIGTERM: 143} {
		a, _, errOut := testApp()
		ctx, stop := a.interruptible()
		if a.interrupted() != nil {
			t.Error("interrupted before any signal")
		}
		if err := unix.Kill(unix.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		got := a.report(nil, fmt.Errorf("add: %w", ctx.Err()))
		if got != code || errOut.String() != "bole: interrupted\n" {
			t.Errorf("%v: exit %d, %q", sig, got, errOut)
		}
		stop()
	}
	a, _, _ := testApp()
	_, stop := a.interruptible()
	stop()
	if a.interrupted() != nil {
		t.Error("an end without a signal counts as interrupted")
	}
}

func TestUsageChecks(t *testing.T) {
	var wrong *usageError
	if err := usage(cobra.ExactArgs(1))(nil, nil); !errors.As(err, &wrong) {
		t.Errorf("%v", err)
	}
	if err := usage(cobra.ExactArgs(1))(nil, []string{"a"}); err != nil {
		t.Errorf("%v", err)
	}
	if err := noArgs(nil, []string{"a"}); !errors.As(err, &wrong) {
		t.Errorf("%v", err)
	}
}
