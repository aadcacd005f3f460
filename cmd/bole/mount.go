package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sys/unix"

	"bole/fs"
)

type mountFlags struct {
	foreground, allowOther, verify bool
	io                             string
	mode                           fs.IO
	readyFD                        int // of a background mount, 0: none
}

func newMountCmd(a *app) *cobra.Command {
	var o mountFlags
	cmd := &cobra.Command{
		Use:   "mount [REV[:PATH]] DIR",
		Short: "show a commit as a folder",
		Long: `Shows a commit (by default HEAD), or one of its folders, at the existing folder DIR,
read-only. The mount stays on the commit that REV names now. A process in the background
serves it; the mount can be used when the command returns. 'bole umount DIR' ends it.

--io says how the kernel reads files: stateless (it opens files by itself and keeps their
pages), passthrough (it reads large files straight from the disk; root only), handles (it
asks at each open), or auto, which takes the best one for the tree.

--verify reads and hashes each large file before its first open succeeds; small ones are
always verified. --allow-other lets other users in.`,
		Example: `  bole mount ~/view
  bole mount HEAD~1 ~/yesterday
  bole mount main:2024/trip ~/trip`,
		Args: usage(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.mode, err = fs.ParseIO(o.io); err != nil {
				return &usageError{err}
			}
			rev := "HEAD"
			if len(args) == 2 {
				rev = args[0]
			}
			return a.mount(o, rev, args[len(args)-1])
		},
	}
	o.addTo(cmd.Flags())
	return cmd
}

func (o *mountFlags) addTo(f *pflag.FlagSet) {
	f.BoolVar(&o.foreground, "foreground", false, "serve until interrupted or unmounted")
	f.BoolVar(&o.allowOther, "allow-other", false, "let other users in")
	f.BoolVar(&o.verify, "verify", false, "hash large files before their first open")
	f.StringVar(&o.io, "io", "auto", "auto, stateless, passthrough or handles")
	f.IntVar(&o.readyFD, "ready-fd", 0, "")
	if err := f.MarkHidden("ready-fd"); err != nil {
		panic(err) // the flag is defined one line above
	}
}

func (a *app) mount(o mountFlags, rev, dir string) error {
	root, err := a.findRoot()
	if err != nil {
		return err
	}
	mountpoint, err := mountPath(dir)
	if err != nil {
		return err
	}
	if rev == "" {
		return usagef("an empty revision names nothing; the newest commit is HEAD")
	}
	if err := notMounted(mountpoint); err != nil {
		return err
	}
	if o.foreground {
		return a.serveMount(o, root, rev, mountpoint)
	}
	return a.startDaemon(o, root, rev, mountpoint)
}

// lockPlace keeps others from mounting at a folder between the look at what
// stands there and the mount itself. It waits for a mount that is just being
// made, which takes milliseconds. A folder that cannot be opened (a dead mount,
// or one that its owner may not read) is not locked; the kernel then stacks
// what comes at once.
func lockPlace(mountpoint string) (release func() error, err error) {
	fd, err := unix.Open(mountpoint, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return func() error { return nil }, nil
	}
	if err := unix.Flock(fd, unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", mountpoint, err), unix.Close(fd))
	}
	return func() error { return unix.Close(fd) }, nil
}

// notMounted refuses a place where a living mount of ours stands. A dead one is
// replaced by the new mount.
func notMounted(mountpoint string) error {
	m, err := mountAt(mountpoint)
	if err != nil || m == nil || m.FSType != fsType || fs.Dead(mountpoint) {
		return err
	}
	return fmt.Errorf("%s is mounted already, from %s; 'bole umount' ends that", mountpoint, m.Source)
}
