package blobstore

import (
	"encoding/binary"
	"fmt"
	"math"

	"bole/merkle"
)

// Location says where a content lies. The zero Pack means a whole file, which is found by the
// content's hash.
type Location struct {
	Pack   uint32 // number of the pack file, from 1; 0: a whole file
	Offset uint64 // of the record's header in the pack, bytes; 0 for a whole file
	Length uint64 // of the content, bytes
}

// Record names a content that Sync made durable and the place where it lies.
type Record struct {
	Hash     merkle.Hash
	Location Location
}

// PackEnd is the end (bytes from the start of the file) of the last record that Sync made durable
// in a pack. The caller stores it in the transaction that stores the records, and answers it
// through the packEnd function of Begin.
type PackEnd struct {
	Pack uint32
	End  uint64
}

// Encode returns the stored form: the pack number, for a pack the offset, and the length, each as
// an unsigned LEB128 varint of the shortest form.
func (l Location) Encode() []byte {
	return l.Append(make([]byte, 0, 16))
}

// Append appends the stored form to dst and returns the extended slice.
func (l Location) Append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(l.Pack))
	if l.Pack != 0 {
		dst = binary.AppendUvarint(dst, l.Offset)
	}
	return binary.AppendUvarint(dst, l.Length)
}

// DecodeLocation reads the stored form. It refuses (ErrLocation) whatever Encode would not have
// written: a varint that is not the shortest, bytes left over, an offset inside a pack's header, a
// record that no pack can hold.
func DecodeLocation(b []byte) (Location, error) {
	var l Location
	pack, rest, ok := uvarint(b)
	if !ok || pack > math.MaxUint32 {
		return Location{}, fmt.Errorf("%w: pack number in %x", ErrLocation, clip(b))
	}
	l.Pack = uint32(pack)
	if l.Pack != 0 {
		if l.Offset, rest, ok = uvarint(rest); !ok {
			return Location{}, fmt.Errorf("%w: offset in %x", ErrLocation, clip(b))
		}
	}
	if l.Length, rest, ok = uvarint(rest); !ok || len(rest) != 0 {
		return Location{}, fmt.Errorf("%w: length in %x", ErrLocation, clip(b))
	}
	if err := l.check(); err != nil {
		return Location{}, err
	}
	return l, nil
}

// check refuses places where no content can lie, so that nothing downstream computes with absurd
// numbers.
func (l Location) check() error {
	switch {
	case l.Length > math.MaxInt64:
		return fmt.Errorf("%w: length %d", ErrLocation, l.Length)
	case l.Pack == 0 && l.Offset != 0:
		return fmt.Errorf("%w: whole file at offset %d", ErrLocation, l.Offset)
	case l.Pack != 0 && l.Length > MaxRecord:
		return fmt.Errorf("%w: record of %d bytes", ErrLocation, l.Length)
	case l.Pack != 0 && (l.Offset < packHeaderSize || l.Offset > math.MaxInt64-RecordHeader-MaxRecord):
		return fmt.Errorf("%w: record at offset %d", ErrLocation, l.Offset)
	}
	return nil
}

// end returns the offset behind the record. Only for locations that passed check.
func (l Location) end() uint64 { return l.Offset + RecordHeader + l.Length }

// uvarint reads one varint of the shortest form and returns what follows it.
func uvarint(b []byte) (v uint64, rest []byte, ok bool) {
	v, n := binary.Uvarint(b)
	if n <= 0 || (n > 1 && b[n-1] == 0) {
		return 0, nil, false
	}
	return v, b[n:], true
}

// clip bounds what an error message prints of hostile bytes.
func clip(b []byte) []byte { return b[:min(len(b), 32)] }
