package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"bole/snapshot"
)

// usageError is wrong use of the command line: exit code 2.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error { return &usageError{fmt.Errorf(format, args...)} }

// outputError is a failure to write results.
type outputError struct{ err error }

func (e *outputError) Error() string { return "write standard output: " + e.err.Error() }
func (e *outputError) Unwrap() error { return e.err }

// interruptError is the cause of a context that a signal ended.
type interruptError struct{ code int }

func (e *interruptError) Error() string { return "interrupted" }

var (
	// errUsageShown is wrong use after the help was printed.
	errUsageShown = errors.New("usage shown")
	// errNo is exit code 1 when everything was said already.
	errNo = errors.New("no")
)

// usage makes a failed check of positional arguments wrong use.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return &usageError{err}
		}
		return nil
	}
}

// noArgs refuses positional arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usagef("no argument expected, got %q", args[0])
	}
	return nil
}

// report prints an error and returns the exit code that it stands for.
func (a *app) report(cmd *cobra.Command, err error) int {
	var wrong *usageError
	switch {
	case errors.Is(err, errUsageShown):
		return 2
	case errors.As(err, &wrong):
		a.warnf("%v", wrong)
		fmt.Fprintf(a.err, "see '%s --help'\n", cmd.CommandPath())
		return 2
	}
	if sig := a.interrupted(); sig != nil && errors.Is(err, context.Canceled) {
		a.warnf("interrupted")
		return sig.code
	}
	for _, e := range split(err) {
		if !errors.Is(e, errNo) {
			a.warnf("%v", e)
		}
	}
	if h := hint(err); h != "" {
		fmt.Fprintln(a.err, h)
	}
	return 1
}

// split undoes errors.Join, so that each error is one line.
func split(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok && fmt.Sprintf("%T", err) == "*errors.joinError" {
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, split(e)...)
		}
		return out
	}
	return []error{err}
}

// hint says what to do next, where there is something to do.
func hint(err error) string {
	for _, h := range []struct {
		is   error
		text string
	}{
		{snapshot.ErrUnborn, "record files with 'bole add .' and make the first commit with 'bole commit -m MESSAGE'"},
		{snapshot.ErrRefMoved, "'bole update' brings the working directory to its branch and keeps unsaved work"},
		{snapshot.ErrNothing, "'bole add PATH…' records what the next commit takes"},
		{snapshot.ErrAmbiguous, "'bole log' shows whole ids"},
		{snapshot.ErrUnknownRevision, "'bole branch' lists branches, 'bole log' lists commits"},
		{snapshot.ErrNoPath, "'bole ls REV:PATH' lists what a commit holds"},
		{snapshot.ErrCurrentBranch, "'bole checkout' another branch first"},
		{snapshot.ErrDamaged, "'bole fsck --contents' shows all damage and what it touches"},
	} {
		if errors.Is(err, h.is) {
			return h.text
		}
	}
	if errors.Is(err, exec.ErrNotFound) && strings.Contains(err.Error(), "fusermount3") {
		return "users mount and unmount by the program fusermount3: install the package fuse3"
	}
	var pe *fs.PathError
	if errors.As(err, &pe) && errors.Is(err, fs.ErrPermission) && strings.Contains(pe.Path, "/"+snapshot.DirName+"/") {
		return "every user of a repository needs write permission on its lock files: 'bole init --shared' makes one for a group"
	}
	return ""
}

// warnf prints one line on standard error. Control characters in names are
// escaped, so that a name cannot make a line of its own.
func (a *app) warnf(format string, args ...any) {
	a.stopProgress()
	fmt.Fprintf(a.err, "bole: %s\n", escapeLine(fmt.Sprintf(format, args...)))
}
