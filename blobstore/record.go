package blobstore

import (
	"encoding/binary"
	"errors"

	"bole/merkle"
)

const (
	// RecordHeader is the size in bytes of what stands before each content in a pack: magic,
	// length, hash.
	RecordHeader = 4 + 8 + 32

	// MaxRecord is the largest content, in bytes, that a pack may hold, and so the largest
	// Options.Limit.
	MaxRecord = 1 << 20

	// DefaultLimit is the size in bytes up to which contents go to packs; larger ones become whole
	// files. BenchmarkStore and BenchmarkReadFirstPage show why: at 64 KiB a whole file costs seven
	// times the CPU of a record to store, at 256 KiB three times; but the first read of any part of
	// a record hashes all of it, which takes as long as a request of the kernel (50 to 100 us) at
	// 128 KiB and twice that at 256 KiB, while a whole file can be read by the kernel alone.
	DefaultLimit = 128 << 10

	// defaultPackSize is the size in bytes that no pack grows beyond.
	defaultPackSize = 256 << 20

	packHeaderSize = 4 + 4 + 16 // magic, version, owner
)

// The first four bytes of a pack and of a record. Two high bits set in the record's magic keep it
// out of text, so that a search for the next record after damage seldom meets it inside a content.
var (
	packMagic   = [4]byte{'B', 'P', 'A', 'K'}
	recordMagic = [4]byte{0xb0, 'R', 0xec, '1'}
)

const packVersion = 1

// packHeader returns the first bytes of a pack: magic, the version as little-endian u32, the owner.
func packHeader(owner [16]byte) (h [packHeaderSize]byte) {
	copy(h[:], packMagic[:])
	binary.LittleEndian.PutUint32(h[4:], packVersion)
	copy(h[8:], owner[:])
	return h
}

// checkPackHeader says what is wrong with the first bytes of a pack, or "". Any owner is right: only
// writers ask for theirs.
func checkPackHeader(b []byte) string {
	switch {
	case len(b) < packHeaderSize:
		return "pack is shorter than its header"
	case [4]byte(b[:4]) != packMagic:
		return "not a pack: wrong magic"
	case binary.LittleEndian.Uint32(b[4:8]) != packVersion:
		return "pack has an unknown version"
	}
	return ""
}

// putRecordHeader writes the header of a record for a content into dst, which has RecordHeader bytes.
func putRecordHeader(dst []byte, h *merkle.Hash, length uint64) {
	_ = dst[RecordHeader-1]
	copy(dst, recordMagic[:])
	binary.LittleEndian.PutUint64(dst[4:], length)
	copy(dst[12:], h[:])
}

var (
	errShortHeader = errors.New("record header is cut off")
	errMagic       = errors.New("record has the wrong magic")
	errLength      = errors.New("record has an absurd length")
)

// parseRecordHeader reads the header of a record. The length it returns is at most MaxRecord.
func parseRecordHeader(b []byte) (h merkle.Hash, length uint64, err error) {
	if len(b) < RecordHeader {
		return h, 0, errShortHeader
	}
	if [4]byte(b[:4]) != recordMagic {
		return h, 0, errMagic
	}
	length = binary.LittleEndian.Uint64(b[4:])
	copy(h[:], b[12:RecordHeader])
	if length > MaxRecord {
		return h, 0, errLength
	}
	return h, length, nil
}
