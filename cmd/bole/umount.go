package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/moby/sys/mountinfo"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"bole/fs"
	"bole/snapshot"
)

func newUmountCmd(a *app) *cobra.Command {
	var lazy bool
	cmd := &cobra.Command{
		Use:   "umount MOUNTPOINT…",
		Short: "end a mount",
		Long: `Ends mounts and waits until their processes have ended. A mount that is in use is
refused, naming who uses it, and goes on being served; --lazy takes it out of the tree
of folders at once and ends it when its last user has gone. A mount whose process has
died is always removed.`,
		Example: `  bole umount ~/view
  bole umount --lazy ~/yesterday`,
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, args []string) error {
			var errs []error
			for _, arg := range args {
				errs = append(errs, a.umount(arg, lazy))
			}
			return errors.Join(errs...)
		},
	}
	cmd.Flags().BoolVarP(&lazy, "lazy", "l", false, "also when in use")
	return cmd
}

func (a *app) umount(arg string, lazy bool) error {
	path, err := mountPath(arg)
	if err != nil {
		return err
	}
	m, err := mountAt(path)
	if err != nil {
		return err
	}
	switch {
	case m == nil:
		return fmt.Errorf("%s is not a mount", path)
	case m.FSType != fsType:
		return fmt.Errorf("%s is a mount of type %s, not one of bole's", path, m.FSType)
	}
	lease, served := leaseOf(m)
	if !served && fs.Dead(path) {
		return removeDead(m)
	}
	if err := detach(path, lazy); errors.Is(err, unix.EBUSY) {
		holders := findHolders(path)
		for _, h := range holders {
			a.warnf("%s", h)
		}
		if len(holders) == 0 && os.Geteuid() != 0 {
			a.warnf("none of your own processes holds it; root sees those of others")
		}
		return fmt.Errorf("%s is in use and goes on being served", path)
	} else if err != nil {
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	if served && !lazy {
		return waitEnded(lease)
	}
	return nil
}

// removeDead takes a mount off whose process is gone, and what that left behind.
func removeDead(m *mountinfo.Info) error {
	if err := fs.Detach(m.Mountpoint); err != nil {
		return err
	}
	if root := sourceRoot(m.Source); root != "" {
		if _, err := snapshot.LeasesOf(root); err != nil {
			return err // it clears stale leases away
		}
	}
	return nil
}

// detach unmounts, as root or by the helper that lets users end their own mounts.
func detach(path string, lazy bool) error {
	flags, helper := unix.UMOUNT_NOFOLLOW, "-u"
	if lazy {
		flags, helper = flags|unix.MNT_DETACH, "-uz"
	}
	err := unix.Unmount(path, flags)
	if !errors.Is(err, unix.EPERM) {
		return err
	}
	out, err := exec.Command("fusermount3", helper, "--", path).CombinedOutput()
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(string(out))
	if strings.Contains(text, "busy") {
		return unix.EBUSY
	}
	return fmt.Errorf("fusermount3: %w: %s", err, escapeLine(text))
}

// endPatience is how long a daemon may take to end after its mount is gone.
const endPatience = 20 * time.Second

// waitEnded waits for the lease, which a daemon lets go of last of all.
func waitEnded(l snapshot.LeaseInfo) error {
	ctx, cancel := context.WithTimeout(context.Background(), endPatience)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		leases, err := snapshot.LeasesOf(l.Repository)
		if err != nil {
			if _, statErr := os.Stat(l.Repository); statErr != nil {
				return nil // the whole repository is gone
			}
			return err
		}
		held := false
		for _, other := range leases {
			held = held || other.ID == l.ID
		}
		if !held {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the mount is gone, but its process %d has not ended within %v; its log is %s", l.PID, endPatience, l.Log)
		case <-time.After(pause):
		}
	}
}
