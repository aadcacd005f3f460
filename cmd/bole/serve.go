package main

import (
	"errors"
	"os"
	"os/signal"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"bole/fs"
	"bole/snapshot"
)

// mountDaemon is a mount that this process serves.
type mountDaemon struct {
	info    snapshot.LeaseInfo
	log     *daemonLog
	lease   *snapshot.Lease
	control *controlServer
	srv     *fs.Server
	stop    chan struct{} // asked for over the socket
}

// smallMemory keeps the daemon's heap near what it needs: a mount is one of many.
func smallMemory() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(50)
	}
}

// serveMount mounts and serves until the mount is gone.
func (a *app) serveMount(o mountFlags, root, rev, mountpoint string) error {
	a.openReadyPipe(o.readyFD)
	smallMemory()
	d := &mountDaemon{stop: make(chan struct{}, 1)}
	err := a.withRepoAt(root, func(r *snapshot.Repo) error {
		at, err := resolve(r, rev)
		if err != nil {
			return err
		}
		d.info = snapshot.LeaseInfo{ID: snapshot.NewLeaseID(), Kind: "mount", PID: os.Getpid(), Started: time.Now().UnixNano(),
			Repository: r.Root(), Mountpoint: mountpoint, Revision: rev, Path: at.Path, Commits: []string{at.Commit.String()}}
		if err := d.prepare(r, a.readyPipe != nil); err != nil {
			return err
		}
		signals := make(chan os.Signal, 4)
		signal.Notify(signals, unix.SIGINT, unix.SIGTERM)
		signal.Ignore(unix.SIGHUP)
		if err := d.mount(r, o, at); err != nil {
			return err
		}
		if err := errors.Join(d.log.capture(), a.tellReady(readyLine(at, rev, mountpoint, d.info.IO))); err != nil {
			return errors.Join(err, d.srv.Unmount())
		}
		d.wait(signals)
		return nil
	})
	// The lease goes last: whoever waits for it may then take the repository away.
	return errors.Join(err, d.close(err != nil && d.srv != nil))
}

// prepare makes what must be there before the mount: the log, the socket, and
// the lease, because what that names is in use from now on.
func (d *mountDaemon) prepare(r *snapshot.Repo, background bool) (err error) {
	if d.log, err = openDaemonLog(r, &d.info, background); err != nil {
		return err
	}
	if d.control, err = listenControl(r, &d.info); err != nil {
		return err
	}
	d.lease, err = r.Lease(d.info)
	return err
}

// close takes back what prepare made, however far it came.
func (d *mountDaemon) close(keepLog bool) error {
	var errs []error
	if d.control != nil {
		errs = append(errs, d.control.close())
	}
	if d.log != nil {
		errs = append(errs, d.log.close(keepLog))
	}
	if d.lease != nil {
		errs = append(errs, d.lease.Close())
	}
	return errors.Join(errs...)
}

func (d *mountDaemon) mount(r *snapshot.Repo, o mountFlags, at snapshot.Revision) (err error) {
	release, err := lockPlace(d.info.Mountpoint)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if err := notMounted(d.info.Mountpoint); err != nil {
		return err
	}
	unix.Umask(0) // modes are the tree's business
	d.srv, err = fs.Mount(r, fs.Options{Mountpoint: d.info.Mountpoint, Commit: at.Commit, Path: at.Path, IO: o.mode,
		AllowOther: o.allowOther, Verify: o.verify, FSName: sourceName(r.Root(), d.info.Revision), Log: d.log.Logger})
	if err != nil {
		return err
	}
	d.info.IO = d.srv.IO().String()
	if err := d.lease.Update(d.info); err != nil {
		return errors.Join(err, d.srv.Unmount())
	}
	go d.control.serve(d)
	d.log.Infof("mounted %s of %s at %s, io %s", d.info.Commits[0], d.info.Repository, d.info.Mountpoint, d.info.IO)
	return nil
}

// wait returns when the mount is gone. A signal unmounts; where the mount is
// busy it goes on being served, and the second signal detaches it.
func (d *mountDaemon) wait(signals <-chan os.Signal) {
	gone := make(chan struct{})
	go func() {
		d.srv.Wait()
		close(gone)
	}()
	for tried := false; ; tried = true {
		select {
		case <-gone:
			d.log.Infof("unmounted %s", d.info.Mountpoint)
			return
		case <-d.stop:
		case <-signals:
		}
		if err := d.end(tried); err == nil && tried {
			select {
			case <-gone: // nobody held it after all
			case <-time.After(time.Second):
				d.log.Warnf("detached %s while it was in use", d.info.Mountpoint)
			}
			return
		}
	}
}

func (d *mountDaemon) end(force bool) error {
	if force {
		err := fs.Detach(d.info.Mountpoint)
		if err != nil {
			d.log.Errorf("detach: %v", err)
		}
		return err
	}
	err := d.srv.Unmount()
	if errors.Is(err, fs.ErrBusy) {
		who := describeHolders(findHolders(d.info.Mountpoint))
		d.log.Warnf("%s is in use%s; it goes on being served, a second signal detaches it", d.info.Mountpoint, who)
	} else if err != nil {
		d.log.Errorf("%v", err)
	}
	return err
}

// describeHolders is ": by process 12 (sleep), …", "" when none was found.
func describeHolders(list []holder) string {
	if len(list) == 0 {
		return ""
	}
	text := ": by "
	for i, h := range list {
		if i > 0 {
			text += ", "
		}
		text += h.String()
	}
	return text
}
