package snapshot

import (
	"context"
	"iter"

	"bole/lmdbstore"
	"bole/merkle"
)

const (
	aheadBatch = 256 // changes handed over at once
	aheadDepth = 8   // batches that wait
)

// readAhead runs a sequence of changes in a goroutine and a read transaction of
// its own, so that one processor reads the stage while another builds the tree.
// stop must be called; it returns once the transaction has ended.
func (r *Repo) readAhead(ctx context.Context, from func(*lmdbstore.Reader) iter.Seq2[merkle.Change, error]) (seq iter.Seq2[merkle.Change, error], stop func()) {
	batches := make(chan []merkle.Change, aheadDepth)
	released, ended := make(chan struct{}), make(chan struct{})
	var failed error // read only after batches is closed
	go func() {
		defer close(ended)
		failed = r.db.View(func(rd *lmdbstore.Reader) error { return sendBatches(ctx, from(rd), batches, released) })
		close(batches)
	}()
	seq = func(yield func(merkle.Change, error) bool) {
		for b := range batches {
			for _, c := range b {
				if !yield(c, nil) {
					return
				}
			}
		}
		if failed != nil {
			yield(merkle.Change{}, failed)
		}
	}
	return seq, func() { close(released); <-ended }
}

// sendBatches copies changes into batches until the sequence ends, fails, or nobody wants more.
func sendBatches(ctx context.Context, seq iter.Seq2[merkle.Change, error], to chan<- []merkle.Change, released <-chan struct{}) error {
	var batch []merkle.Change
	var bytes []byte // of the batch: a change's own live until the next is pulled
	keep := func(b []byte) []byte {
		from := len(bytes)
		bytes = append(bytes, b...)
		return bytes[from:len(bytes):len(bytes)]
	}
	send := func() error {
		select {
		case to <- batch:
			batch, bytes = make([]merkle.Change, 0, aheadBatch), make([]byte, 0, cap(bytes))
			return ctx.Err()
		case <-released:
			return errStopped
		}
	}
	for c, err := range seq {
		if err != nil {
			return err
		}
		c.Path, c.Entry.Target = keep(c.Path), keep(c.Entry.Target)
		if batch = append(batch, c); len(batch) >= aheadBatch {
			if err := send(); err != nil {
				return err
			}
		}
	}
	return send()
}
