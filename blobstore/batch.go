package blobstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"

	"bole/merkle"
)

// Index looks a content up in the caller's table of contents. It is called from many goroutines at
// once and must see everything that the caller had committed when Begin was called.
type Index func(h merkle.Hash) (Location, bool, error)

// PackEndFunc answers the committed end of a pack: the last PackEnd that the caller stored for it.
// It must read what is committed at the moment of the call, never an older snapshot: a pack is cut
// back to the end that it answers. A pack with ok false is left alone, and so is one of another
// owner; an end of 0 gives a pack free from its first record on.
type PackEndFunc func(pack uint32) (end uint64, ok bool, err error)

// Batch stores contents. Its Put and Link methods may be called from many goroutines, also while
// Sync runs; Close only after all of them have returned.
//
// A write that fails in a pack, and any failed barrier, is final: every later call returns that
// error, nothing since the last Sync is handed over, and the pack is not written to again by this
// process.
type Batch struct {
	s       *Store
	index   Index
	packEnd PackEndFunc
	fsys    *os.File // open since before the first write, for syncfs
	temps   tempOwner

	ctx context.Context // of Until, or nil

	syncing sync.Mutex
	writes  sync.RWMutex

	mu     sync.Mutex
	cur    generation     // stored since the last Sync
	prev   generation     // handed over by the last Sync; the caller's index may not know it yet
	pack   *packWriter    // the one that takes appends, or nil
	packs  []*packWriter  // all that are locked
	whole  []pendingWhole // finished temporary files since the last Sync
	open   int            // how many of them keep a descriptor for fsync
	err    error
	closed bool
}

// generation is what one barrier covers. The records are handed to the caller, who may do with them
// what he likes; so what has to be known of them afterwards is kept apart.
type generation struct {
	records []Record
	seen    map[merkle.Hash]struct{}
	bytes   uint64
}

func (g *generation) has(h *merkle.Hash) bool {
	_, ok := g.seen[*h]
	return ok
}

func (g *generation) add(r Record) {
	if g.seen == nil {
		g.seen = map[merkle.Hash]struct{}{}
	}
	g.seen[r.Hash] = struct{}{}
	g.records = append(g.records, r)
	g.bytes += r.Location.Length
}

// Begin starts a batch. It removes the temporary files of writers that are gone; those of the
// living stay.
func (s *Store) Begin(index Index, packEnd PackEndFunc) (*Batch, error) {
	if err := s.sweepTemps(); err != nil {
		return nil, fmt.Errorf("remove old temporary files: %w", err)
	}
	d, err := os.Open(s.dir)
	if err != nil {
		return nil, fmt.Errorf("begin storing contents: %w", err)
	}
	return &Batch{s: s, index: index, packEnd: packEnd, fsys: d, temps: tempOwner{s: s}}, nil
}

// Until makes PutFile and LinkFile of a large file give up with ctx's error soon after ctx has ended; a
// file of terabytes would otherwise keep an interrupted command for hours. Nothing of that file
// stays. Call it before the first of them.
func (b *Batch) Until(ctx context.Context) { b.ctx = ctx }

// stopped is asked between the chunks of a file.
func (b *Batch) stopped() error {
	if b.ctx == nil {
		return nil
	}
	return b.ctx.Err()
}

// PutBytes stores a content of at most MaxRecord bytes in a pack, unless it is stored already, and
// returns its hash. data is only read during the call. Errors: ErrTooLarge, ErrClosed, the
// system's.
func (b *Batch) PutBytes(data []byte) (merkle.Hash, error) {
	if len(data) > MaxRecord {
		return merkle.Hash{}, fmt.Errorf("store %d bytes: %w", len(data), ErrTooLarge)
	}
	h := merkle.ContentHash(data)
	b.s.stats.hashed.Add(uint64(len(data)))
	return h, b.putRecord(&h, data)
}

// Pending returns how many contents and bytes of contents the next Sync will hand over. A batch
// keeps about 100 bytes of memory for each of these contents, so a caller bounds both.
func (b *Batch) Pending() (contents int, bytes uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.cur.records), b.cur.bytes
}

// known tells whether a content needs no storing.
func (b *Batch) known(h *merkle.Hash) (bool, error) {
	b.mu.Lock()
	ok, err := b.knownHere(h), b.usable()
	b.mu.Unlock()
	if ok || err != nil {
		return ok, err
	}
	loc, ok, err := b.index(*h)
	if err != nil || !ok {
		return false, err
	}
	return loc.Pack != 0 || b.s.wholeLooksRight(h, loc.Length), nil
}

// knownHere looks in what this batch stored. The caller holds mu.
func (b *Batch) knownHere(h *merkle.Hash) bool { return b.cur.has(h) || b.prev.has(h) }

// usable says why the batch takes no more. The caller holds mu.
func (b *Batch) usable() error {
	if b.closed {
		return ErrClosed
	}
	return b.err
}

// fail makes err the batch's last word and returns it.
func (b *Batch) fail(err error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = err
	}
	return err
}

// putRecord appends one content to a pack unless it is known. The place is reserved under the lock
// and written outside it.
func (b *Batch) putRecord(h *merkle.Hash, data []byte) error {
	if ok, err := b.known(h); ok || err != nil {
		return err
	}
	b.writes.RLock()
	defer b.writes.RUnlock()
	p, off, err := b.reserve(h, uint64(len(data)))
	if p == nil || err != nil {
		return err
	}
	if err := p.write(h, data, off); err != nil {
		b.s.abandon(p.num)
		return b.fail(fmt.Errorf("append to pack: %w", err))
	}
	return nil
}

// reserve finds a place for a record and notes it. Without a pack in the answer another goroutine
// was faster and the content is stored already.
func (b *Batch) reserve(h *merkle.Hash, length uint64) (*packWriter, uint64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(); err != nil {
		return nil, 0, err
	}
	if b.knownHere(h) {
		return nil, 0, nil
	}
	need := RecordHeader + length
	if b.pack == nil || b.pack.end+need > b.s.packSize {
		p, err := b.takePack(need)
		if err != nil {
			b.err = err
			return nil, 0, err
		}
		b.pack = p
		b.packs = append(b.packs, p)
	}
	off := b.pack.end
	b.pack.end += need
	b.cur.add(Record{*h, Location{Pack: b.pack.num, Offset: off, Length: length}})
	return b.pack, off, nil
}

// Close ends the batch: it removes what was stored since the last Sync and lets go of the packs.
// Call it when the transaction that names the last records is durable, or when none will come. A
// second Close does nothing.
func (b *Batch) Close() error {
	b.syncing.Lock()
	defer b.syncing.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil
	}
	b.closed = true
	errs := []error{b.fsys.Close()}
	for i := range b.whole {
		errs = append(errs, b.whole[i].discard())
	}
	for _, p := range b.packs {
		errs = append(errs, p.close())
	}
	b.whole, b.packs, b.pack = nil, nil, nil
	b.cur, b.prev = generation{}, generation{}
	errs = append(errs, b.temps.close())
	return errors.Join(errs...)
}
