package fs

import (
	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"
)

// Changes. The kernel refuses them on a read-only mount before it asks; these
// answers are for a mount that root has made writable by remounting it.

func (f *filesystem) refuse(op opcode) fuse.Status {
	f.counters.add(op)
	return fuse.EROFS
}

func (f *filesystem) SetAttr(<-chan struct{}, *fuse.SetAttrIn, *fuse.AttrOut) fuse.Status {
	return f.refuse(opSetAttr)
}

func (f *filesystem) Mknod(<-chan struct{}, *fuse.MknodIn, string, *fuse.EntryOut) fuse.Status {
	return f.refuse(opMknod)
}

func (f *filesystem) Mkdir(<-chan struct{}, *fuse.MkdirIn, string, *fuse.EntryOut) fuse.Status {
	return f.refuse(opMkdir)
}

func (f *filesystem) Unlink(<-chan struct{}, *fuse.InHeader, string) fuse.Status {
	return f.refuse(opUnlink)
}

func (f *filesystem) Rmdir(<-chan struct{}, *fuse.InHeader, string) fuse.Status {
	return f.refuse(opRmdir)
}

func (f *filesystem) Rename(<-chan struct{}, *fuse.RenameIn, string, string) fuse.Status {
	return f.refuse(opRename)
}

func (f *filesystem) Link(<-chan struct{}, *fuse.LinkIn, string, *fuse.EntryOut) fuse.Status {
	return f.refuse(opLink)
}

func (f *filesystem) Symlink(<-chan struct{}, *fuse.InHeader, string, string, *fuse.EntryOut) fuse.Status {
	return f.refuse(opSymlink)
}

func (f *filesystem) Create(<-chan struct{}, *fuse.CreateIn, string, *fuse.CreateOut) fuse.Status {
	return f.refuse(opCreate)
}

func (f *filesystem) Tmpfile(<-chan struct{}, *fuse.CreateIn, *fuse.CreateOut) fuse.Status {
	return f.refuse(opTmpfile)
}

func (f *filesystem) Write(<-chan struct{}, *fuse.WriteIn, []byte) (uint32, fuse.Status) {
	return 0, f.refuse(opWrite)
}

func (f *filesystem) Writev(<-chan struct{}, *fuse.WriteIn, [][]byte) (uint32, fuse.Status) {
	return 0, f.refuse(opWrite)
}

func (f *filesystem) Fallocate(<-chan struct{}, *fuse.FallocateIn) fuse.Status {
	return f.refuse(opFallocate)
}

func (f *filesystem) CopyFileRange(<-chan struct{}, *fuse.CopyFileRangeIn) (uint32, fuse.Status) {
	return 0, f.refuse(opCopyFileRange)
}

// Fsync has nothing to write.
func (f *filesystem) Fsync(<-chan struct{}, *fuse.FsyncIn) fuse.Status {
	f.counters.add(opFsync)
	return fuse.OK
}

// Access is answered by the kernel (default_permissions) and never asked.
func (f *filesystem) Access(_ <-chan struct{}, in *fuse.AccessIn) fuse.Status {
	f.counters.add(opAccess)
	if in.Mask&fuse.W_OK != 0 {
		return fuse.EROFS
	}
	return fuse.OK
}

// Locks are the kernel's own: they were not asked for, so these never come.

func (f *filesystem) GetLk(<-chan struct{}, *fuse.LkIn, *fuse.LkOut) fuse.Status {
	f.counters.add(opGetLk)
	return fuse.Status(unix.EOPNOTSUPP)
}

func (f *filesystem) SetLk(<-chan struct{}, *fuse.LkIn) fuse.Status {
	f.counters.add(opSetLk)
	return fuse.Status(unix.EOPNOTSUPP)
}

func (f *filesystem) SetLkw(<-chan struct{}, *fuse.LkIn) fuse.Status {
	f.counters.add(opSetLkw)
	return fuse.Status(unix.EOPNOTSUPP)
}

// Ioctl knows none, file flags (chattr) included.
func (f *filesystem) Ioctl(<-chan struct{}, *fuse.IoctlIn, []byte, *fuse.IoctlOut, []byte) fuse.Status {
	f.counters.add(opIoctl)
	return fuse.Status(unix.ENOTTY)
}

// Statx is asked for birth times alone. No commit holds any, and ENOSYS tells
// the kernel so once for the whole mount, instead of a request for each file.
func (f *filesystem) Statx(<-chan struct{}, *fuse.StatxIn, *fuse.StatxOut) fuse.Status {
	f.counters.add(opStatx)
	return fuse.ENOSYS
}

const blockSize = 4096

// StatFs shows the size of the mounted tree on a disk that is full.
func (f *filesystem) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	f.counters.add(opStatFs)
	*out = fuse.StatfsOut{
		Bsize:   blockSize,
		Frsize:  blockSize,
		Blocks:  max(1, f.root.Size/blockSize+min(1, f.root.Size%blockSize)),
		Files:   f.root.Files + f.root.Dirs + 1,
		NameLen: 255,
	}
	return fuse.OK
}
