package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"bole/snapshot"
)

// readyMark begins the line by which a background mount says that it can be
// used. Whatever comes before is for the user.
const readyMark = 0

// startDaemon starts this program again in the background, in a session of its
// own, and waits until the mount can be used. It opens no repository itself: the
// database does not survive a fork.
func (a *app) startDaemon(o mountFlags, root, rev, mountpoint string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	defer r.Close()
	cmd := exec.Command("/proc/self/exe", daemonArgs(o, root, rev, mountpoint)...)
	cmd.Args[0] = os.Args[0]
	cmd.Dir = "/"
	// Until its log is open the daemon may still say something on standard error.
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ctx, stop := a.interruptible()
	defer stop()
	err = cmd.Start()
	w.Close() // the daemon's copy is the only one now
	if err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		select {
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
		case <-ended:
		}
	}()
	line, ready := waitReady(r, a.err)
	close(ended)
	if ready {
		fmt.Fprint(a.out, line)
		return nil
	}
	return daemonFailed(cmd.Wait(), ctx.Err())
}

func daemonArgs(o mountFlags, root, rev, mountpoint string) []string {
	args := []string{"-C", root, "mount", "--foreground", "--ready-fd=3", "--io=" + o.mode.String()}
	if o.allowOther {
		args = append(args, "--allow-other")
	}
	if o.verify {
		args = append(args, "--verify")
	}
	return append(args, "--", rev, mountpoint)
}

// waitReady copies what the daemon says to errOut, a line at a time, until it
// is ready or ends.
func waitReady(r io.Reader, errOut io.Writer) (line string, ready bool) {
	br := bufio.NewReader(r)
	for {
		line, err := br.ReadString('\n')
		text, after, ready := strings.Cut(line, string(rune(readyMark)))
		if text != "" {
			_, _ = io.WriteString(errOut, text) // standard error: there is nobody left to tell
		}
		if ready || err != nil {
			return after, ready && err == nil
		}
	}
}

func daemonFailed(err, interrupted error) error {
	var exit *exec.ExitError
	switch {
	case interrupted != nil:
		return interrupted
	case errors.As(err, &exit) && exit.ExitCode() == 2:
		return errUsageShown
	case errors.As(err, &exit) && exit.ExitCode() == 1:
		return errNo // it has said why
	case err == nil:
		return errors.New("mount: the process in the background ended at once")
	}
	return fmt.Errorf("mount: the process in the background: %w", err)
}

// tellReady lets the starting process return. From here on everything goes to the log.
func (a *app) tellReady(line string) error {
	if a.readyPipe == nil {
		_, err := fmt.Fprint(a.err, line)
		return err
	}
	_, err := fmt.Fprintf(a.readyPipe, "%c%s", readyMark, line)
	err = errors.Join(err, a.readyPipe.Close())
	a.readyPipe, a.err = nil, os.Stderr
	if err != nil {
		return fmt.Errorf("the command that started this mount is gone: %w", err)
	}
	return nil
}

// openReadyPipe takes over the descriptor that startDaemon handed down.
func (a *app) openReadyPipe(fd int) {
	if fd == 0 {
		return
	}
	syscall.CloseOnExec(fd)
	a.readyPipe = os.NewFile(uintptr(fd), "ready pipe "+strconv.Itoa(fd))
	a.err = a.readyPipe
}

// readyLine is what the user sees of a mount that stands.
func readyLine(rev snapshot.Revision, text, mountpoint, mode string) string {
	return fmt.Sprintf("mounted %s (%s) at %s, io %s\n", escapeLine(text), shortID(rev.Commit), quote(mountpoint), mode)
}
