package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

const messageHelp = `
# The message of the commit. Lines that start with '#' are left out;
# an empty message makes no commit.
`

// errEmptyMessage is a commit that its author gave up.
var errEmptyMessage = errors.New("no commit: the message is empty")

// message takes the message from -m, -F or an editor.
func (o commitFlags) message() (string, error) {
	var msg string
	var err error
	switch {
	case len(o.messages) > 0 && o.file != "":
		return "", usagef("either -m or -F, not both")
	case len(o.messages) > 0:
		msg = strings.Join(o.messages, "\n\n")
	case o.file != "":
		msg, err = readMessage(o.file)
	case isTerminal(os.Stdin) && isTerminal(os.Stdout):
		msg, err = editMessage()
	default:
		return "", usagef("a commit needs a message: -m MESSAGE or -F FILE")
	}
	if err != nil {
		return "", err
	}
	if msg = cleanMessage(msg); msg == "" {
		return "", errEmptyMessage
	}
	return msg, nil
}

func readMessage(file string) (string, error) {
	var b []byte
	var err error
	if file == "-" {
		b, err = io.ReadAll(os.Stdin)
	} else {
		b, err = os.ReadFile(file)
	}
	if err != nil {
		return "", fmt.Errorf("read message: %w", err)
	}
	return string(b), nil
}

// cleanMessage takes blanks off the ends of lines, empty lines off both ends,
// and makes several empty lines one, as git does.
func cleanMessage(s string) string {
	var out []string
	for _, line := range strings.Split(s, "\n") {
		line = strings.TrimRight(line, " \t\r")
		if line == "" && (len(out) == 0 || out[len(out)-1] == "") {
			continue
		}
		out = append(out, line)
	}
	return strings.TrimRight(strings.Join(out, "\n"), "\n")
}

// editMessage lets the user write the message in an editor.
func editMessage() (msg string, err error) {
	editor := os.Getenv("VISUAL")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		return "", usagef("a commit needs a message: -m MESSAGE, -F FILE, or an editor in $EDITOR")
	}
	dir, err := os.MkdirTemp("", "bole-commit-*")
	if err != nil {
		return "", fmt.Errorf("edit message: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "COMMIT_MESSAGE")
	if err := os.WriteFile(file, []byte(messageHelp), 0o600); err != nil {
		return "", fmt.Errorf("edit message: %w", err)
	}
	// The shell splits an editor with arguments, as git does.
	cmd := exec.Command("/bin/sh", "-c", editor+` "$@"`, editor, file)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("editor %s: %w", editor, err)
	}
	if msg, err = readMessage(file); err != nil {
		return "", err
	}
	var keep []string
	for _, line := range strings.Split(msg, "\n") {
		if !strings.HasPrefix(line, "#") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "\n"), nil
}
