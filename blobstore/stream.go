package blobstore

import (
	"errors"
	"io"
	"os"
	"sync"

	"bole/merkle"
)

const chunkSize = 1 << 20

// chunks are the buffers through which large files flow; each file in work has two.
var chunks = sync.Pool{New: func() any { return new([chunkSize]byte) }}

// zeros stands for the bytes of holes. Nobody writes to it.
var zeros [64 << 10]byte

// errShort says that a file ended before the size that fstat gave.
var errShort = errors.New("file became shorter")

// hashPipe hashes in a goroutine of its own while its user reads and writes.
type hashPipe struct {
	free chan *[chunkSize]byte
	work chan piece
	done chan struct{}
	hash *merkle.ContentHasher
}

// piece is bytes to hash, and the buffer that becomes free afterwards, if it is one of the pipe's.
type piece struct {
	data []byte
	buf  *[chunkSize]byte
}

func newHashPipe() *hashPipe {
	p := &hashPipe{
		free: make(chan *[chunkSize]byte, 2),
		work: make(chan piece, 2),
		done: make(chan struct{}),
		hash: merkle.NewContentHasher(),
	}
	for range cap(p.free) {
		p.free <- chunks.Get().(*[chunkSize]byte)
	}
	go func() {
		defer close(p.done)
		for w := range p.work {
			p.hash.Write(w.data) // a hash never fails
			if w.buf != nil {
				p.free <- w.buf
			}
		}
	}()
	return p
}

// finish waits for the hashing, gives the buffers back, and returns the hash of all pieces.
func (p *hashPipe) finish() merkle.Hash {
	close(p.work)
	<-p.done
	for len(p.free) > 0 {
		chunks.Put(<-p.free)
	}
	return p.hash.Sum()
}

// stream hashes the first size bytes of src and, when dst is not nil, writes them there, holes as
// holes. The position of src moves. stop, when not nil, is asked before each chunk, of a hole
// too, whether to give up. Memory: two
// chunks.
func (s *Store) stream(src *os.File, size int64, dst *os.File, stop func() error) (merkle.Hash, error) {
	adviseSequential(src)
	p := newHashPipe()
	err := s.streamInto(p, src, size, dst, stop)
	h := p.finish()
	if err == nil && dst != nil {
		err = dst.Truncate(size)
	}
	return h, err
}

func (s *Store) streamInto(p *hashPipe, src *os.File, size int64, dst *os.File, stop func() error) error {
	if stop == nil {
		stop = func() error { return nil }
	}
	for off := int64(0); off < size; {
		start, end := nextData(src, off, size)
		for ; off < start; off += min(start-off, int64(len(zeros))) {
			if err := stop(); err != nil {
				return err
			}
			p.work <- piece{data: zeros[:min(start-off, int64(len(zeros)))]}
		}
		for off < end {
			if err := stop(); err != nil {
				return err
			}
			n, err := s.streamChunk(p, src, off, end, dst)
			if err != nil {
				return err
			}
			off += n
		}
	}
	return nil
}

// streamChunk moves one chunk of the data in [off, end). The buffer is hashed by the pipe while it
// is written here; it comes round again only after both.
func (s *Store) streamChunk(p *hashPipe, src *os.File, off, end int64, dst *os.File) (int64, error) {
	buf := <-p.free
	data := buf[:min(chunkSize, end-off)]
	if n, err := src.ReadAt(data, off); n < len(data) {
		p.free <- buf
		if err == io.EOF {
			err = errShort
		}
		return 0, err
	}
	if s.midRead != nil {
		s.midRead()
	}
	p.work <- piece{data, buf}
	s.stats.hashed.Add(uint64(len(data)))
	if dst != nil {
		n, err := dst.WriteAt(data, off)
		s.stats.written.Add(uint64(n))
		if err != nil {
			return 0, err
		}
	}
	return int64(len(data)), nil
}
