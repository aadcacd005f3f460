package lmdbstore

import (
	"bytes"
	"os"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// trimEvery is the number of records read between two looks at the process's size.
const trimEvery = 1 << 13

// noteRead counts a record that was read. Pages of the map that a process has
// touched count as its memory although they are the kernel's page cache; a walk
// over a database of gigabytes would look like, and in a memory cgroup be
// charged as, a process of gigabytes. So now and then the map's pages are let
// go when they are many; the kernel keeps them cached and a later touch maps
// them again. Lent bytes stay valid throughout.
func (s *Store) noteRead() {
	if s.reads.Add(1)%trimEvery == 0 && mappedBytes() > s.limits.mapped {
		// A refusal changes nothing but the figure.
		_ = unix.Madvise(unsafe.Slice((*byte)(s.base), min(uint64(s.mapSize), s.end.Load())), unix.MADV_DONTNEED)
	}
}

// mappedBytes is the size of the file pages that the process maps, from the
// third field of /proc/self/statm (proc(5)); 0 when it cannot be told.
func mappedBytes() uint64 {
	var buf [128]byte
	fd, err := unix.Open("/proc/self/statm", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0
	}
	defer unix.Close(fd)
	n, err := unix.Read(fd, buf[:])
	if err != nil {
		return 0
	}
	fields := bytes.Fields(buf[:n])
	if len(fields) < 3 {
		return 0
	}
	pages, err := strconv.ParseUint(string(fields[2]), 10, 64)
	if err != nil {
		return 0
	}
	return pages * uint64(os.Getpagesize())
}
