package blobstore

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"bole/merkle"
)

// Found is what Scan met: a content and its place, or damage.
type Found struct {
	Record
	Err error // nil, or a *DamageError; then Record is what was promised there, as far as it can be told
}

// ScanOptions say how much Scan looks at.
type ScanOptions struct {
	// Contents: hash every byte. Without it only record headers and the presence of files are
	// looked at.
	Contents bool
	// PackEnd, when not nil, limits each pack to its committed end, leaves out packs it does not
	// know, and makes a pack that ends earlier damage. When nil, packs are read to the end of the
	// file, where a writer at work or a killed one may have left half a record, reported as damage
	// too.
	PackEnd PackEndFunc
}

// Scan reads what is stored, pack by pack and then the whole files, by the files alone, and calls
// fn for each content and each damage. Behind damage in a pack it searches for the next record
// whose bytes match its hash. fn's error ends it. Memory: 2 MiB, and the names of one folder.
func (s *Store) Scan(o ScanOptions, fn func(Found) error) error {
	nums, err := s.packNumbers()
	if err != nil {
		return err
	}
	sc := &packScan{s: s, o: o, fn: fn}
	for _, n := range nums {
		if err := sc.pack(n); err != nil {
			return err
		}
	}
	return s.scanWhole(o, fn)
}

// Rebuild is a Scan of every byte that also returns, for each pack, the end of its last sound
// record: records and ends are what a lost table of contents is made from. Nobody may write to the
// store meanwhile.
func (s *Store) Rebuild(fn func(Found) error) ([]PackEnd, error) {
	var ends []PackEnd
	err := s.Scan(ScanOptions{Contents: true}, func(f Found) error {
		if loc := f.Location; f.Err == nil && loc.Pack != 0 {
			if len(ends) == 0 || ends[len(ends)-1].Pack != loc.Pack {
				ends = append(ends, PackEnd{Pack: loc.Pack})
			}
			ends[len(ends)-1].End = loc.end()
		}
		return fn(f)
	})
	if err != nil {
		return nil, err
	}
	return ends, nil
}

// packScan reads packs through one window, which holds at least the record in work.
type packScan struct {
	s  *Store
	o  ScanOptions
	fn func(Found) error

	num    uint32
	f      *os.File
	end    uint64 // where to stop
	window []byte
	at     uint64 // offset of window[0]
	failed error  // the system's error of the last fill
}

func (sc *packScan) pack(num uint32) error {
	sc.num, sc.window, sc.failed = num, sc.window[:0], nil
	committed := uint64(0)
	if sc.o.PackEnd != nil {
		end, ok, err := sc.o.PackEnd(num)
		if !ok || err != nil {
			return err
		}
		committed = end
	}
	f, st, err := openFile(sc.s.packPath(num), os.O_RDONLY)
	if err != nil {
		if passing(err) {
			return err
		}
		return sc.report(merkle.Hash{}, 0, 0, "pack cannot be opened", err)
	}
	defer f.Close()
	adviseSequential(f)
	sc.f, sc.end = f, uint64(st.size)
	if sc.o.PackEnd != nil {
		sc.end = min(sc.end, committed)
	}
	if err := sc.records(); err != nil {
		return err
	}
	if uint64(st.size) < committed {
		return sc.report(merkle.Hash{}, uint64(st.size), 0, "pack ends before its last record", nil)
	}
	return nil
}

// records walks the records of one pack.
func (sc *packScan) records() error {
	if sc.end == 0 {
		return nil // made, and nothing written yet
	}
	if reason := checkPackHeader(sc.bytes(0, packHeaderSize)); reason != "" {
		if err := sc.report(merkle.Hash{}, 0, 0, reason, sc.failed); err != nil {
			return err
		}
	}
	for off := uint64(packHeaderSize); off < sc.end; {
		h, length, reason := sc.record(off)
		next := off + RecordHeader + length
		switch {
		case reason == "":
			if err := sc.fn(Found{Record: Record{h, Location{sc.num, off, length}}}); err != nil {
				return err
			}
		default:
			if h.IsZero() || !sc.plausible(next) {
				next = sc.search(off + 1)
			}
			if err := sc.report(h, off, length, reason, sc.failed); err != nil {
				return err
			}
		}
		if sc.failed != nil {
			return nil // reported; what lies behind cannot be told by the file alone
		}
		off = next
	}
	return nil
}

