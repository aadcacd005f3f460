package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"

	"golang.org/x/sys/unix"

	"bole/lmdbstore"
)

// againEnv marks a process that runAgain started.
const againEnv = "BOLE_RUN_AGAIN"

// runAgain runs the same command line as a child when the database met another
// process with this one's PID, as happens with two containers that share a
// repository: the child has another PID. It says whether it did.
func (a *app) runAgain(err error) (code int, did bool) {
	if !errors.Is(err, lmdbstore.ErrSamePID) || os.Getenv(againEnv) != "" {
		return 0, false
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), againEnv+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if a.readyPipe != nil {
		cmd.ExtraFiles = []*os.File{a.readyPipe} // descriptor 3, as this process has it
	}
	ch := make(chan os.Signal, 1)
	signal.Notify(ch, unix.SIGINT, unix.SIGTERM)
	if err := cmd.Start(); err != nil {
		return a.report(nil, fmt.Errorf("start again: %w", err)), true
	}
	if a.readyPipe != nil {
		// The child alone speaks from here on: nothing of the caller's stays open.
		if err := errors.Join(a.readyPipe.Close(), nullStdio()); err != nil {
			return 1, true
		}
	}
	go func() {
		for s := range ch {
			_ = cmd.Process.Signal(s) // it may have ended by itself
		}
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0, true
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return exit.ExitCode(), true
	}
	return a.report(nil, fmt.Errorf("the command that was started again: %w", err)), true
}

// nullStdio lets go of the caller's standard input, output and error.
func nullStdio() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return err
		}
	}
	return nil
}
