package blobstore

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bole/merkle"
)

// packWriter is a pack that this batch has locked. Fields but end are set before others see it; end
// is guarded by Batch.mu.
type packWriter struct {
	s       *Store
	f       *os.File
	num     uint32
	created bool   // its entry in packs/ may not be durable yet
	end     uint64 // where the next record goes
	handed  uint64 // end of what Sync has handed over
}

// recordBuffers hold one record each, so that header and content go out in one write.
var recordBuffers = sync.Pool{New: func() any { return new([]byte) }}

// write puts a record in its reserved place.
func (p *packWriter) write(h *merkle.Hash, data []byte, off uint64) error {
	bp := recordBuffers.Get().(*[]byte)
	defer recordBuffers.Put(bp)
	b := slices.Grow((*bp)[:0], RecordHeader+len(data))[:RecordHeader]
	putRecordHeader(b, h, uint64(len(data)))
	b = append(b, data...)
	*bp = b
	n, err := p.f.WriteAt(b, int64(off))
	p.s.stats.written.Add(uint64(n))
	return err
}

// close cuts off what was never handed over, removes a pack of which nothing was, and gives up the
// lock.
func (p *packWriter) close() error {
	var err error
	switch {
	case p.created && p.handed <= packHeaderSize:
		err = os.Remove(p.f.Name())
	case p.end > p.handed:
		err = p.f.Truncate(int64(p.handed))
	}
	return errors.Join(err, p.f.Close())
}

// abandon keeps this process from appending to a pack again.
func (s *Store) abandon(num uint32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.abandoned[num] = true
}

func (s *Store) isAbandoned(num uint32) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.abandoned[num]
}

// packNumbers lists the packs in ascending order. Other names in the folder are not ours to judge.
func (s *Store) packNumbers() ([]uint32, error) {
	names, err := readNames(filepath.Join(s.dir, packsDir))
	if err != nil {
		return nil, err
	}
	var nums []uint32
	for _, name := range names {
		if n, ok := parsePackName(name); ok {
			nums = append(nums, n)
		}
	}
	slices.Sort(nums)
	return nums, nil
}

func parsePackName(name string) (uint32, bool) {
	hex, ok := strings.CutSuffix(name, ".pack")
	if !ok || len(hex) != 8 || strings.ToLower(hex) != hex {
		return 0, false
	}
	n, err := strconv.ParseUint(hex, 16, 32)
	return uint32(n), err == nil && n != 0
}

// takeTries bounds how many packs a writer looks at before it makes a new one.
const takeTries = 16

// takePack locks the last free pack with room for need bytes, or makes a new one. The caller holds
// Batch.mu.
func (b *Batch) takePack(need uint64) (*packWriter, error) {
	nums, err := b.s.packNumbers()
	if err != nil {
		return nil, err
	}
	for i := len(nums) - 1; i >= max(0, len(nums)-takeTries); i-- {
		p, err := b.tryPack(nums[i], need)
		if p != nil || err != nil {
			return p, err
		}
	}
	next := uint64(1)
	if len(nums) > 0 {
		next = uint64(nums[len(nums)-1]) + 1
	}
	for ; next <= math.MaxUint32; next++ {
		p, err := b.newPack(uint32(next))
		if p != nil || err != nil {
			return p, err
		}
	}
	return nil, errors.New("all pack numbers are used up")
}

// room answers the committed end of a pack that may be appended to.
func (b *Batch) room(num uint32, need uint64) (end uint64, ok bool, err error) {
	end, ok, err = b.packEnd(num)
	if err != nil {
		return 0, false, fmt.Errorf("look up the end of pack %08x: %w", num, err)
	}
	end = max(end, packHeaderSize)
	return end, ok && end+need <= b.s.packSize && end+need > end, nil
}

// tryPack locks a pack and cuts it back to its committed end. It returns nil when the pack is full,
// unknown to the caller, another owner's, in somebody else's hands, or not in the state that its end
// promises: fsck reports such a pack, nobody appends to it.
func (b *Batch) tryPack(num uint32, need uint64) (*packWriter, error) {
	if b.s.isAbandoned(num) {
		return nil, nil
	}
	if _, ok, err := b.room(num, need); !ok || err != nil {
		return nil, err
	}
	f, _, err := openFile(b.s.packPath(num), os.O_RDWR)
	if errors.Is(err, fs.ErrPermission) || err != nil && !passing(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if !b.s.owns(f) {
		return nil, f.Close()
	}
	p, err := b.lockPack(f, num, need)
	if p == nil {
		return nil, errors.Join(err, f.Close())
	}
	return p, nil
}

// owns tells whether a pack has the store's own owner. A pack that another database made may hold
// records behind the end that this one knows: they are that database's, and must not be cut off. The
// header stands as long as the file does, so no lock is needed to read it.
func (s *Store) owns(f *os.File) bool {
	var head [packHeaderSize]byte
	n, _ := f.ReadAt(head[:], 0)
	return n == len(head) && head == packHeader(s.opts.Owner)
}

// lockPack is the part of tryPack that holds the descriptor. The end is asked for again under the
// lock: the last holder may have moved it.
func (b *Batch) lockPack(f *os.File, num uint32, need uint64) (*packWriter, error) {
	if ok, err := tryLock(f); !ok || err != nil {
		return nil, err
	}
	if ok, err := stillAt(f, f.Name()); !ok || err != nil {
		return nil, err
	}
	end, ok, err := b.room(num, need)
	if !ok || err != nil {
		return nil, err
	}
	st, err := fstat(f)
	if err != nil {
		return nil, err
	}
	if uint64(st.size) < end {
		return nil, nil
	}
	if uint64(st.size) > end {
		if err := f.Truncate(int64(end)); err != nil {
			return nil, err
		}
	}
	return &packWriter{s: b.s, f: f, num: num, created: end == packHeaderSize, end: end, handed: end}, nil
}

// start makes the file an empty pack.
func (p *packWriter) start() error {
	if err := p.f.Truncate(0); err != nil {
		return err
	}
	head := packHeader(p.s.opts.Owner)
	n, err := p.f.WriteAt(head[:], 0)
	p.s.stats.written.Add(uint64(n))
	return err
}

// newPack makes and locks a pack. It returns nil when the number is taken: by a file, by a record
// of the caller's (a pack that was lost keeps its number), or by somebody who locked the new file
// first.
func (b *Batch) newPack(num uint32) (*packWriter, error) {
	if _, known, err := b.packEnd(num); known || err != nil {
		return nil, err
	}
	f, err := b.s.createFile(b.s.packPath(num))
	if errors.Is(err, fs.ErrExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	ok, err := tryLock(f)
	if !ok {
		return nil, errors.Join(err, f.Close())
	}
	p := &packWriter{s: b.s, f: f, num: num, created: true, end: packHeaderSize, handed: packHeaderSize}
	if err := p.start(); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

// readNames lists a folder, unsorted.
func readNames(dir string) ([]string, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	names, err := d.Readdirnames(-1)
	return names, errors.Join(err, d.Close())
}
