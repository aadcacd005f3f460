package merkle

import (
	"bytes"
	"fmt"
	"sync"
)

// Reader finds nodes by name. The bytes it returns are lent: they may be read,
// never written, for as long as the implementation says. A Reader returns only
// nodes whose name is *h and that Check accepts; otherwise it returns an error
// that matches ErrMissing or ErrCorrupt. The hash is passed by pointer so that
// a call through the interface does not allocate; it must not be kept.
type Reader interface {
	Node(h *Hash) ([]byte, error)
}

// Writer takes new nodes. h is NodeHash(b), and b is valid only during the
// call. Putting a node that is already there changes nothing.
type Writer interface {
	PutNode(h Hash, b []byte) error
}

// MemStore keeps nodes in memory: a Reader and Writer for tests and for trees
// that are compared and thrown away. Safe for use by several goroutines. What
// it lends stays valid for ever.
type MemStore struct {
	mu    sync.RWMutex
	nodes map[Hash][]byte
	bytes int64
}

// NewMemStore returns an empty MemStore.
func NewMemStore() *MemStore { return &MemStore{nodes: make(map[Hash][]byte)} }

// Node returns the node named *h after verifying its name and Check, as a
// store on disk does.
func (m *MemStore) Node(h *Hash) ([]byte, error) {
	m.mu.RLock()
	b, ok := m.nodes[*h]
	m.mu.RUnlock()
	if !ok {
		return nil, &MissingError{Node: *h}
	}
	if NodeHash(b) != *h {
		return nil, corrupt(h, "its bytes have another hash")
	}
	if _, err := Check(h, b); err != nil {
		return nil, err
	}
	return b, nil
}

// PutNode keeps a copy of b under the name h. It refuses other bytes under a
// name that is taken.
func (m *MemStore) PutNode(h Hash, b []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if old, ok := m.nodes[h]; ok {
		if !bytes.Equal(old, b) {
			return fmt.Errorf("putting node %s: the name is taken by other bytes", h)
		}
		return nil
	}
	m.nodes[h] = bytes.Clone(b)
	m.bytes += int64(len(b))
	return nil
}

// Len returns the number of nodes held.
func (m *MemStore) Len() int {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return len(m.nodes)
}

// Bytes returns the sum of the lengths of the nodes held, in bytes.
func (m *MemStore) Bytes() int64 {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return m.bytes
}
