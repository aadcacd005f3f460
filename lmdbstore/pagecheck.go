package lmdbstore

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/bmatsuo/lmdb-go/lmdb"
	"golang.org/x/sys/unix"
)

// Damage is one thing that is wrong with the pages of a database.
type Damage struct {
	Page   uint64 // number of the page in data.mdb
	Table  string // the table it belongs to; "main" and "freelist" are LMDB's own
	Reason string
}

// String returns the damage in one line.
func (d Damage) String() string {
	return fmt.Sprintf("page %d (table %s): %s", d.Page, d.Table, d.Reason)
}

// CheckFile checks every page of the database in folder dir, which this
// process must not have open: that it can be read, is what the page above it
// says, has its records in order and within its bounds, and belongs to one
// table or to the free pages, once. It reads with plain reads and not through
// LMDB, so it finds what would end the process inside LMDB (see the package
// comment) and is the first thing to do with a database that may be damaged.
// Each damage is given to report, whose error ends the check. What the values
// hold is not checked. Errors are those of Open and of report.
func CheckFile(dir string, o Options, report func(Damage) error) (err error) {
	s, err := openBare(dir, o, 0)
	if err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	defer s.discard()
	if err := s.checkPages(report); err != nil {
		return fmt.Errorf("check database: %w", err)
	}
	return nil
}

// CheckPages is CheckFile for an open database.
func (s *Store) CheckPages(report func(Damage) error) error {
	if _, err := s.readers.enter(false); err != nil {
		return err
	}
	defer s.readers.leave(nil)
	return s.checkPages(report)
}

// meta is what a meta page says (mdb.c, MDB_meta).
type meta struct {
	free, main      tableRecord
	lastPage, txnID uint64
}

func decodeMeta(page rawPage) (m meta, ok bool) {
	le := binary.LittleEndian
	if len(page) < 152 || page.flags()&pageMeta == 0 || le.Uint32(page[pageHeader:]) != lmdbMagic {
		return m, false
	}
	m.free, _ = decodeTable(page[40:])
	m.main, _ = decodeTable(page[88:])
	m.lastPage, m.txnID = le.Uint64(page[136:]), le.Uint64(page[144:])
	return m, true
}

// pageCheck is one run of checkPages.
type pageCheck struct {
	s      *Store
	report func(Damage) error
	meta   meta
	used   []uint64 // one bit a page: belongs to a table, or is free
	table  string   // being checked
	sum    tableRecord
	last   []byte // key of the record before
	free   bool   // checking the free list: keys are numbers
	err    error  // of report
}

func (s *Store) checkPages(report func(Damage) error) error {
	c := pageCheck{s: s, report: report}
	txn, err := c.pin()
	if err != nil {
		return err
	}
	defer txn.Abort()
	c.used = make([]uint64, c.meta.lastPage/64+1)
	c.mark(0)
	c.mark(1)
	c.checkTable("freelist", c.meta.free)
	c.checkTable("main", c.meta.main)
	if c.err != nil {
		return c.err
	}
	lost := uint64(0)
	for page := range c.meta.lastPage + 1 {
		if c.used[page/64]&(1<<(page%64)) == 0 {
			lost++
		}
	}
	if lost > 0 {
		c.damaged(c.meta.lastPage, "%d pages up to this one belong to nothing", lost)
	}
	return c.err
}

// pin begins a read transaction and finds the meta page of its snapshot.
func (c *pageCheck) pin() (*lmdb.Txn, error) {
	// Each meta page is written over by the second next transaction, so a
	// busy writer can be faster than the two steps here.
	for range 1000 {
		txn, err := c.s.beginRead(lmdb.Readonly)
		if err != nil {
			return nil, err
		}
		for i := range uint64(2) {
			page, err := c.read(i)
			if err != nil {
				txn.Abort()
				return nil, err
			}
			m, ok := decodeMeta(page)
			if ok && m.txnID == uint64(txn.ID()) && m.lastPage < uint64(c.s.mapSize)/uint64(c.s.pageSize) {
				c.meta = m
				return txn, nil
			}
		}
		txn.Abort()
		if err := c.s.checkLength(); err != nil {
			return nil, err
		}
	}
	return nil, c.s.unreadable("no meta page of the newest snapshot")
}

