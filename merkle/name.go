package merkle

import (
	"bytes"
	"fmt"
)

// MaxName is the length limit of an entry's name in bytes, that of Linux.
const MaxName = 255

// CheckName says whether name can stand in a tree: 1 to 255 bytes, without NUL
// and '/', not "." or "..", and not ".bole" in any letter case. Any other
// bytes are allowed; they need not be UTF-8. The error matches ErrBadName.
func CheckName(name []byte) error {
	if reason := nameFault(name); reason != "" {
		return fmt.Errorf("%.300q: %w: %s", name, ErrBadName, reason)
	}
	return nil
}

// nameFault returns what is wrong with name, or "".
func nameFault(name []byte) string {
	switch {
	case len(name) == 0:
		return "it is empty"
	case len(name) > MaxName:
		return "it is longer than 255 bytes"
	case name[0] == '.' && reservedName(name):
		return "it is reserved"
	case bytes.IndexByte(name, '/') >= 0:
		return "it has a slash"
	case bytes.IndexByte(name, 0) >= 0:
		return "it has a NUL byte"
	}
	return ""
}

// reservedName knows the names that begin with a dot and mean something else
// than an entry: the directory itself, its parent, and the repository.
func reservedName(name []byte) bool {
	switch len(name) {
	case 1:
		return true
	case 2:
		return name[1] == '.'
	case 5:
		return name[1]|0x20 == 'b' && name[2]|0x20 == 'o' && name[3]|0x20 == 'l' && name[4]|0x20 == 'e'
	}
	return false
}

// ComparePaths orders two slash-separated paths component by component, and
// components by their bytes, so that whatever lies below one directory is
// contiguous and follows it: "a" < "a/b" < "a!" < "b". It returns -1, 0 or 1.
func ComparePaths(a, b []byte) int {
	n := min(len(a), len(b))
	for i := 0; i < n; i++ {
		x, y := a[i], b[i]
		if x == y {
			continue
		}
		// A slash ends a component, and the shorter component is smaller.
		if x == '/' || (x < y && y != '/') {
			return -1
		}
		return 1
	}
	switch {
	case len(a) < len(b):
		return -1
	case len(a) > len(b):
		return 1
	}
	return 0
}
