package merkle

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// Attr is one extended attribute. Name begins with "user." but not with
// "user.bole.", which means what the mount answers by itself; it is at most 255
// bytes without NUL. Value is at most 64 KiB.
type Attr struct {
	Name  string
	Value []byte
}

const (
	// MaxAttrValue is the length limit of an attribute's value in bytes,
	// that of Linux.
	MaxAttrValue = 64 << 10

	attrsHeader   = 8
	attrRecord    = 8
	attrPrefix    = "user."
	attrVirtual   = "user.bole."
	minAttrLength = len(attrPrefix) + 1
)

// CheckAttrName says whether an attribute of that name can be recorded. The
// error matches ErrBadAttr.
func CheckAttrName(name string) error {
	if fault := attrNameFault([]byte(name)); fault != "" {
		return fmt.Errorf("%.300q: %w: %s", name, ErrBadAttr, fault)
	}
	return nil
}

func attrNameFault(name []byte) string {
	switch {
	case len(name) < minAttrLength || len(name) > MaxName:
		return "name shorter than 6 or longer than 255 bytes"
	case !bytes.HasPrefix(name, []byte(attrPrefix)):
		return "name does not begin with user."
	case bytes.HasPrefix(name, []byte(attrVirtual)):
		return "name begins with user.bole."
	case bytes.IndexByte(name, 0) >= 0:
		return "name has a NUL byte"
	}
	return ""
}

// EncodeAttrs returns the bytes of the Attrs node of at least one attribute.
// The order does not matter. The error matches ErrBadAttr or ErrTooLarge and
// names the attribute.
func EncodeAttrs(attrs []Attr) ([]byte, error) {
	if len(attrs) == 0 {
		return nil, fmt.Errorf("%w: an empty list", ErrBadAttr)
	}
	sorted := slices.SortedFunc(slices.Values(attrs), func(a, b Attr) int { return strings.Compare(a.Name, b.Name) })
	size := attrsHeader + len(sorted)*attrRecord
	for i, a := range sorted {
		if err := CheckAttrName(a.Name); err != nil {
			return nil, err
		}
		if len(a.Value) > MaxAttrValue {
			return nil, fmt.Errorf("%q: %w: value of %d bytes", a.Name, ErrBadAttr, len(a.Value))
		}
		if i > 0 && sorted[i-1].Name == a.Name {
			return nil, fmt.Errorf("%q: %w: given twice", a.Name, ErrBadAttr)
		}
		size += len(a.Name) + len(a.Value)
	}
	if size > MaxNode {
		return nil, fmt.Errorf("attributes of %d bytes: %w", size, ErrTooLarge)
	}
	b := make([]byte, 0, size)
	b = append(b, kindAttrs, formatVersion, 0, 0)
	b = le.AppendUint32(b, uint32(len(sorted)))
	end := 0
	for _, a := range sorted {
		b = le.AppendUint32(b, uint32(end+len(a.Name)))
		end += len(a.Name) + len(a.Value)
		b = le.AppendUint32(b, uint32(end))
	}
	for _, a := range sorted {
		b = append(b, a.Name...)
		b = append(b, a.Value...)
	}
	return b, nil
}

// attrList is an Attrs node in place.
type attrList struct {
	records, heap []byte
}

func parseAttrs(b []byte) (l attrList, fault string) {
	if len(b) < attrsHeader || len(b) > MaxNode {
		return l, "length out of range for Attrs"
	}
	if b[0] != kindAttrs || b[1] != formatVersion || b[2]|b[3] != 0 {
		return l, "not Attrs of a known version"
	}
	count := le.Uint32(b[offCount:])
	if uint64(count) > uint64(len(b)-attrsHeader)/attrRecord {
		return l, "more records than bytes"
	}
	at := attrsHeader + int(count)*attrRecord
	return attrList{b[attrsHeader:at], b[at:]}, ""
}

func (l *attrList) len() int { return len(l.records) / attrRecord }

// at returns name and value of attribute i in place.
func (l *attrList) at(i int) (name, value []byte, ok bool) {
	start := 0
	if i > 0 {
		start = int(le.Uint32(l.records[i*attrRecord-4:]))
	}
	mid := int(le.Uint32(l.records[i*attrRecord:]))
	end := int(le.Uint32(l.records[i*attrRecord+4:]))
	if start < 0 || start > mid || mid > end || end > len(l.heap) { // below 0 where int has 32 bits
		return nil, nil, false
	}
	return l.heap[start:mid:mid], l.heap[mid:end:end], true
}

// checkAttrs returns what is wrong with an Attrs node, or "".
func checkAttrs(b []byte) string {
	l, fault := parseAttrs(b)
	if fault != "" {
		return fault
	}
	if l.len() == 0 {
		return "an empty list"
	}
	var last []byte
	used := 0
	for i := range l.len() {
		name, value, ok := l.at(i)
		if !ok {
			return "heap out of bounds"
		}
		if fault := attrNameFault(name); fault != "" {
			return fault
		}
		if len(value) > MaxAttrValue {
			return "value longer than 64 KiB"
		}
		if i > 0 && bytes.Compare(last, name) >= 0 {
			return "names not sorted, or one twice"
		}
		last = name
		used += len(name) + len(value)
	}
	if used != len(l.heap) {
		return "bytes after the last attribute"
	}
	return ""
}

// DecodeAttrs decodes the Attrs node b, whose name is *h, in the order of
// names. The result shares no memory with b. The error matches ErrCorrupt.
func DecodeAttrs(h *Hash, b []byte) ([]Attr, error) {
	if fault := checkAttrs(b); fault != "" {
		return nil, corrupt(h, fault)
	}
	l, _ := parseAttrs(b)
	attrs := make([]Attr, l.len())
	for i := range attrs {
		name, value, _ := l.at(i)
		attrs[i] = Attr{string(name), bytes.Clone(value)}
	}
	return attrs, nil
}

// AttrValue finds one attribute in the Attrs node b in place. The value points
// into b. The error matches ErrCorrupt; its hash is that of b.
func AttrValue(b []byte, name string) (value []byte, found bool, err error) {
	l, fault := parseAttrs(b)
	if fault == "" {
		lo, hi := 0, l.len()
		for lo < hi {
			mid := int(uint(lo+hi) >> 1)
			n, v, ok := l.at(mid)
			if !ok {
				fault = "heap out of bounds"
				break
			}
			if string(n) == name {
				return v, true, nil
			}
			if string(n) < name {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
	}
	if fault != "" {
		h := NodeHash(b)
		return nil, false, corrupt(&h, fault)
	}
	return nil, false, nil
}