// read returns a page in memory of its own.
func (c *pageCheck) read(number uint64) (rawPage, error) {
	page := make(rawPage, c.s.pageSize)
	for done := 0; done < len(page); {
		n, err := unix.Pread(c.s.fd, page[done:], int64(number)*int64(len(page))+int64(done))
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, err
		case n == 0:
			return nil, fmt.Errorf("the file ends before it")
		}
		done += n
	}
	return page, nil
}

func (c *pageCheck) damaged(page uint64, format string, args ...any) {
	if c.err == nil {
		c.err = c.report(Damage{page, c.table, fmt.Sprintf(format, args...)})
	}
}

// mark notes that a page belongs to something, and tells whether it may.
func (c *pageCheck) mark(page uint64) bool {
	if page > c.meta.lastPage {
		c.damaged(page, "lies behind the last page, %d", c.meta.lastPage)
		return false
	}
	if c.used[page/64]&(1<<(page%64)) != 0 {
		c.damaged(page, "is used twice")
		return false
	}
	c.used[page/64] |= 1 << (page % 64)
	return true
}

// checkTable checks the tree of one table against its record.
func (c *pageCheck) checkTable(name string, t tableRecord) {
	outer := *c
	c.table, c.sum, c.last, c.free = name, tableRecord{}, nil, name == "freelist"
	const deepest = 32 // LMDB's cursors hold no more levels
	switch {
	case t.root == noRoot:
	case t.depth == 0 || t.depth > deepest:
		c.damaged(t.root, "is the root of a tree of %d levels", t.depth)
	default:
		c.checkTree(t.root, int(t.depth), nil, nil)
	}
	s := c.sum
	if c.err == nil && (s.branch != t.branch || s.leaves != t.leaves || s.overflow != t.overflow || s.entries != t.entries) {
		c.damaged(t.root, "the tree has %d+%d+%d pages and %d records, its record says %d+%d+%d and %d",
			s.branch, s.leaves, s.overflow, s.entries, t.branch, t.leaves, t.overflow, t.entries)
	}
	c.table, c.sum, c.last, c.free = outer.table, outer.sum, outer.last, outer.free
}

// checkTree checks the pages from number down, which has that many levels and
// whose keys are from low up to before high (nil: no limit).
func (c *pageCheck) checkTree(number uint64, levels int, low, high []byte) {
	if c.err != nil || !c.mark(number) {
		return
	}
	page, err := c.read(number)
	if err != nil {
		c.damaged(number, "cannot be read: %v", err)
		return
	}
	want := uint16(pageBranch)
	if levels == 1 {
		want = pageLeaf
	}
	n, ok := page.count()
	switch {
	case page.number() != number:
		c.damaged(number, "says that it is page %d", page.number())
	case page.flags() != want:
		c.damaged(number, "is of kind %#x, not %#x", page.flags(), want)
	case !ok || n == 0 || levels > 1 && n < 2 && !c.free:
		c.damaged(number, "has bounds that make no sense")
	case levels > 1:
		c.sum.branch++
		c.checkBranch(page, n, levels, low, high)
	default:
		c.sum.leaves++
		c.checkLeaf(page, n, low, high)
	}
}

func (c *pageCheck) checkBranch(page rawPage, n, levels int, low, high []byte) {
	for i := range n {
		child, key, ok := page.child(i)
		if i == 0 {
			key = low
		}
		next, more := high, i+1 < n
		if more {
			var nextOK bool
			_, next, nextOK = page.child(i + 1)
			ok = ok && nextOK
		}
		if !ok {
			c.damaged(page.number(), "record %d lies outside the page", i)
			return
		}
		if more && (!c.fits(next) || key != nil && c.compare(key, next) >= 0 || high != nil && c.compare(next, high) >= 0) {
			c.damaged(page.number(), "record %d is out of order", i+1)
			return
		}
		c.checkTree(child, levels-1, key, next)
	}
}

