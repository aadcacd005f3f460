// Command bole puts trees of files under version control and mounts any commit
// of them as a folder.
//
// This package owns the command line: flags, what is printed, progress, exit
// codes, and the life of the process that serves a mount (its start in the
// background, its log, the socket on which it answers). It decides nothing
// about a repository: whatever another program would want lies in package
// snapshot, and requests of the kernel are answered in package fs.
//
// Each subcommand is one file with one function new<Name>Cmd. Commands write
// results to app.out (standard output, flushed once at the end) and everything
// else to standard error. They return errors; only run prints them.
//
// Locks: the control server and the bounded log each have one mutex, a leaf.
// Lifetimes: a repository is opened by a command and closed before it ends;
// the background daemon opens it after its own start, never before a fork.
package main

import (
	"errors"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func main() {
	// A write beyond the limit on file sizes (ulimit -f) shall be an error that names the file.
	signal.Ignore(unix.SIGXFSZ)
	// Commands are short and their memory is bounded by design: fewer
	// collections. The process that serves a mount sets its own.
	debug.SetGCPercent(300)
	os.Exit(run(os.Args[1:]))
}

// run executes one command line and returns the exit code: 0 done, 1 the answer
// is no or something is wrong, 2 wrong use, 128+N ended by signal N.
func run(args []string) int {
	a := newApp()
	root := newRootCmd(a)
	root.SetArgs(args)
	cmd, err := root.ExecuteC()
	a.stopProgress()
	if flushErr := a.out.Flush(); flushErr != nil && err == nil {
		err = &outputError{flushErr}
	}
	if err == nil {
		return 0
	}
	if code, ok := a.runAgain(err); ok {
		return code
	}
	return a.report(cmd, err)
}

func newRootCmd(a *app) *cobra.Command {
	root := &cobra.Command{
		Use:     "bole",
		Version: version,
		Short:   "version control for large trees of files, with every commit mountable",
		Long: `Bole keeps trees of files under version control and shows any commit of them as a
folder, without a checkout.

Revisions: a branch, HEAD, the first 4 or more digits of a commit's id, REV~N for
the commit N steps earlier, and REV:PATH for a path inside a commit.

Exit codes: 0 done; 1 the answer is no, or something is wrong; 2 wrong use.`,
		Example: `  bole init photos
  cd photos
  bole add .
  bole commit -m "first photos"
  mkdir ~/view
  bole mount HEAD ~/view
  ls ~/view
  bole umount ~/view`,
		SuggestionsMinimumDistance: 2,
		SilenceErrors:              true,
		SilenceUsage:               true,
		Args:                       cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				cmd.SetOut(os.Stderr)
				return errors.Join(cmd.Help(), errUsageShown)
			}
			return unknownCommand(cmd, args[0])
		},
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.enterDirs() },
	}
	root.PersistentFlags().StringArrayVarP(&a.dirs, "directory", "C", nil, "run as if started in `DIR`")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return &usageError{err} })
	root.SetHelpCommand(newHelpCmd())
	root.SetVersionTemplate("bole {{.Version}}\n")
	addCommands(a, root)
	return root
}

// addCommands adds ours and, fitted to them, cobra's own.
func addCommands(a *app, root *cobra.Command) {
	root.AddGroup(groups...)
	root.AddCommand(commands(a)...)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	if c, _, err := root.Find([]string{"completion"}); err == nil {
		fixCompletionCmd(c)
	}
}

// fixCompletionCmd makes a missing or unknown shell wrong use; cobra shows the help.
func fixCompletionCmd(c *cobra.Command) {
	c.GroupID = "begin"
	c.Short = "make a completion script for a shell"
	c.Example = "  bole completion bash\n  bole completion zsh"
	c.Args = cobra.ArbitraryArgs
	for _, shell := range c.Commands() {
		shell.Args = noArgs
	}
	c.RunE = func(*cobra.Command, []string) error {
		return usagef("completion needs the name of a shell: bash, fish, powershell or zsh")
	}
}

// newHelpCmd is cobra's help command with wrong use told apart.
func newHelpCmd() *cobra.Command {
	return &cobra.Command{
		Use:     "help [COMMAND]",
		Short:   "show the help of a command",
		Long:    "Shows the help of a command, as COMMAND --help does.",
		Example: "  bole help commit",
		RunE: func(cmd *cobra.Command, args []string) error {
			target, rest, err := cmd.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return usagef("there is no command %q", args[len(args)-max(len(rest), 1)])
			}
			return target.Help()
		},
	}
}

func unknownCommand(root *cobra.Command, name string) error {
	if near := root.SuggestionsFor(name); len(near) > 0 {
		return usagef("there is no command %q; did you mean %s?", name, near[0])
	}
	return usagef("there is no command %q", name)
}
