package snapshot

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sort"
	"sync"
	"time"

	"bole/blobstore"
	"bole/lmdbstore"
	"bole/merkle"
)

// A checkpoint makes what was read so far durable, so that a command killed
// after hours goes on where it was: after so many bytes or seconds, or
// limits.records.
const (
	checkpointBytes = 1 << 30
	checkpointNodes = 16 << 20 // bytes of attribute lists, which are held in memory
	checkpointEvery = 30 * time.Second
)

// recorder gathers records about paths and writes them, contents first, in
// checkpoints. A record is given to it only after its content is stored, and
// after the records that lead to it. One without a repository records nothing.
type recorder struct {
	repo  *Repo
	led   ledger
	batch *blobstore.Batch

	flushing sync.Mutex // one checkpoint at a time; taken before mu

	mu sync.Mutex
	recorded
}

// recorded is what one checkpoint writes.
type recorded struct {
	puts      map[recordKey][]byte // nil deletes
	before    []string             // paths below which nothing may be left when the puts come
	after     []string             // paths below which the puts leave nothing to be reached
	nodes     map[merkle.Hash][]byte
	nodeBytes int
	bytes     uint64
	since     time.Time
}

type recordKey struct {
	table lmdbstore.Table
	key   string
}

func (r *Repo) newRecorder(led ledger) (*recorder, error) {
	batch, err := r.blobs.Begin(r.blobIndex, r.packEnd)
	if err != nil {
		return nil, fmt.Errorf("begin to store contents: %w", err)
	}
	rec := &recorder{repo: r, led: led, batch: batch}
	rec.reset()
	return rec, nil
}

func (c *recorder) reset() {
	c.recorded = recorded{puts: make(map[recordKey][]byte), nodes: make(map[merkle.Hash][]byte), since: time.Now()}
}

// blobIndex and packEnd are what the store of contents asks of the database.
func (r *Repo) blobIndex(h merkle.Hash) (loc blobstore.Location, ok bool, err error) {
	err = r.db.View(func(rd *lmdbstore.Reader) error {
		loc, ok, err = blobLocation(rd, &h)
		return err
	})
	return loc, ok, err
}

func packKey(pack uint32) []byte { return binary.BigEndian.AppendUint32([]byte("pack/"), pack) }

func (r *Repo) packEnd(pack uint32) (end uint64, ok bool, err error) {
	err = r.db.View(func(rd *lmdbstore.Reader) error {
		b, err := rd.Get(lmdbstore.Meta, packKey(pack))
		if errors.Is(err, lmdbstore.ErrNotFound) {
			return nil
		}
		if err == nil && len(b) != 8 {
			err = fmt.Errorf("end of pack %d: %w", pack, merkle.ErrCorrupt)
		}
		if err != nil {
			return err
		}
		end, ok = binary.LittleEndian.Uint64(b), true
		return nil
	})
	return end, ok, err
}

// putStage sets the stage's record of a path.
func (c *recorder) putStage(path string, rec stageRecord) {
	c.set(recordKey{c.led.stage, string(c.led.stageKey(path))}, rec.encode())
}

// replaceStage sets the stage's record of a path, or with nil removes it. Where
// the index had a directory, what is recorded below it goes too.
func (c *recorder) replaceStage(path string, rec *stageRecord, wasDir bool) {
	if c.repo == nil {
		return
	}
	var v []byte
	if rec != nil {
		v = rec.encode()
	}
	c.mu.Lock()
	c.puts[recordKey{c.led.stage, string(c.led.stageKey(path))}] = v
	if wasDir {
		c.after = append(c.after, path)
	}
	c.mu.Unlock()
}

func (c *recorder) putStat(path string, rec statRecord) {
	c.set(recordKey{c.led.stat, string(c.led.statKey(path))}, rec.encode())
}

func (c *recorder) removeStat(path string) {
	c.set(recordKey{c.led.stat, string(c.led.statKey(path))}, nil)
}

func (c *recorder) set(k recordKey, v []byte) {
	if c.repo == nil {
		return
	}
	c.mu.Lock()
	c.puts[k] = v
	c.mu.Unlock()
}

