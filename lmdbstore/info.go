package lmdbstore

import (
	"strings"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// TableInfo is the exact size of one table.
type TableInfo struct {
	Name     string
	Entries  uint64 // records
	Depth    uint   // levels of its tree, 0 when empty
	Branch   uint64 // pages that hold keys of other pages
	Leaf     uint64 // pages that hold records
	Overflow uint64 // pages of values that do not fit a leaf
}

// Pages returns the number of pages that the table takes.
func (t TableInfo) Pages() uint64 { return t.Branch + t.Leaf + t.Overflow }

// Info is the state of a database at one moment.
type Info struct {
	PageSize  int         // bytes
	MapSize   int64       // bytes
	FileSize  int64       // length of data.mdb in bytes
	LastPage  uint64      // number of the last page ever used
	LastTxnID uint64      // number of the last transaction
	FreePages uint64      // pages that a later transaction may use again
	Readers   int         // reader slots in use, over all processes
	MaxReader int         // reader slots
	Tables    []TableInfo // in the order of Tables
	Freelist  TableInfo   // LMDB's own: what FreePages counts
	Main      TableInfo   // LMDB's own: the table of tables
}

// freeTable is LMDB's table of free pages (FREE_DBI in mdb.c): transaction
// number -> a count and that many page numbers, each 8 bytes.
const freeTable = lmdb.DBI(0)

// Info returns the sizes of all tables and of the file, from one snapshot.
func (s *Store) Info() (Info, error) {
	if _, err := s.readers.enter(false); err != nil {
		return Info{}, err
	}
	defer s.readers.leave(nil)
	env, err := s.env.Info()
	if err != nil {
		return Info{}, s.wrap("read", err)
	}
	length, err := s.fileLength()
	if err != nil {
		return Info{}, err
	}
	info := Info{
		PageSize: s.pageSize, MapSize: env.MapSize, FileSize: int64(length),
		LastPage: uint64(env.LastPNO), LastTxnID: uint64(env.LastTxnID), MaxReader: int(env.MaxReaders),
	}
	if info.Readers, err = s.countReaders(); err != nil {
		return Info{}, err
	}
	err = s.View(func(r *Reader) error {
		for t := range numTables {
			stat, err := s.tableInfo(r.txn, s.dbi[t], t.String())
			if err != nil {
				return err
			}
			info.Tables = append(info.Tables, stat)
		}
		var err error
		if info.Main, err = s.tableInfo(r.txn, mainTable, "main"); err != nil {
			return err
		}
		if info.Freelist, err = s.tableInfo(r.txn, freeTable, "freelist"); err != nil {
			return err
		}
		info.FreePages, err = s.countFree(r.txn)
		return err
	})
	return info, err
}

func (s *Store) tableInfo(txn *lmdb.Txn, dbi lmdb.DBI, name string) (TableInfo, error) {
	stat, err := txn.Stat(dbi)
	if err != nil {
		return TableInfo{}, s.wrap("read table "+name, err)
	}
	return TableInfo{
		Name: name, Entries: stat.Entries, Depth: stat.Depth,
		Branch: stat.BranchPages, Leaf: stat.LeafPages, Overflow: stat.OverflowPages,
	}, nil
}

// countFree returns the number of pages in LMDB's free list.
func (s *Store) countFree(txn *lmdb.Txn) (uint64, error) {
	cur, err := txn.OpenCursor(freeTable)
	if err != nil {
		return 0, s.wrap("read the free list", err)
	}
	defer cur.Close()
	sum := uint64(0)
	limit := s.end.Load() / uint64(s.pageSize)
	for n := uint64(0); n <= limit; n++ {
		// Each record is at least a part of a page, so more than limit of
		// them are a tree that runs in a circle.
		k, v, err := cur.Get(nil, nil, lmdb.Next)
		if lmdb.IsNotFound(err) {
			return sum, nil
		} else if err != nil {
			return 0, s.wrap("read the free list", err)
		}
		if len(k) != 8 || len(v) < 8 || !s.readable(v) {
			break
		}
		sum += uint64(len(v)/8 - 1)
	}
	return 0, s.unreadable("read the free list")
}

// countReaders returns the number of reader slots in use.
func (s *Store) countReaders() (int, error) {
	n := 0
	err := s.env.ReaderList(func(text string) error {
		// One line per slot under a heading, or a sentence without a digit.
		for _, line := range strings.Split(text, "\n") {
			fields := strings.Fields(line)
			if len(fields) == 3 && fields[0] != "pid" {
				n++
			}
		}
		return nil
	})
	return n, s.wrap("read the reader table", err)
}
