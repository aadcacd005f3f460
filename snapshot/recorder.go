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
// after hours goes on where it was: after so many bytes, records, or seconds.
// The records bound keeps a checkpoint's transaction far below LMDB's limit of
// dirty pages even when every record lies on a page of its own.
const (
	checkpointBytes   = 1 << 30
	checkpointRecords = 16 << 10
	checkpointEvery   = 30 * time.Second
)

// recorder gathers records about paths and writes them, contents first, in
// checkpoints. A record is given to it only after its content is stored.
type recorder struct {
	repo  *Repo
	led   ledger
	batch *blobstore.Batch

	flushing sync.Mutex // one checkpoint at a time; taken before mu

	mu    sync.Mutex
	puts  map[recordKey][]byte // nil deletes
	drops []string             // paths below which all records go, before puts
	nodes map[merkle.Hash][]byte
	bytes uint64
	since time.Time
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
	c.puts = make(map[recordKey][]byte)
	c.nodes = make(map[merkle.Hash][]byte)
	c.drops, c.bytes, c.since = nil, 0, time.Now()
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

func (c *recorder) removeStage(path string) {
	c.set(recordKey{c.led.stage, string(c.led.stageKey(path))}, nil)
}

func (c *recorder) putStat(path string, rec statRecord) {
	c.set(recordKey{c.led.stat, string(c.led.statKey(path))}, rec.encode())
}

func (c *recorder) removeStat(path string) {
	c.set(recordKey{c.led.stat, string(c.led.statKey(path))}, nil)
}

func (c *recorder) set(k recordKey, v []byte) {
	c.mu.Lock()
	c.puts[k] = v
	c.mu.Unlock()
}

// dropBelow removes all records below a path that is no directory any more, or another one.
func (c *recorder) dropBelow(path string) {
	c.mu.Lock()
	c.drops = append(c.drops, path)
	c.mu.Unlock()
}

func (c *recorder) putNode(h merkle.Hash, b []byte) {
	c.mu.Lock()
	c.nodes[h] = b
	c.mu.Unlock()
}

// stored counts content towards the next checkpoint and makes it when due.
func (c *recorder) stored(bytes uint64) error {
	c.mu.Lock()
	c.bytes += bytes
	due := c.bytes >= checkpointBytes || len(c.puts) >= checkpointRecords || time.Since(c.since) >= checkpointEvery
	c.mu.Unlock()
	if !due || !c.flushing.TryLock() {
		return nil
	}
	defer c.flushing.Unlock()
	return c.checkpoint()
}

// flush makes everything durable.
func (c *recorder) flush() error {
	c.flushing.Lock()
	defer c.flushing.Unlock()
	return c.checkpoint()
}

// checkpoint takes the records first and the contents' barrier second: what a
// record names was stored before the record came, so the barrier covers it.
func (c *recorder) checkpoint() error {
	c.mu.Lock()
	puts, drops, nodes := c.puts, c.drops, c.nodes
	c.reset()
	c.mu.Unlock()
	blobs, ends, err := c.batch.Sync()
	if err != nil {
		return fmt.Errorf("store contents: %w", err)
	}
	if len(puts)+len(drops)+len(nodes)+len(blobs)+len(ends) == 0 {
		return nil
	}
	err = c.repo.db.Update(func(w *lmdbstore.Writer) error {
		for _, path := range drops {
			if err := c.led.dropBelow(w, path); err != nil {
				return err
			}
		}
		for h, b := range nodes {
			if err := w.PutNode(h, b); err != nil {
				return err
			}
		}
		if err := putBlobs(w, blobs, ends); err != nil {
			return err
		}
		return putRecords(w, puts)
	})
	if err != nil {
		return fmt.Errorf("record: %w", err)
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

// dropBelow removes the records of everything below a path from both tables.
func (l ledger) dropBelow(w *lmdbstore.Writer, path string) error {
	stage, stat := l.stageDir(path), l.statDir(path)
	err := dropDir(w, l.stage, stage, func(name, v []byte) (bool, error) {
		rec, err := decodeStage(v)
		return rec.hasBelow(), err
	}, func(name string) error { return l.dropBelow(w, joinPath(path, name)) })
	if err != nil {
		return err
	}
	return dropDir(w, l.stat, stat, func(name, v []byte) (bool, error) {
		rec, err := decodeStat(v)
		return rec.kind == merkle.KindDir, err
	}, func(name string) error { return l.dropBelow(w, joinPath(path, name)) })
}

func dropDir(w *lmdbstore.Writer, t lmdbstore.Table, prefix [dirKeySize]byte,
	isDir func(name, v []byte) (bool, error), below func(string) error) error {
	var keys, dirs []string
	err := w.Scan(t, prefix[:], nil, func(k, v []byte) error {
		if len(k) == dirKeySize {
			return nil // the root's own record
		}
		dir, err := isDir(k[dirKeySize:], v)
		if dir {
			dirs = append(dirs, string(k[dirKeySize:]))
		}
		keys = append(keys, string(k))
		return err
	})
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := w.Delete(t, []byte(k)); err != nil {
			return err
		}
	}
	for _, d := range dirs {
		if err := below(d); err != nil {
			return err
		}
	}
	return nil
}

// close lets go of the packs. Contents that were not flushed are forgotten.
func (c *recorder) close() error { return c.batch.Close() }
