package snapshot

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// statRecord is one record of table stat: what a file looked like when its
// content was read, so that a file that still looks so need not be read again.
// Format: kind u8, flags u8 (1 = racy), size u64, mtime i64, ctime i64, inode
// u64, content hash 32, attributes 32, little-endian. A directory has no content hash.
//
// A record is racy when the file could change once more without a change of
// its times: git's "racily clean" rule. A racy record proves nothing.
type statRecord struct {
	kind         merkle.Kind
	racy         bool
	size         uint64 // bytes
	mtime, ctime int64  // ns since 1970
	ino          uint64
	hash, attrs  merkle.Hash
}

const statSize = 2 + 4*8 + 2*merkle.HashSize

func (s *statRecord) encode() []byte {
	b := make([]byte, 0, statSize)
	flags := byte(0)
	if s.racy {
		flags = 1
	}
	b = append(b, byte(s.kind), flags)
	b = binary.LittleEndian.AppendUint64(b, s.size)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.mtime))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.ctime))
	b = binary.LittleEndian.AppendUint64(b, s.ino)
	return append(append(b, s.hash[:]...), s.attrs[:]...)
}

// decodeStat reads a record. ErrCorrupt for bytes that encode cannot have made.
func decodeStat(b []byte) (s statRecord, err error) {
	if len(b) != statSize || b[1] > 1 || b[0] < byte(merkle.KindFile) || b[0] > byte(merkle.KindSymlink) {
		return s, fmt.Errorf("%w: stat record", merkle.ErrCorrupt)
	}
	s.kind, s.racy = merkle.Kind(b[0]), b[1] == 1
	s.size = binary.LittleEndian.Uint64(b[2:])
	s.mtime = int64(binary.LittleEndian.Uint64(b[10:]))
	s.ctime = int64(binary.LittleEndian.Uint64(b[18:]))
	s.ino = binary.LittleEndian.Uint64(b[26:])
	copy(s.hash[:], b[34:])
	copy(s.attrs[:], b[66:])
	return s, nil
}

// proves says whether the record still holds for what lstat shows now. A ctime
// of 0 is not compared: linking a file into the store moves it.
func (s *statRecord) proves(st *fileStat) bool {
	return !s.racy && s.kind == st.kind && s.size == st.size && s.mtime == st.mtime &&
		(s.ctime == st.ctime || s.ctime == 0) && s.ino == st.ino
}

// newStatRecord describes a file whose content was read before st was taken,
// at the coarse clock's time now (ns): see slack for when it is racy.
func newStatRecord(st *fileStat, hash, attrs merkle.Hash, now, slack int64) statRecord {
	newest := max(st.mtime, st.ctime)
	if st.mtime%1e9 == 0 && st.ctime%1e9 == 0 {
		slack = max(slack, 2e9) // a file system that keeps whole seconds, or two
	}
	return statRecord{kind: st.kind, size: st.size, mtime: st.mtime, ctime: st.ctime, ino: st.ino,
		hash: hash, attrs: attrs, racy: newest >= now-slack}
}

// coarseNow is the clock that the kernel stamps files with, in ns.
func coarseNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &ts); err != nil {
		return 0 // every record is racy then
	}
	return ts.Nano()
}

// clockSlack is how far a file system's times may lie behind the local clock,
// in ns: two ticks on a local one, seconds where a server sets them.
func clockSlack(fd int) int64 {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return 3e9
	}
	switch st.Type {
	case unix.NFS_SUPER_MAGIC, unix.SMB_SUPER_MAGIC, unix.CIFS_SUPER_MAGIC, unix.SMB2_SUPER_MAGIC, unix.FUSE_SUPER_MAGIC:
		return 3e9
	case unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC:
		return 2e9
	}
	return 20e6
}
