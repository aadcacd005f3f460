package fs

import "sync/atomic"

// opcode counts requests of one kind. Names are those of the protocol.
type opcode int

const (
	opInit opcode = iota
	opLookup
	opForget
	opGetAttr
	opSetAttr
	opReadlink
	opSymlink
	opMknod
	opMkdir
	opUnlink
	opRmdir
	opRename
	opLink
	opOpen
	opRead
	opWrite
	opStatFs
	opRelease
	opFsync
	opSetXAttr
	opGetXAttr
	opListXAttr
	opRemoveXAttr
	opFlush
	opOpenDir
	opReadDir
	opReadDirPlus
	opReleaseDir
	opFsyncDir
	opGetLk
	opSetLk
	opSetLkw
	opAccess
	opCreate
	opTmpfile
	opIoctl
	opFallocate
	opLseek
	opCopyFileRange
	opStatx
	opCount
)

var opNames = [opCount]string{
	"INIT", "LOOKUP", "FORGET", "GETATTR", "SETATTR", "READLINK", "SYMLINK", "MKNOD", "MKDIR", "UNLINK", "RMDIR",
	"RENAME", "LINK", "OPEN", "READ", "WRITE", "STATFS", "RELEASE", "FSYNC", "SETXATTR", "GETXATTR", "LISTXATTR",
	"REMOVEXATTR", "FLUSH", "OPENDIR", "READDIR", "READDIRPLUS", "RELEASEDIR", "FSYNCDIR", "GETLK", "SETLK", "SETLKW",
	"ACCESS", "CREATE", "TMPFILE", "IOCTL", "FALLOCATE", "LSEEK", "COPY_FILE_RANGE", "STATX",
}

type counters struct {
	requests    [opCount]atomic.Uint64
	bytesRead   atomic.Uint64
	pushed      atomic.Uint64
	pushedBytes atomic.Uint64
}

func (c *counters) add(op opcode) { c.requests[op].Add(1) }

// Stats are counts since the mount began.
type Stats struct {
	// Requests by the protocol's names; kinds that never came are left out.
	// FORGET counts ids, however many of them one message carries.
	Requests map[string]uint64
	// BytesRead went to the kernel in answer to READ.
	BytesRead uint64
	// Pushed contents and their bytes went to the kernel unasked.
	Pushed, PushedBytes uint64
	// Rows are the directories that the kernel holds, or something in them.
	Rows int
}

func (f *filesystem) stats() Stats {
	s := Stats{
		Requests:    map[string]uint64{},
		BytesRead:   f.counters.bytesRead.Load(),
		Pushed:      f.counters.pushed.Load(),
		PushedBytes: f.counters.pushedBytes.Load(),
		Rows:        f.rows.len(),
	}
	for op := range f.counters.requests {
		if n := f.counters.requests[op].Load(); n > 0 {
			s.Requests[opNames[op]] = n
		}
	}
	return s
}
