package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// openPty makes a terminal of 120 columns: what is written to user can be read
// from screen.
func openPty() (screen, user *os.File, err error) {
	screen, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(screen.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err = errors.Join(err, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0),
		unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 120}))
	if err == nil {
		user, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		return nil, nil, errors.Join(err, screen.Close())
	}
	return screen, user, nil
}

func runOnTerminal(ts *testscript.TestScript, args []string) (shown []byte, err error) {
	screen, user, err := openPty()
	if err != nil {
		return nil, err
	}
	defer screen.Close()
	cmd := exec.Command(args[0], args[1:]...)
	path := ts.Getenv("PATH")
	if cmd.Path, err = lookIn(path, args[0]); err != nil {
		user.Close()
		return nil, err
	}
	cmd.Err = nil
	cmd.Dir = ts.MkAbs(".")
	for _, key := range []string{"HOME", "XDG_CONFIG_HOME", "TZ", "TERM", "NO_COLOR", "EDITOR", "VISUAL", "TMPDIR", "GOCOVERDIR"} {
		if v := ts.Getenv(key); v != "" {
			cmd.Env = append(cmd.Env, key+"="+v)
		}
	}
	cmd.Env = append(cmd.Env, "PATH="+path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = user, user, user
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	user.Close()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	// The last reader of a terminal whose other side is gone gets EIO.
	if _, readErr := io.Copy(&out, screen); readErr != nil && !errors.Is(readErr, unix.EIO) {
		return out.Bytes(), readErr
	}
	return out.Bytes(), cmd.Wait()
}

// lookIn finds a program in a list of folders that is not this process's own.
func lookIn(path, name string) (string, error) {
	for dir := range bytes.SplitSeq([]byte(path), []byte{os.PathListSeparator}) {
		file := string(dir) + "/" + name
		if fi, err := os.Stat(file); err == nil && fi.Mode()&0o111 != 0 && !fi.IsDir() {
			return file, nil
		}
	}
	return "", fmt.Errorf("no program %s in %s", name, path)
}

func TestTerminalIsSeen(t *testing.T) {
	screen, user, err := openPty()
	if err != nil {
		t.Skip("no terminal can be made: ", err)
	}
	defer screen.Close()
	defer user.Close()
	if !isTerminal(user) {
		t.Error("a terminal is not taken for one")
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) {
		t.Error("/dev/null is taken for a terminal")
	}
}
