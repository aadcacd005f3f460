package fs

import (
	"github.com/hanwen/go-fuse/v2/fuse"

	"bole/merkle"
)

// Pushing ahead. A program that reads a folder's small files in the order of
// its listing (tar, rsync, cp) sends one READ and sleeps until it is answered,
// for every file. So the handler of such a READ also reads the next files, and
// when its answer is out their contents are put into the kernel's page cache
// unasked, one write each, where the program finds them.
//
// They are sent by the goroutine that has just answered (go-fuse calls the
// reply's Done), not by one of its own: on two CPUs, waking another one costs
// the program enough time to ask for the file itself (see docs/DESIGN.md). The
// kernel may make such a write wait for a page that a READ is under way for.
// That READ is answered all the same: whoever takes a request from the kernel
// sees to it that another goroutine waits for the next, no handler waits for a
// push, and a push begins when its own READ is answered.

const (
	firstWindow = 16        // files pushed after the first READ in a directory
	maxWindow   = 64        // and, doubling, after each READ that went on where pushing had ended
	windowBytes = 256 << 10 // of contents in one window
	pushers     = 4         // windows under way at a time; further READs push nothing
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

// pusher holds what pushing needs for the whole mount.
type pusher struct {
	f      *filesystem
	free   chan *window
	credit int    // guarded by rows.mu
	probes uint32 // guarded by rows.mu
}

func newPusher(f *filesystem) *pusher {
	p := &pusher{f: f, free: make(chan *window, pushers), credit: maxCredit}
	for range pushers {
		p.free <- &window{}
	}
	return p
}

// window is some contents on their way. Its memory is kept for the next.
type window struct {
	row   *row
	files []smallFile
	data  []byte // the files' contents, one after the other
	buf   []byte // of one content, while it is read
}

// smallFile is a file whose content is pushed whole.
type smallFile struct {
	slot uint32
	size uint32
	hash merkle.Hash
}

// gather collects up to n small files from a slot on. end is the slot after
// the last entry looked at, whole says that the directory ended there.
func (w *window) gather(rd merkle.Reader, r *row, from uint32, n int, bytes uint64) (end uint32, whole bool, err error) {
	w.files = w.files[:0]
	d, err := merkle.OpenDir(rd, &r.hash)
	if err != nil {
		return from, false, err
	}
	if uint64(from-1) >= d.Len() {
		return from, true, nil
	}
	c := d.Seek(uint64(from - 1))
	var e merkle.Entry
	for end = from; len(w.files) < n; end++ {
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
		w.files = append(w.files, smallFile{slot: end, size: uint32(e.Size), hash: e.Hash})
	}
	return end, false, nil
}

// prepare is told of each READ of a small file before it is answered. It reads
// and verifies what is worth pushing; nil for nothing.
func (p *pusher) prepare(r *row, slot uint32) *window {
	p.f.rows.mu.Lock()
	n := r.stream.read(slot, &p.credit)
	p.f.rows.mu.Unlock()
	if n == 0 {
		return nil
	}
	select {
	case w := <-p.free:
		w.row = r
		p.collect(w, slot+1, int(n))
		return w
	default:
		return nil
	}
}

// collect fills a window with the files from a slot on.
func (p *pusher) collect(w *window, from uint32, n int) {
	var end uint32
	var whole bool
	err := p.f.repo.View(func(rd merkle.Reader) (err error) {
		end, whole, err = w.gather(rd, w.row, from, n, windowBytes)
		return err
	})
	if err != nil {
		w.files = w.files[:0] // the request that meets the damage reports it
	}
	p.f.rows.mu.Lock()
	if last := len(w.files) - 1; whole && last > 0 {
		// Where all the rest of a directory is pushed, nothing would tell
		// whether it was used: so now and then one file is left to be asked for.
		if p.probes++; p.probes%probeEvery == 0 {
			end = w.files[last].slot
			w.files = w.files[:last]
		}
	}
	w.row.stream.ahead = end
	p.f.rows.mu.Unlock()

	w.data = w.data[:0]
	for i := range w.files {
		data, err := w.read(p.f, &w.files[i])
		if err != nil {
			w.files = w.files[:i]
			return
		}
		w.data = append(w.data, data...)
	}
}

// read reads and verifies one content. The bytes live until the next call.
func (w *window) read(f *filesystem, s *smallFile) ([]byte, error) {
	if w.buf == nil {
		w.buf = make([]byte, smallContent+recordSlack)
	}
	data, err := f.repo.ReadContent(s.hash, w.buf)
	if err == nil && len(data) != int(s.size) {
		err = errSize
	}
	return data, err
}

// send pushes a window, less what the program has asked for in the meantime.
// It is called when the READ is answered.
func (p *pusher) send(w *window) {
	data := w.data
	for i := range w.files {
		s := &w.files[i]
		content := data[:s.size]
		data = data[s.size:]
		if p.passed(w.row, s.slot) {
			continue
		}
		if p.f.store(w.row, s.slot, content) == fuse.ENOENT {
			break // the kernel does not hold the directory's files
		}
	}
	p.free <- w
}

// passed says whether the program has read up to a slot by itself.
func (p *pusher) passed(r *row, slot uint32) bool {
	p.f.rows.mu.Lock()
	defer p.f.rows.mu.Unlock()
	return r.stream.last >= slot
}

// store puts one whole content into the page cache of an inode that the kernel
// holds; ENOENT when it does not.
func (f *filesystem) store(r *row, slot uint32, content []byte) fuse.Status {
	st := f.server.InodeNotifyStoreCache(r.entryID(slot), 0, content)
	if st.Ok() {
		f.counters.pushed.Add(1)
		f.counters.pushedBytes.Add(uint64(len(content)))
	}
	return st
}
