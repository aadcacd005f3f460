package fs

import (
	"errors"
	"fmt"
	"log"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/hanwen/go-fuse/v2/fuse"
	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"bole/merkle"
	"bole/snapshot"
)

// ErrBusy is returned by Unmount while something in the mount is open.
var ErrBusy = errors.New("mount is in use")

// ErrNoPassthrough is returned by Mount where passthrough was asked for and cannot be had.
var ErrNoPassthrough = errors.New("io mode passthrough is not available")

// Server is one mount that is being served.
type Server struct {
	fs         *filesystem
	fuse       *fuse.Server
	mountpoint string
	done       chan struct{}
}

// Mount shows a directory of a commit at an existing directory and serves it
// until it is unmounted. When Mount returns, the mount can be used. repo must
// stay open until Wait returns.
func Mount(repo *snapshot.Repo, o Options) (*Server, error) {
	f, err := newFilesystem(repo, o)
	if err != nil {
		return nil, err
	}
	dir, err := prepareMountpoint(repo, o)
	if err != nil {
		return nil, err
	}
	kernel, err := runningKernel()
	if err != nil {
		return nil, err
	}
	if f.io, err = chooseIO(o, kernel, mayPassthrough(), &f.root); err != nil {
		return nil, err
	}
	srv, err := fuse.NewServer(f, dir, f.mountOptions(o))
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", dir, err)
	}
	s := &Server{fs: f, fuse: srv, mountpoint: dir, done: make(chan struct{})}
	spareProcessors()
	settled := f.settle(o, kernel, srv.KernelSettings())
	go s.serve()
	if err := errors.Join(settled, srv.WaitMount()); err != nil {
		return nil, errors.Join(fmt.Errorf("mount %s: %w", dir, err), s.Unmount())
	}
	if err := s.afterMount(); err != nil {
		f.log.Warnf("mount %s: %v", dir, err)
	}
	return s, nil
}

// spareProcessors lets the Go scheduler run more threads at a time than there
// are CPUs, once go-fuse has chosen its number of readers by these. A reader that
// waits in the kernel for a request keeps its place in the scheduler. When all
// places are kept so, the runtime's monitor takes them back every 20 us and
// starts threads that find nothing to do: on two CPUs this was half of what a
// request cost (docs/DESIGN.md). Who sets GOMAXPROCS has decided otherwise.
func spareProcessors() {
	if os.Getenv("GOMAXPROCS") == "" {
		raised.Do(func() { runtime.GOMAXPROCS(runtime.GOMAXPROCS(0) + spare) })
	}
}

const spare = 8

var raised sync.Once

func newFilesystem(repo *snapshot.Repo, o Options) (*filesystem, error) {
	root, err := repo.Lookup(o.Commit, o.Path)
	if err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	if root.Kind != merkle.KindDir {
		return nil, fmt.Errorf("mount: %s: %w", o.Path, unix.ENOTDIR)
	}
	f := &filesystem{repo: repo, commit: o.Commit, root: root, verify: o.Verify, log: o.logger(), rows: newRows(root.Hash)}
	f.push = newPusher(f)
	f.owner = fuse.Owner{Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())}
	f.counters.add(opInit)
	return f, nil
}

// averageFile is the size in bytes from which passthrough pays: what it saves
// grows with the bytes, what it costs (an OPEN and a RELEASE) with the files.
const averageFile = 1 << 20

// chooseIO takes the mode that was asked for, or the best one there is.
func chooseIO(o Options, k release, privileged bool, root *merkle.Entry) (IO, error) {
	can := privileged && k.passthroughCapable()
	switch {
	case o.IO == IOPassthrough && !can:
		return 0, fmt.Errorf("%w: it needs CAP_SYS_ADMIN and Linux 6.9", ErrNoPassthrough)
	case o.IO != IOAuto:
		return o.IO, nil
	case can && root.Files > 0 && root.Size/root.Files >= averageFile:
		return IOPassthrough, nil
	}
	return withoutPassthrough(o, k), nil
}

