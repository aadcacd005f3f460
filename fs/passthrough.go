package fs

import (
	"sync"
	"sync/atomic"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sync/singleflight"
	"golang.org/x/sys/unix"

	lru "github.com/hashicorp/golang-lru/v2"

	"bole/merkle"
)

// openFiles are the whole files that are open in passthrough mode. All opens of
// one inode must go the same way (the kernel answers EIO to a mixture), so what
// the first one decided holds until the last close.
type openFiles struct {
	mu      sync.Mutex
	open    map[uint64]*openFile // by node id
	refused atomic.Bool          // registering was not permitted: no more passthrough in this mount
}

type openFile struct {
	opens   int
	backing int32 // 0: read through the daemon
}

// tracked is the handle of an open that Release must count.
const tracked = 1

// openBacked decides, or repeats, how an inode is read and fills the reply. fd
// stays the caller's; the kernel takes a reference of its own.
func (f *filesystem) openBacked(id uint64, h merkle.Hash, fd int, out *fuse.OpenOut) {
	t := &f.files
	t.mu.Lock()
	o, ok := t.open[id]
	var errno unix.Errno
	if !ok {
		o = &openFile{}
		o.backing, errno = f.register(fd)
		if t.open == nil {
			t.open = map[uint64]*openFile{}
		}
		t.open[id] = o
	}
	o.opens++
	t.mu.Unlock()
	out.Fh = tracked
	if o.backing != 0 {
		// With KEEP_CACHE the kernel answers EIO to a passthrough open.
		out.OpenFlags, out.BackingID = fuse.FOPEN_PASSTHROUGH|fuse.FOPEN_NOFLUSH, o.backing
	}
	if errno != 0 {
		r, slot, _ := f.rows.get(id)
		f.log.Warnf("open %q: content %s is read through the daemon: passthrough: %v", f.path(r, slot), h, errno)
	}
}

// register hands a file to the kernel; id 0 when it will not have it.
func (f *filesystem) register(fd int) (int32, unix.Errno) {
	if f.files.refused.Load() {
		return 0, 0
	}
	id, errno := f.server.RegisterBackingFd(&fuse.BackingMap{Fd: int32(fd)})
	if errno == unix.EPERM {
		f.files.refused.Store(true)
	}
	if errno != 0 || id <= 0 {
		return 0, errno
	}
	return id, 0
}

// Release counts the close of a tracked open and lets the backing file go with the last one.
func (f *filesystem) Release(_ <-chan struct{}, in *fuse.ReleaseIn) {
	f.counters.add(opRelease)
	if in.Fh != tracked {
		return
	}
	t := &f.files
	t.mu.Lock()
	defer t.mu.Unlock()
	o, ok := t.open[in.NodeId]
	if !ok {
		broken("RELEASE of a file that is not open")
		return
	}
	if o.opens--; o.opens > 0 {
		return
	}
	delete(t.open, in.NodeId)
	if o.backing != 0 {
		f.server.UnregisterBackingFd(o.backing)
	}
}

// verified remembers whole files that were hashed and found good.
type verified struct {
	once  sync.Once
	good  *lru.Cache[merkle.Hash, struct{}]
	group singleflight.Group
}

// verifiedFiles bounds what is remembered; a file that drops out is hashed again.
const verifiedFiles = 1 << 16

// check hashes a whole file before it is served for the first time, where the
// mount was asked to.
func (f *filesystem) check(h merkle.Hash) error {
	if !f.verify {
		return nil
	}
	v := &f.verified
	v.once.Do(func() { v.good, _ = lru.New[merkle.Hash, struct{}](verifiedFiles) }) // fails for a size of 0 only
	if _, ok := v.good.Get(h); ok {
		return nil
	}
	_, err, _ := v.group.Do(string(h[:]), func() (any, error) {
		err := f.repo.VerifyContent(h)
		if err == nil {
			v.good.Add(h, struct{}{})
		}
		return nil, err
	})
	return err
}
