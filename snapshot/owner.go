package snapshot

import (
	"encoding/binary"
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// packOwner is what names the database in a folder as the owner of its packs (docs/FORMAT.md,
// "Packs"): in it the database and its copies differ. Copies that share a contents folder share
// everything else, the ends of packs too, and each would cut off and write over what another
// appended. A compaction, which replaces the file, merely makes the next writer start a new pack.
// The file is not opened: closing it would drop the locks that LMDB holds on it.
func packOwner(db string) (owner [16]byte, err error) {
	path := filepath.Join(db, "data.mdb")
	var x unix.Statx_t
	for {
		err = unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_INO|unix.STATX_BTIME, &x)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return owner, &fs.PathError{Op: "statx", Path: path, Err: err}
	}
	binary.LittleEndian.PutUint64(owner[:], x.Ino)
	if x.Mask&unix.STATX_BTIME != 0 {
		binary.LittleEndian.PutUint64(owner[8:], uint64(x.Btime.Sec*1e9+int64(x.Btime.Nsec)))
	}
	return owner, nil
}
