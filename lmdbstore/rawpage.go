package lmdbstore

import "encoding/binary"

// rawPage is one page of the database file, read without LMDB: page size bytes
// in the byte order of the machine, which is little endian wherever this
// program runs. The layout is that of LMDB 0.9 (mdb.c, MDB_page and MDB_node):
//
//	 0 u64 page number
//	10 u16 flags
//	12 u16 end of the slots (u32: number of pages, in the first overflow page)
//	14 u16 begin of the records
//	16 slots, u16 each: where record i begins
//
// A record in a branch page is u48 child page, u16 key length, key; in a leaf
// page u32 value length, u16 flags, u16 key length, key, then the value or,
// with flag recordOverflow, the u64 number of its first overflow page.
//
// No method panics, whatever the bytes are; ok = false says that they make no sense.
type rawPage []byte

const (
	pageBranch   = 0x01
	pageLeaf     = 0x02
	pageOverflow = 0x04
	pageMeta     = 0x08

	recordOverflow = 0x01
	recordTable    = 0x02 // the value is a tableRecord

	recordHeader = 8
)

func (p rawPage) number() uint64        { return binary.LittleEndian.Uint64(p) }
func (p rawPage) flags() uint16         { return binary.LittleEndian.Uint16(p[10:]) }
func (p rawPage) overflowPages() uint32 { return binary.LittleEndian.Uint32(p[12:]) }

// count returns the number of records.
func (p rawPage) count() (n int, ok bool) {
	lower := int(binary.LittleEndian.Uint16(p[12:]))
	upper := int(binary.LittleEndian.Uint16(p[14:]))
	if lower < pageHeader || lower%2 != 0 || lower > upper || upper > len(p) {
		return 0, false
	}
	return (lower - pageHeader) / 2, true
}

// record returns the bytes from record i to the end of the page, and its key.
func (p rawPage) record(i int) (rec, key []byte, ok bool) {
	n, ok := p.count()
	if !ok || i < 0 || i >= n {
		return nil, nil, false
	}
	at := int(binary.LittleEndian.Uint16(p[pageHeader+2*i:]))
	if at < pageHeader+2*n || at+recordHeader > len(p) {
		return nil, nil, false
	}
	rec = p[at:]
	keyLen := int(binary.LittleEndian.Uint16(rec[6:]))
	if recordHeader+keyLen > len(rec) {
		return nil, nil, false
	}
	return rec, rec[recordHeader : recordHeader+keyLen], true
}

// child returns record i of a branch page. The key of record 0 means nothing:
// it stands for everything before the key of record 1.
func (p rawPage) child(i int) (page uint64, key []byte, ok bool) {
	rec, key, ok := p.record(i)
	if !ok {
		return 0, nil, false
	}
	return binary.LittleEndian.Uint64(rec) & (1<<48 - 1), key, true
}

// leafRecord is one record of a leaf page.
type leafRecord struct {
	key      []byte
	value    []byte // nil when it lies in overflow pages
	size     uint32 // of the value
	flags    uint16
	overflow uint64 // first overflow page
}

// leaf returns record i of a leaf page.
func (p rawPage) leaf(i int) (r leafRecord, ok bool) {
	rec, key, ok := p.record(i)
	if !ok {
		return leafRecord{}, false
	}
	r = leafRecord{key: key, size: binary.LittleEndian.Uint32(rec), flags: binary.LittleEndian.Uint16(rec[4:])}
	rest := rec[recordHeader+len(key):]
	if r.flags&recordOverflow != 0 {
		if len(rest) < 8 {
			return leafRecord{}, false
		}
		r.overflow = binary.LittleEndian.Uint64(rest)
		return r, true
	}
	if uint64(r.size) > uint64(len(rest)) {
		return leafRecord{}, false
	}
	r.value = rest[:r.size]
	return r, true
}

// tableRecord says where a table's tree is (mdb.c, MDB_db; 48 bytes).
type tableRecord struct {
	flags, depth             uint16
	branch, leaves, overflow uint64 // pages
	entries                  uint64
	root                     uint64 // noRoot when the table is empty
}

const (
	tableRecordSize = 48
	noRoot          = ^uint64(0)
)

func decodeTable(b []byte) (t tableRecord, ok bool) {
	if len(b) < tableRecordSize {
		return t, false
	}
	le := binary.LittleEndian
	return tableRecord{
		flags: le.Uint16(b[4:]), depth: le.Uint16(b[6:]),
		branch: le.Uint64(b[8:]), leaves: le.Uint64(b[16:]), overflow: le.Uint64(b[24:]),
		entries: le.Uint64(b[32:]), root: le.Uint64(b[40:]),
	}, true
}