// record looks at the record at off. The hash is zero when the header is no header.
func (sc *packScan) record(off uint64) (h merkle.Hash, length uint64, reason string) {
	h, length, err := parseRecordHeader(sc.bytes(off, RecordHeader))
	if err != nil {
		return merkle.Hash{}, 0, err.Error()
	}
	if off+RecordHeader+length > sc.end {
		return h, length, "record is cut off"
	}
	if !sc.o.Contents {
		return h, length, ""
	}
	data := sc.bytes(off, RecordHeader+length)
	if uint64(len(data)) < RecordHeader+length {
		return h, length, "record cannot be read"
	}
	if merkle.ContentHash(data[RecordHeader:]) != h {
		return h, length, "bytes do not match the hash"
	}
	return h, length, ""
}

// plausible tells whether a record may begin at off, or the pack end there.
func (sc *packScan) plausible(off uint64) bool {
	if off >= sc.end {
		return off == sc.end
	}
	_, _, err := parseRecordHeader(sc.bytes(off, RecordHeader))
	return err == nil
}

// searchTries bounds how many places that look like a header are hashed behind one damage: contents
// may be made to look so.
const searchTries = 4096

// search returns the offset of the next record whose bytes match its hash, or the end.
func (sc *packScan) search(off uint64) uint64 {
	for tries := 0; off < sc.end && tries < searchTries; {
		b := sc.bytes(off, min(MaxRecord, sc.end-off))
		if sc.failed != nil || len(b) < RecordHeader {
			return sc.end
		}
		i := bytes.Index(b, recordMagic[:])
		if i < 0 {
			off += uint64(len(b) - len(recordMagic) + 1)
			continue
		}
		off += uint64(i)
		if h, length, err := parseRecordHeader(sc.bytes(off, RecordHeader)); err == nil && off+RecordHeader+length <= sc.end {
			tries++
			data := sc.bytes(off, RecordHeader+length)
			if uint64(len(data)) == RecordHeader+length && merkle.ContentHash(data[RecordHeader:]) == h {
				return off
			}
		}
		off++
	}
	return sc.end
}

// bytes returns n bytes at off, fewer at the end or when they cannot be read (failed then says
// why). They are good until the next call.
func (sc *packScan) bytes(off, n uint64) []byte {
	n = min(n, sc.end-min(off, sc.end))
	if off < sc.at || off+n > sc.at+uint64(len(sc.window)) {
		sc.fill(off)
	}
	if off > sc.at+uint64(len(sc.window)) {
		return nil
	}
	b := sc.window[off-sc.at:]
	return b[:min(n, uint64(len(b)))]
}

// fill reads the window from off on.
func (sc *packScan) fill(off uint64) {
	if cap(sc.window) == 0 {
		sc.window = make([]byte, 2*(MaxRecord+RecordHeader))
	}
	sc.at = off
	want := min(uint64(cap(sc.window)), sc.end-min(off, sc.end))
	n, err := sc.f.ReadAt(sc.window[:want], int64(off))
	sc.window = sc.window[:n]
	if err != nil && err != io.EOF {
		sc.failed = err
	}
}

func (sc *packScan) report(h merkle.Hash, off, length uint64, reason string, cause error) error {
	loc := Location{sc.num, off, length}
	return sc.fn(Found{Record: Record{h, loc}, Err: sc.s.damaged(&h, loc, reason, cause)})
}

// scanWhole walks the whole files. Names that no content can have are not the store's.
func (s *Store) scanWhole(o ScanOptions, fn func(Found) error) error {
	return s.eachWhole(func(h merkle.Hash, size int64) error {
		found := Found{Record: Record{h, Location{Length: uint64(size)}}}
		if o.Contents {
			if err := s.VerifyWhole(h); errors.Is(err, ErrDamaged) {
				found.Err = err
			} else if err != nil {
				return err
			}
		}
		return fn(found)
	})
}

// eachWhole calls fn for each whole file, folder by folder.
func (s *Store) eachWhole(fn func(h merkle.Hash, size int64) error) error {
	top := filepath.Join(s.dir, wholeDir)
	folders, err := os.ReadDir(top)
	if err != nil {
		return err
	}
	for _, d := range folders {
		if !d.IsDir() || len(d.Name()) != 2 {
			continue
		}
		files, err := os.ReadDir(filepath.Join(top, d.Name()))
		if err != nil {
			return err
		}
		for _, e := range files {
			name := d.Name() + e.Name()
			h, err := merkle.ParseHash(name)
			if err != nil || strings.ToLower(name) != name || !e.Type().IsRegular() {
				continue
			}
			fi, err := e.Info()
			if errors.Is(err, os.ErrNotExist) {
				continue // gone since the folder was listed
			} else if err != nil {
				return err
			}
			if err := fn(h, fi.Size()); err != nil {
				return err
			}
		}
	}
	return nil
}
