package fs

import (
	"os"
	"sync"
	"sync/atomic"

	"github.com/hanwen/go-fuse/v2/fuse"

	"bole/merkle"
)

// Pushing ahead. A program that reads a folder's small files in the order of
// its listing (tar, rsync, cp) sends one READ and sleeps until it is answered,
// for every file. So after one such READ the contents of the next files are put
// into the kernel's page cache unasked, where the program finds them.

const (
	firstWindow = 16      // files pushed after the first READ in a directory
	maxWindow   = 64      // and, doubling, after each READ that went on where pushing had ended
	windowBytes = 1 << 20 // of contents in one window
	pushQueue   = 64      // windows that wait; more are dropped
	maxCredit   = 64
	hitCredit   = 16
	probeEvery  = 8
)

// stream is what a row remembers of the READs in it. Guarded by rows.mu.
type stream struct {
	last   uint32 // slot that was read last; 0: none
	ahead  uint32 // first slot that was not pushed; 0: nothing was
	window uint32 // files pushed last time
}

// read notes a READ of a slot and says how many of the files after it are worth
// pushing; 0 for none. credit is the mount's: it is spent where contents are
// pushed on the mere chance, and earned where a READ shows that they were used.
func (s *stream) read(slot uint32, credit *int) uint32 {
	last, ahead := s.last, s.ahead
	s.last = slot
	switch {
	case ahead != 0 && slot >= ahead && slot-ahead <= 1:
		// All that was pushed was skipped over without a READ.
		*credit = min(*credit+hitCredit, maxCredit)
		s.window = min(2*s.window, maxWindow)
	case ahead != 0 && slot < ahead && slot > last:
		return 0 // the program is faster than the pushing
	case last != 0 && slot > last && slot-last <= 2:
		s.window = firstWindow
	case last == 0 && *credit > 0:
		*credit--
		s.window = firstWindow
	default:
		s.ahead = 0
		return 0
	}
	s.ahead = slot + 1 + s.window
	return s.window
}

// pusher is the goroutine that pushes. Handlers only leave it a note.
type pusher struct {
	f      *filesystem
	jobs   chan pushJob
	credit int // guarded by rows.mu
	probes atomic.Uint32
}

type pushJob struct {
	r     *row
	slot  uint32 // that was read
	files uint32 // to push after it
}

func newPusher(f *filesystem) *pusher {
	return &pusher{f: f, jobs: make(chan pushJob, pushQueue), credit: maxCredit}
}

// saw is told of each READ of a small file, once it is answered. It never waits.
func (p *pusher) saw(r *row, slot uint32) {
	p.f.rows.mu.Lock()
	n := r.stream.read(slot, &p.credit)
	p.f.rows.mu.Unlock()
	if n == 0 {
		return
	}
	if inlinePush {
		b := batches.Get().(*batch)
		p.push(b, pushJob{r, slot, n})
		batches.Put(b)
		return
	}
	select {
	case p.jobs <- pushJob{r, slot, n}:
	default:
	}
}

// run pushes until stop is closed.
func (p *pusher) run(stop <-chan struct{}) {
	var b batch
	for {
		select {
		case j := <-p.jobs:
			p.push(&b, j)
		case <-stop:
			return
		}
	}
}

// batch is what one window holds. Its memory is kept for the next.
type batch struct {
	files []smallFile
	buf   []byte
}

type smallFile struct {
	slot uint32
	size uint32
	hash merkle.Hash
}

// gather collects up to n small files from a slot on. end is the slot after
// the last entry looked at, whole says that the directory ended there.
func (b *batch) gather(rd merkle.Reader, r *row, from uint32, n int, bytes uint64) (end uint32, whole bool, err error) {
	b.files = b.files[:0]
	d, err := merkle.OpenDir(rd, &r.hash)
	if err != nil {
		return from, false, err
	}
	if uint64(from-1) >= d.Len() {
		return from, true, nil
	}
	c := d.Seek(uint64(from - 1))
	var e merkle.Entry
	for end = from; len(b.files) < n; end++ {
		ok, err := c.Next(&e)
		if err != nil || !ok {
			return end, err == nil, err
		}
		if e.Kind != merkle.KindFile || e.Size == 0 || e.Size > smallContent {
			continue
		}
		if bytes < e.Size {
			return end, false, nil
		}
		bytes -= e.Size
		b.files = append(b.files, smallFile{slot: end, size: uint32(e.Size), hash: e.Hash})
	}
	return end, false, nil
}

func (p *pusher) push(b *batch, j pushJob) {
	var end uint32
	var whole bool
	err := p.f.repo.View(func(rd merkle.Reader) (err error) {
		end, whole, err = b.gather(rd, j.r, j.slot+1, int(j.files), windowBytes)
		return err
	})
	if err != nil {
		return // the READ that meets the damage reports it
	}
	if n := len(b.files); whole && n > 1 && p.probes.Add(1)%probeEvery == 0 {
		// Where all the rest of a directory is pushed, nothing would tell
		// whether it was used: so now and then one file is left to be asked for.
		end = b.files[n-1].slot
		b.files = b.files[:n-1]
	}
	p.f.rows.mu.Lock()
	if j.r.stream.ahead != 0 {
		j.r.stream.ahead = end
	}
	p.f.rows.mu.Unlock()
	for _, s := range b.files {
		if p.f.store(b, j.r, s) == fuse.ENOENT {
			return // the kernel holds the directory's files no more, or not yet
		}
	}
}

// store puts one verified content into the page cache of an inode that the
// kernel holds; ENOENT when it does not.
func (f *filesystem) store(b *batch, r *row, s smallFile) fuse.Status {
	if b.buf == nil {
		b.buf = make([]byte, smallContent+recordSlack)
	}
	data, err := f.repo.ReadContent(s.hash, b.buf)
	if err != nil || len(data) != int(s.size) {
		return fuse.EIO // likewise
	}
	st := f.server.InodeNotifyStoreCache(r.entryID(s.slot), 0, data)
	if st.Ok() {
		f.counters.pushed.Add(1)
		f.counters.pushedBytes.Add(uint64(len(data)))
	}
	return st
}

var inlinePush = os.Getenv("INLINE") != ""
var batches = sync.Pool{New: func() any { return new(batch) }}
