package lmdbstore

import (
	"bytes"
	"slices"
	"unsafe"

	"bole/merkle"

	"github.com/bmatsuo/lmdb-go/lmdb"
	"golang.org/x/sys/unix"
)

// mainTable is LMDB's table of tables (MAIN_DBI in mdb.c).
const mainTable = lmdb.DBI(1)

// Prefetch asks the kernel to read the pages of these nodes, all at once and
// in the order of the file, so that a walk over a cold database waits for the
// disk once and not once per node. It is advice: nodes that are missing or
// pages that make no sense are passed over, and nothing happens when the whole
// database was read ahead at open. Keys may come in any order.
func (s *Store) Prefetch(r *Reader, keys []merkle.Hash) {
	if s.whole || len(keys) == 0 {
		return
	}
	sorted := slices.Clone(keys)
	slices.SortFunc(sorted, func(a, b merkle.Hash) int { return bytes.Compare(a[:nodeKeySize], b[:nodeKeySize]) })
	p := prefetch{s: s}
	p.find(r, sorted)
	p.advise()
	p.overflow(r, sorted)
	p.advise()
}

// prefetch gathers pages to be read.
type prefetch struct {
	s     *Store
	pages []pageRun
}

// pageRun is n consecutive pages.
type pageRun struct{ first, n uint64 }

// find adds the leaf pages in which keys, which are sorted, would be found.
func (p *prefetch) find(r *Reader, keys []merkle.Hash) {
	value, err := r.txn.Get(mainTable, []byte(Nodes.String()))
	if err != nil || !p.s.readable(value) {
		return
	}
	if table, ok := decodeTable(value); ok && table.root != noRoot {
		p.descend(table.root, int(table.depth)-1, keys)
	}
}

// descend adds the leaf pages in which keys (sorted) would be found, below the
// page number, which has that many levels below it. Only branch pages are
// read; they are few.
func (p *prefetch) descend(number uint64, levels int, keys []merkle.Hash) {
	if levels <= 0 {
		p.pages = append(p.pages, pageRun{number, 1})
		return
	}
	page, ok := p.s.page(number)
	if !ok || page.flags()&pageBranch == 0 {
		return
	}
	n, ok := page.count()
	for i := 0; ok && i < n && len(keys) > 0; i++ {
		mine := len(keys)
		if i+1 < n {
			_, next, ok := page.child(i + 1)
			if !ok {
				return
			}
			mine, _ = slices.BinarySearchFunc(keys, next, func(k merkle.Hash, next []byte) int {
				return bytes.Compare(k[:nodeKeySize], next)
			})
		}
		if mine > 0 {
			child, _, ok := page.child(i)
			if !ok {
				return
			}
			p.descend(child, levels-1, keys[:mine])
			keys = keys[mine:]
		}
	}
}

// overflow adds the overflow pages of nodes that do not lie in leaf pages.
func (p *prefetch) overflow(r *Reader, keys []merkle.Hash) {
	for i := range keys {
		b, err := p.s.get(r.txn, Nodes, keys[i][:nodeKeySize])
		if _, n := recordSize(p.s.pageSize, nodeKeySize, len(b)); err != nil || n == 0 {
			continue
		}
		first, last := p.s.pageOf(b)
		p.pages = append(p.pages, pageRun{first, last - first + 1})
	}
}

// pageOf returns the first and the last page of bytes in the map.
func (s *Store) pageOf(b []byte) (first, last uint64) {
	offset := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(s.base))
	size := uint64(s.pageSize)
	return offset / size, (offset + uint64(max(len(b), 1)) - 1) / size
}

// advise asks for the gathered pages, neighbours together, and forgets them.
func (p *prefetch) advise() {
	slices.SortFunc(p.pages, func(a, b pageRun) int { return int(a.first) - int(b.first) })
	size := int64(p.s.pageSize)
	for i := 0; i < len(p.pages); {
		run := p.pages[i]
		for i++; i < len(p.pages) && p.pages[i].first <= run.first+run.n; i++ {
			run.n = max(run.n, p.pages[i].first+p.pages[i].n-run.first)
		}
		if unix.Fadvise(p.s.fd, int64(run.first)*size, int64(run.n)*size, unix.FADV_WILLNEED) != nil {
			return
		}
	}
	p.pages = p.pages[:0]
}

// page returns one page of the map, when the file is long enough.
func (s *Store) page(number uint64) (rawPage, bool) {
	size := uint64(s.pageSize)
	if number >= s.end.Load()/size {
		return nil, false
	}
	return s.mapped()[number*size:][:size:size], true
}

// mapped returns the part of the map that the file filled when its length was
// last checked.
func (s *Store) mapped() []byte { return unsafe.Slice((*byte)(s.base), s.end.Load()) }
