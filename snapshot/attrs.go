package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// maxAttr is the largest value that is versioned, in bytes.
const maxAttr = 64 << 10

// droppedAttrs are attributes that describe a disk or a download rather than the data.
var droppedAttrs = map[string]bool{
	"user.DOSATTRIB": true, "user.com.apple.quarantine": true, "user.com.apple.provenance": true,
	"user.com.apple.lastuseddate#PS": true, "user.com.apple.macl": true,
}

func keptAttr(name string) bool {
	return strings.HasPrefix(name, "user.") && name != "user." && !strings.HasPrefix(name, "user.bole.") && !droppedAttrs[name]
}

// readAttrs reads the user.* attributes of an open file or directory, sorted.
// A file system without attributes has none.
func readAttrs(fd int) ([]merkle.Attr, error) {
	names, err := listAttrs(fd)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	var attrs []merkle.Attr
	for _, name := range names {
		v, err := attrValue(fd, name)
		if errors.Is(err, unix.ENODATA) {
			continue // went away in between
		}
		if err != nil {
			return nil, fmt.Errorf("read attribute %s: %w", name, err)
		}
		if len(v) > maxAttr {
			return nil, fmt.Errorf("attribute %s has %d bytes; at most %d are versioned", name, len(v), maxAttr)
		}
		attrs = append(attrs, merkle.Attr{Name: name, Value: v})
	}
	sort.Slice(attrs, func(i, j int) bool { return attrs[i].Name < attrs[j].Name })
	return attrs, nil
}

func listAttrs(fd int) ([]string, error) {
	var buf [1024]byte
	b := buf[:]
	for {
		n, err := unix.Flistxattr(fd, b)
		switch {
		case err == nil:
			var names []string
			for _, name := range bytes.Split(b[:n], []byte{0}) {
				if keptAttr(string(name)) {
					names = append(names, string(name))
				}
			}
			return names, nil
		case errors.Is(err, unix.EOPNOTSUPP):
			return nil, nil
		case !errors.Is(err, unix.ERANGE):
			return nil, fmt.Errorf("list attributes: %w", err)
		}
		b = make([]byte, 64<<10) // the kernel's limit, XATTR_LIST_MAX
	}
}

func attrValue(fd int, name string) ([]byte, error) {
	for {
		n, err := unix.Fgetxattr(fd, name, nil)
		if err != nil {
			return nil, err
		}
		b := make([]byte, n)
		if n == 0 {
			return b, nil
		}
		if n, err = unix.Fgetxattr(fd, name, b); errors.Is(err, unix.ERANGE) {
			continue // grew in between
		}
		return b[:max(n, 0)], err
	}
}

// encodeFileAttrs is the Attrs node of an open file: a zero hash and no bytes when it has none.
func encodeFileAttrs(fd int) (merkle.Hash, []byte, error) {
	attrs, err := readAttrs(fd)
	if err != nil || len(attrs) == 0 {
		return merkle.Hash{}, nil, err
	}
	b, err := merkle.EncodeAttrs(attrs)
	if err != nil {
		return merkle.Hash{}, nil, fmt.Errorf("encode attributes: %w", err)
	}
	return merkle.NodeHash(b), b, nil
}

// writeAttrs makes the user.* attributes of an open file those given; it
// returns the names of those that the disk would not take.
func writeAttrs(fd int, attrs []merkle.Attr) (refused []string, err error) {
	want := make(map[string]bool, len(attrs))
	for _, a := range attrs {
		want[a.Name] = true
		switch err := unix.Fsetxattr(fd, a.Name, a.Value, 0); {
		case err == nil:
		case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.E2BIG), errors.Is(err, unix.EOPNOTSUPP),
			errors.Is(err, unix.ERANGE), errors.Is(err, unix.EDQUOT):
			refused = append(refused, a.Name)
		default:
			return refused, fmt.Errorf("set attribute %s: %w", a.Name, err)
		}
	}
	have, err := listAttrs(fd)
	if err != nil {
		return refused, err
	}
	for _, name := range have {
		if !want[name] {
			if err := unix.Fremovexattr(fd, name); err != nil && !errors.Is(err, unix.ENODATA) {
				return refused, fmt.Errorf("remove attribute %s: %w", name, err)
			}
		}
	}
	return refused, nil
}
