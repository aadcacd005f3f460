package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"bole/snapshot"
)

// app is what all commands share: where they write, and the folder they act in.
type app struct {
	dirs []string      // -C, applied one after the other
	out  *bufio.Writer // standard output
	err  io.Writer     // standard error

	barMu sync.Mutex
	bar   *bar // shown now, nil when none

	readyPipe *os.File // of a background mount: where it says that it is ready

	ctx context.Context // of interruptible; nil for commands that a signal just kills
}

func newApp() *app {
	return &app{out: bufio.NewWriterSize(os.Stdout, 64<<10), err: os.Stderr}
}

// enterDirs applies -C.
func (a *app) enterDirs() error {
	for _, d := range a.dirs {
		if err := os.Chdir(d); err != nil {
			return fmt.Errorf("-C: %w", err)
		}
	}
	return nil
}

// interruptible returns a context that the first SIGINT or SIGTERM cancels, for
// commands that have something to clean up. The second signal kills.
func (a *app) interruptible() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, unix.SIGINT, unix.SIGTERM)
	go func() {
		select {
		case s := <-ch:
			signal.Stop(ch)
			cancel(&interruptError{128 + int(s.(unix.Signal))})
		case <-ctx.Done():
		}
	}()
	a.ctx = ctx
	return ctx, func() {
		signal.Stop(ch)
		cancel(nil)
	}
}

// interrupted returns the signal that ended the command's context, nil when none did.
func (a *app) interrupted() *interruptError {
	var sig *interruptError
	if a.ctx != nil && errors.As(context.Cause(a.ctx), &sig) {
		return sig
	}
	return nil
}

// findRoot is the folder of the repository that the current folder lies in.
func (a *app) findRoot() (string, error) { return snapshot.Find(".") }

// withRepo opens the repository of the current folder for the time of fn.
func (a *app) withRepo(fn func(r *snapshot.Repo) error) error {
	root, err := a.findRoot()
	if err != nil {
		return err
	}
	return a.withRepoAt(root, fn)
}

func (a *app) withRepoAt(root string, fn func(r *snapshot.Repo) error) error {
	r, err := snapshot.Open(root, snapshot.OpenOptions{
		ReadOnly: onReadOnlyDisk(root),
		Waiting:  func(m string) { a.warnf("waiting: %s", m) },
	})
	if err != nil {
		return err
	}
	err = fn(r)
	if closeErr := r.Close(); closeErr != nil {
		err = errors.Join(err, fmt.Errorf("close repository: %w", closeErr))
	}
	return err
}

// onReadOnlyDisk says whether nothing can be written where the repository lies.
func onReadOnlyDisk(root string) bool {
	var st unix.Statfs_t
	return unix.Statfs(root, &st) == nil && st.Flags&unix.ST_RDONLY != 0
}

// resolve reads a revision that was given in full: "" is none.
func resolve(r *snapshot.Repo, text string) (snapshot.Revision, error) {
	if text == "" {
		return snapshot.Revision{}, usagef("an empty revision names nothing; the newest commit is HEAD")
	}
	return r.Resolve(text)
}

// argOr is the argument at i, or the default.
func argOr(args []string, i int, def string) string {
	if i < len(args) {
		return args[i]
	}
	return def
}

// isTerminal says whether a person sees what is written to f.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