// clearBelow makes sure that nothing is recorded below a path that becomes a
// directory, whatever a killed command left there unreached.
func (c *recorder) clearBelow(path string) {
	if c.repo == nil {
		return
	}
	c.mu.Lock()
	c.before = append(c.before, path)
	c.mu.Unlock()
}

func (c *recorder) putNode(h merkle.Hash, b []byte) {
	if c.repo == nil {
		return
	}
	c.mu.Lock()
	if c.nodes[h] == nil {
		c.nodes[h] = b
		c.nodeBytes += len(b)
	}
	c.mu.Unlock()
}

// stored counts content towards the next checkpoint and makes it when due.
func (c *recorder) stored(bytes uint64) error {
	if c.repo == nil {
		return nil
	}
	c.mu.Lock()
	c.bytes += bytes
	due := c.bytes >= checkpointBytes || len(c.puts) >= limits.records || c.nodeBytes >= checkpointNodes ||
		time.Since(c.since) >= checkpointEvery
	c.mu.Unlock()
	if !due || !c.flushing.TryLock() {
		return nil
	}
	defer c.flushing.Unlock()
	return c.checkpoint()
}

// flush makes everything durable.
func (c *recorder) flush() error {
	if c.repo == nil {
		return nil
	}
	c.flushing.Lock()
	defer c.flushing.Unlock()
	return c.checkpoint()
}

// checkpoint takes the records first and the contents' barrier second: what a
// record names was stored before the record came, so the barrier covers it.
func (c *recorder) checkpoint() error {
	c.mu.Lock()
	now := c.recorded
	c.reset()
	c.mu.Unlock()
	blobs, ends, err := c.batch.Sync()
	if err != nil {
		return fmt.Errorf("store contents: %w", err)
	}
	if err := c.sweep(now.before, false); err != nil {
		return fmt.Errorf("clear old records: %w", err)
	}
	if len(now.puts)+len(now.nodes)+len(blobs)+len(ends) > 0 {
		err = c.repo.db.Update(func(w *lmdbstore.Writer) error {
			for h, b := range now.nodes {
				if err := w.PutNode(h, b); err != nil {
					return err
				}
			}
			if err := putBlobs(w, blobs, ends); err != nil {
				return err
			}
			return putRecords(w, now.puts)
		})
		if err != nil {
			return fmt.Errorf("record: %w", err)
		}
	}
	if err := c.sweep(now.after, true); err != nil {
		return fmt.Errorf("clear old records: %w", err)
	}
	return nil
}

func putBlobs(w *lmdbstore.Writer, blobs []blobstore.Record, ends []blobstore.PackEnd) error {
	sort.Slice(blobs, func(i, j int) bool { return string(blobs[i].Hash[:]) < string(blobs[j].Hash[:]) })
	for i := range blobs {
		if err := w.Put(lmdbstore.Blobs, blobs[i].Hash[:], blobs[i].Location.Encode()); err != nil {
			return err
		}
	}
	for _, e := range ends {
		if err := w.Put(lmdbstore.Meta, packKey(e.Pack), binary.LittleEndian.AppendUint64(nil, e.End)); err != nil {
			return err
		}
	}
	return nil
}

func putRecords(w *lmdbstore.Writer, puts map[recordKey][]byte) error {
	keys := make([]recordKey, 0, len(puts))
	for k := range puts {
		keys = append(keys, k)
	}
	sort.Slice(keys, func(i, j int) bool {
		if keys[i].table != keys[j].table {
			return keys[i].table < keys[j].table
		}
		return keys[i].key < keys[j].key
	})
	for _, k := range keys {
		var err error
		if v := puts[k]; v == nil {
			err = w.Delete(k.table, []byte(k.key))
		} else {
			err = w.Put(k.table, []byte(k.key), v)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// close lets go of the packs. Contents that were not flushed are forgotten.
func (c *recorder) close() error {
	if c.repo == nil {
		return nil
	}
	return c.batch.Close()
}