// withoutPassthrough is auto's second choice. Verifying needs the OPEN that stateless mode never sees.
func withoutPassthrough(o Options, k release) IO {
	if !o.Verify && k.statelessSafe() {
		return IOStateless
	}
	return IOHandles
}

// settle fits the mode to what the kernel offered at INIT.
func (f *filesystem) settle(o Options, k release, in *fuse.InitIn) error {
	offered := in.Flags64()
	f.noDirs = offered&fuse.CAP_NO_OPENDIR_SUPPORT != 0
	if f.io == IOPassthrough && offered&fuse.CAP_PASSTHROUGH == 0 {
		if o.IO == IOPassthrough {
			return fmt.Errorf("%w: the kernel was built without it", ErrNoPassthrough)
		}
		f.io = withoutPassthrough(o, k)
	}
	if f.io == IOStateless && offered&fuse.CAP_NO_OPEN_SUPPORT == 0 {
		f.io = IOHandles
	}
	return nil
}

func (f *filesystem) mountOptions(o Options) *fuse.MountOptions {
	m := &fuse.MountOptions{
		// As options and as flags: fusermount3 sees the options alone, and
		// flags replace the ones that go-fuse would set by itself.
		Options:                  []string{"ro", "nosuid", "nodev", "default_permissions"},
		DirectMount:              true,
		DirectMountFlags:         unix.MS_RDONLY | unix.MS_NOSUID | unix.MS_NODEV,
		AllowOther:               o.AllowOther,
		FsName:                   o.FSName,
		Name:                     "bole",
		MaxWrite:                 1 << 20,
		MaxBackground:            64,
		DisableSplice:            true, // contents are in memory, where they were verified
		EnableSymlinkCaching:     true,
		ExplicitDataCacheControl: true,
		ExtraCapabilities:        fuse.CAP_READDIRPLUS_AUTO | fuse.CAP_NO_EXPORT_SUPPORT,
		PanicHandler:             f.panicked,
		Logger:                   log.New(libraryLog{f.log}, "", 0),
	}
	if f.io == IOPassthrough {
		m.MaxStackDepth = stackDepth(f.repo.ContentsDir())
	} else {
		// Would only keep others from stacking an overlayfs on this mount.
		m.DisabledCapabilities = fuse.CAP_PASSTHROUGH
	}
	return m
}

// stackDepth is how many file systems may lie on top of one another below the
// mount: an overlayfs is one already.
func stackDepth(contents string) int {
	var st unix.Statfs_t
	if unix.Statfs(contents, &st) == nil && st.Type == unix.OVERLAYFS_SUPER_MAGIC {
		return 2
	}
	return 1
}

// libraryLog takes what go-fuse wants to say.
type libraryLog struct{ log *logrus.Logger }

func (l libraryLog) Write(b []byte) (int, error) {
	l.log.Warn("fuse: " + strings.TrimSpace(string(b)))
	return len(b), nil
}

// panicked is the last resort for a fault of ours: one request fails, the mount goes on.
func (f *filesystem) panicked(v any) fuse.Status {
	f.log.Errorf("request failed: %v\n%s", v, stack())
	return fuse.EIO
}

func (s *Server) serve() {
	defer close(s.done)
	s.fuse.Serve()
}

// Wait returns when the mount is gone and the last request is answered.
func (s *Server) Wait() { <-s.done }

// IO is the mode in use, never IOAuto.
func (s *Server) IO() IO { return s.fs.io }

// Mountpoint is the absolute path of the mount.
func (s *Server) Mountpoint() string { return s.mountpoint }

// Stats are the counts since the mount began.
func (s *Server) Stats() Stats { return s.fs.stats() }

// Unmount ends the mount. ErrBusy when something in it is open; it then goes on
// being served.
func (s *Server) Unmount() error {
	err := unix.Unmount(s.mountpoint, 0)
	if errors.Is(err, unix.EPERM) {
		err = fusermount("-u", s.mountpoint)
	}
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("unmount %s: %w", s.mountpoint, ErrBusy)
	}
	if err != nil {
		return fmt.Errorf("unmount %s: %w", s.mountpoint, err)
	}
	return nil
}
