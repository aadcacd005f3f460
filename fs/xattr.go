package fs

import (
	"strings"

	"github.com/hanwen/go-fuse/v2/fuse"
	"golang.org/x/sys/unix"

	"bole/merkle"
)

// Attributes that every file and directory answers to and none lists, so that
// no copy carries them away.
const (
	virtualPrefix = "user.bole."
	attrHash      = "user.bole.hash"     // hex name of the content or of the Dir node
	attrRevision  = "user.bole.revision" // hex name of the mounted commit
)

// GetXAttr answers the virtual attributes and the stored ones.
func (f *filesystem) GetXAttr(_ <-chan struct{}, h *fuse.InHeader, name string, dest []byte) (uint32, fuse.Status) {
	f.counters.add(opGetXAttr)
	if !strings.HasPrefix(name, "user.") {
		// Not ENODATA: ls, cp and the kernel ask once and not for every file.
		return 0, fuse.Status(unix.EOPNOTSUPP)
	}
	var size int
	var fits bool
	st := f.node("getxattr", h.NodeId, func(rd merkle.Reader, _ *row, _ uint32, e *merkle.Entry) error {
		v, ok, err := f.attr(rd, e, name)
		if err != nil {
			return err
		}
		if !ok {
			return fuseErrno(fuse.ENODATA)
		}
		size, fits = len(v), copy(dest, v) == len(v)
		return nil
	})
	return answer(size, fits, st)
}

// answer is the reply of an attribute call: the size with ERANGE when it does
// not fit (a caller that only asks for the size gives no room at all).
func answer(size int, fits bool, st fuse.Status) (uint32, fuse.Status) {
	if st.Ok() && !fits {
		st = fuse.ERANGE
	}
	return uint32(size), st
}

// attr is the value of one attribute. It may be lent.
func (f *filesystem) attr(rd merkle.Reader, e *merkle.Entry, name string) (v []byte, ok bool, err error) {
	switch {
	case name == attrRevision:
		return []byte(f.commit.String()), true, nil
	case name == attrHash && !e.Hash.IsZero():
		return []byte(e.Hash.String()), true, nil
	case strings.HasPrefix(name, virtualPrefix), e.Attrs.IsZero():
		return nil, false, nil
	}
	b, err := rd.Node(&e.Attrs)
	if err != nil {
		return nil, false, err
	}
	return merkle.AttrValue(b, name)
}

// ListXAttr lists the stored attributes.
func (f *filesystem) ListXAttr(_ <-chan struct{}, h *fuse.InHeader, dest []byte) (uint32, fuse.Status) {
	f.counters.add(opListXAttr)
	var size int
	fits := true
	st := f.node("listxattr", h.NodeId, func(rd merkle.Reader, _ *row, _ uint32, e *merkle.Entry) error {
		if e.Attrs.IsZero() {
			return nil
		}
		b, err := rd.Node(&e.Attrs)
		if err != nil {
			return err
		}
		attrs, err := merkle.DecodeAttrs(&e.Attrs, b)
		if err != nil {
			return err
		}
		for i := range attrs {
			if size+len(attrs[i].Name) < len(dest) {
				dest[size+copy(dest[size:], attrs[i].Name)] = 0
			}
			size += len(attrs[i].Name) + 1
		}
		fits = size <= len(dest)
		return nil
	})
	return answer(size, fits, st)
}

func refuseXAttr(name string) fuse.Status {
	switch {
	case strings.HasPrefix(name, virtualPrefix):
		return fuse.EPERM
	case !strings.HasPrefix(name, "user."):
		return fuse.Status(unix.EOPNOTSUPP)
	}
	return fuse.EROFS
}

// SetXAttr is refused; see refuse.go for when the kernel asks at all.
func (f *filesystem) SetXAttr(_ <-chan struct{}, _ *fuse.SetXAttrIn, name string, _ []byte) fuse.Status {
	f.counters.add(opSetXAttr)
	return refuseXAttr(name)
}

// RemoveXAttr is refused like SetXAttr.
func (f *filesystem) RemoveXAttr(_ <-chan struct{}, _ *fuse.InHeader, name string) fuse.Status {
	f.counters.add(opRemoveXAttr)
	return refuseXAttr(name)
}
