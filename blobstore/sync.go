package blobstore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
)

// cut is what one Sync makes durable.
type cut struct {
	records []Record
	whole   []pendingWhole
	packs   []*packWriter
	ends    []PackEnd // of packs, in their order
	newDir  bool      // packs/ has a new entry
}

// Sync is the barrier. It makes everything stored since the last Sync durable under its final name,
// and hands out the records for the caller's table and the ends of the packs they lie in; both
// belong to the caller from then on. Nothing to do: no records, no barrier.
//
// Order: the bytes (fdatasync of each pack; fsync of each whole file, or one syncfs for more than
// 64), the renames, each folder once. Contents that are put while Sync runs belong to the next one.
// Sync must not be called again before the transaction that names the last records is durable: it
// forgets what was handed over, because the index knows it now.
func (b *Batch) Sync() ([]Record, []PackEnd, error) {
	b.syncing.Lock()
	defer b.syncing.Unlock()
	c, err := b.takeCut()
	if err != nil || len(c.records) == 0 {
		return nil, nil, err
	}
	err = b.barrier(c)
	for i := range c.whole {
		// What has its final name has no temporary one any more, or, linked, does not need it.
		if e := c.whole[i].discard(); err == nil && e != nil {
			err = e
		}
	}
	if err != nil {
		return nil, nil, b.fail(fmt.Errorf("make contents durable: %w", err))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, p := range c.packs {
		p.handed = c.ends[i].End
		p.created = false
	}
	return c.records, c.ends, nil
}

// takeCut moves what was stored so far out of the batch. It waits for the writes that are under
// way: each is one record.
func (b *Batch) takeCut() (*cut, error) {
	b.writes.Lock()
	defer b.writes.Unlock()
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(); err != nil {
		return nil, err
	}
	if err := b.releasePacks(); err != nil {
		return nil, err
	}
	c := &cut{records: b.cur.records, whole: b.whole}
	b.prev, b.cur, b.whole, b.open = generation{seen: b.cur.seen}, generation{}, nil, 0
	for _, p := range b.packs {
		if p.end > p.handed {
			c.packs = append(c.packs, p)
			c.ends = append(c.ends, PackEnd{p.num, p.end})
			c.newDir = c.newDir || p.created
		}
	}
	return c, nil
}

// releasePacks closes the full packs whose end the caller has committed, so that a long batch does
// not keep them all open. The caller holds mu.
func (b *Batch) releasePacks() error {
	kept := b.packs[:0]
	var first error
	for _, p := range b.packs {
		done := p != b.pack && p.handed == p.end
		if done {
			end, ok, err := b.packEnd(p.num)
			done = err == nil && ok && end >= p.end
		}
		if !done {
			kept = append(kept, p)
		} else if err := p.close(); err != nil && first == nil {
			first = err
		}
	}
	b.packs = kept
	return first
}

// barrier writes, renames and flushes in the order that makes a crash at any point harmless.
func (b *Batch) barrier(c *cut) error {
	if err := b.flush(c); err != nil {
		return err
	}
	dirs, err := b.place(c)
	if err != nil {
		return err
	}
	if c.newDir {
		dirs = append(dirs, filepath.Join(b.s.dir, packsDir))
	}
	if len(dirs) > fsyncEach && b.s.trustSyncFS {
		if err := b.s.syncFS(b.fsys); err != nil {
			return err
		}
	} else {
		for _, d := range dirs {
			if err := b.s.syncDir(d); err != nil {
				return err
			}
		}
	}
	b.s.markDurable(c.whole)
	return nil
}

// flush makes the bytes durable. A pack whose flush failed is abandoned.
func (b *Batch) flush(c *cut) error {
	if b.s.trustSyncFS && c.wantsSyncFS() {
		err := b.s.syncFS(b.fsys)
		if err != nil {
			for _, p := range c.packs {
				b.s.abandon(p.num)
			}
		}
		return err
	}
	var g errgroup.Group
	g.SetLimit(16)
	for _, p := range c.packs {
		g.Go(func() error {
			err := b.s.syncData(p.f)
			if err != nil {
				b.s.abandon(p.num)
			}
			return err
		})
	}
	for i := range c.whole {
		if w := &c.whole[i]; !w.synced {
			g.Go(func() error { return b.s.syncFile(w.f) })
		}
	}
	return g.Wait()
}

// wantsSyncFS tells whether the file system is flushed as a whole: there are many whole files, or
// one was closed already because there were many in work.
func (c *cut) wantsSyncFS() bool {
	closed := func(w pendingWhole) bool { return w.f == nil && !w.synced }
	return len(c.whole) > fsyncEach || slices.ContainsFunc(c.whole, closed)
}

// place gives the whole files their final names and returns the folders that gained an entry.
func (b *Batch) place(c *cut) ([]string, error) {
	var dirs []string
	var touched [256]bool
	parent := false
	for i := range c.whole {
		w := &c.whole[i]
		final := b.s.wholePath(&w.hash)
		dir := filepath.Dir(final)
		if x := w.hash[0]; !touched[x] {
			touched[x] = true
			dirs = append(dirs, dir)
			made, err := b.s.mkdir(dir)
			if err != nil {
				return nil, err
			}
			// A folder that another process made may not be durable yet either, if that process died.
			parent = parent || made || !b.s.isDurable(x)
		}
		if err := b.placeOne(w, final); err != nil {
			return nil, err
		}
	}
	if parent {
		dirs = append(dirs, filepath.Join(b.s.dir, wholeDir))
	}
	return dirs, nil
}

// placeOne gives one file its final name.
func (b *Batch) placeOne(w *pendingWhole, final string) error {
	if w.linked {
		return b.placeLinked(w, final)
	}
	if err := os.Rename(w.temp, final); err != nil {
		return err
	}
	w.temp = ""
	b.s.forgetWhole(&w.hash)
	return nil
}

// placeLinked places a file that shares its inode with the source. It is compared with what was
// hashed first: its owner may have written to it since. And it never takes the place of a sealed
// file of the same content, which another process may just have put there: a commit may rely on
// that one, while this one can be written to until it is sealed.
func (b *Batch) placeLinked(w *pendingWhole, final string) error {
	at := w.temp
	if at == "" {
		at = final
	}
	if err := checkLinked(at, w); err != nil || w.temp == "" {
		return err
	}
	err := os.Link(w.temp, final)
	if errors.Is(err, fs.ErrExist) {
		if b.s.wholeLooksRight(&w.hash, uint64(w.size)) && b.s.VerifyWhole(w.hash) == nil {
			return nil
		}
		err = os.Rename(w.temp, final)
	}
	// The temporary name is still there, but after a rename of another inode; discard removes it.
	if err == nil {
		b.s.forgetWhole(&w.hash)
	}
	return err
}

// checkLinked returns ErrChanged naming the source when a linked file is not what was hashed.
func checkLinked(at string, w *pendingWhole) error {
	f, st, err := openFile(at, os.O_RDONLY)
	if err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if !st.sameBytes(w.id) {
		return fmt.Errorf("store %s: %w", w.source, ErrChanged)
	}
	return nil
}

func (s *Store) isDurable(x byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.durable[x]
}

// markDurable notes the fan-out folders whose entries in whole/ are durable.
func (s *Store) markDurable(whole []pendingWhole) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range whole {
		s.durable[whole[i].hash[0]] = true
	}
}
