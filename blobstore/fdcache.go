package blobstore

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// File is an open pack or whole file, shared by its users and by the cache that it came from.
type File struct {
	f    *os.File
	id   fileID
	size atomic.Int64 // as last seen by fstat
	refs atomic.Int32
}

// File returns the descriptor, open for reading and positioned anywhere: use ReadAt. It stays open
// until Release.
func (f *File) File() *os.File { return f.f }

// Size returns the file's size in bytes when it was opened.
func (f *File) Size() int64 { return f.size.Load() }

// Release gives the file back. It must be called exactly once, and the File not be used afterwards.
func (f *File) Release() { f.release() }

func (f *File) release() error {
	switch n := f.refs.Add(-1); {
	case n == 0:
		return f.f.Close()
	case n < 0:
		invariant("File released twice")
	}
	return nil
}

// fdCache is a bounded LRU of open files. The cache holds one count on each of its files and every
// user another, so a file that falls out of it is closed by its last user.
type fdCache[K comparable] struct {
	open func(K) (*File, error)

	mu  sync.Mutex
	lru *simplelru.LRU[K, *File]
	err error // the first error of a close by eviction
}

func newFDCache[K comparable](size int, open func(K) (*File, error)) *fdCache[K] {
	c := &fdCache[K]{open: open}
	lru, err := simplelru.NewLRU(max(size, 1), func(_ K, f *File) {
		if err := f.release(); err != nil && c.err == nil {
			c.err = err
		}
	})
	if err != nil {
		panic(err) // only for a size below 1
	}
	c.lru = lru
	return c
}

// get returns the file with a count for the caller, who must release it. A file is opened outside
// the lock, so two goroutines may open the same one; the first to come back is kept.
func (c *fdCache[K]) get(key K) (*File, error) {
	if f := c.lookup(key); f != nil {
		return f, nil
	}
	f, err := c.open(key)
	if err != nil {
		return nil, err
	}
	f.refs.Store(2)
	c.mu.Lock()
	if won, ok := c.lru.Get(key); ok {
		won.refs.Add(1)
		c.mu.Unlock()
		if err := f.f.Close(); err != nil {
			return nil, errors.Join(err, won.release())
		}
		return won, nil
	}
	c.lru.Add(key, f)
	c.mu.Unlock()
	return f, nil
}

func (c *fdCache[K]) lookup(key K) *File {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.lru.Get(key)
	if !ok {
		return nil
	}
	f.refs.Add(1)
	return f
}

// drop forgets the file under key if it is still f, so that the next get opens it anew.
func (c *fdCache[K]) drop(key K, f *File) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now, ok := c.lru.Peek(key); ok && now == f {
		c.lru.Remove(key)
	}
}

// forget forgets whatever file stands under key.
func (c *fdCache[K]) forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Remove(key)
}

// purge empties the cache and returns the first error that closing a file gave.
func (c *fdCache[K]) purge() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lru.Purge()
	err := c.err
	c.err = nil
	return err
}