func (c *pageCheck) checkLeaf(page rawPage, n int, low, high []byte) {
	for i := range n {
		r, ok := page.leaf(i)
		switch {
		case !ok:
			c.damaged(page.number(), "record %d lies outside the page", i)
			return
		case !c.fits(r.key):
			c.damaged(page.number(), "record %d has a key of %d bytes", i, len(r.key))
			return
		case c.last != nil && c.compare(c.last, r.key) >= 0,
			low != nil && c.compare(r.key, low) < 0, high != nil && c.compare(r.key, high) >= 0:
			c.damaged(page.number(), "record %d is out of order", i)
			return
		}
		c.last = r.key
		c.sum.entries++
		c.checkValue(page.number(), i, r)
		if c.err != nil {
			return
		}
	}
}

// checkValue checks where the value of a record lies, and what it says when it
// is one of LMDB's own.
func (c *pageCheck) checkValue(page uint64, i int, r leafRecord) {
	isTable := c.table == "main"
	if r.flags&^recordOverflow != 0 && !(isTable && r.flags == recordTable) || isTable && r.flags != recordTable {
		c.damaged(page, "record %d is of kind %#x", i, r.flags)
		return
	}
	value := r.value
	if r.flags&recordOverflow != 0 {
		if value = c.readOverflow(r.overflow, r.size); value == nil {
			return
		}
	}
	switch {
	case isTable:
		t, ok := decodeTable(value)
		if !ok || len(value) != tableRecordSize || t.flags != 0 {
			c.damaged(page, "record %d is no table", i)
			return
		}
		c.checkTable(string(r.key), t)
	case c.free:
		c.checkFree(page, i, value)
	}
}

// readOverflow reads a value of size bytes from its pages; nil when it cannot.
func (c *pageCheck) readOverflow(first uint64, size uint32) []byte {
	pages := (uint64(pageHeader) + uint64(size) + uint64(c.s.pageSize) - 1) / uint64(c.s.pageSize)
	var value []byte
	for i := range pages {
		if !c.mark(first + i) {
			return nil
		}
		page, err := c.read(first + i)
		if err != nil {
			c.damaged(first+i, "cannot be read: %v", err)
			return nil
		}
		if i == 0 {
			if page.number() != first || page.flags() != pageOverflow || uint64(page.overflowPages()) != pages {
				c.damaged(first, "is not the first of %d overflow pages", pages)
				return nil
			}
			page = page[pageHeader:]
		}
		if c.free {
			value = append(value, page...)
		}
	}
	c.sum.overflow += pages
	if !c.free {
		return []byte{}
	}
	return value[:size]
}

// checkFree marks the pages of one record of the free list: a count and that
// many page numbers.
func (c *pageCheck) checkFree(page uint64, i int, value []byte) {
	le := binary.LittleEndian
	if len(value) < 8 || len(value)%8 != 0 || le.Uint64(value) > uint64(len(value)/8-1) {
		c.damaged(page, "record %d is no list of pages", i)
		return
	}
	for n := le.Uint64(value); n > 0; n-- {
		if c.mark(le.Uint64(value[8*n:])); c.err != nil {
			return
		}
	}
}

// fits tells whether a key has a length that its table allows.
func (c *pageCheck) fits(key []byte) bool {
	if c.free {
		return len(key) == 8
	}
	return len(key) >= 1 && len(key) <= MaxKey
}

// compare orders keys as LMDB does in this table.
func (c *pageCheck) compare(a, b []byte) int {
	if c.free {
		x, y := binary.LittleEndian.Uint64(a), binary.LittleEndian.Uint64(b)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	}
	return bytes.Compare(a, b)
}
