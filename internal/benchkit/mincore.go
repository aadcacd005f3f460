//go:build linux

package benchkit

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mincore tells for each page of a mapping whether it is in memory (mincore(2);
// package unix does not wrap it).
func mincore(mapping, resident []byte) error {
	_, _, errno := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(&mapping[0])), uintptr(len(mapping)), uintptr(unsafe.Pointer(&resident[0])))
	if errno != 0 {
		return errno
	}
	return nil
}
