package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"bole/lmdbstore"
	"bole/merkle"
)

// numbered yields n changes from one buffer, as a caller may, and then err.
func numbered(n int, err error) func(*lmdbstore.Reader) iter.Seq2[merkle.Change, error] {
	return func(*lmdbstore.Reader) iter.Seq2[merkle.Change, error] {
		return func(yield func(merkle.Change, error) bool) {
			var path []byte
			for i := range n {
				path = fmt.Appendf(path[:0], "%06d", i)
				if !yield(merkle.Change{Path: path, Entry: merkle.Entry{Target: path[3:]}}, nil) {
					return
				}
			}
			if err != nil {
				yield(merkle.Change{}, err)
			}
		}
	}
}

func TestReadAheadYieldsAllInOrder(t *testing.T) {
	r := newWork(t).Repo
	boom := errors.New("boom")
	for _, n := range []int{0, 1, aheadBatch - 1, aheadBatch, aheadBatch + 1, 10*aheadBatch + 7} {
		for _, end := range []error{nil, boom} {
			seq, stop := r.readAhead(context.Background(), numbered(n, end))
			i, last := 0, error(nil)
			for c, err := range seq {
				if last = err; err != nil {
					break
				}
				if want := fmt.Sprintf("%06d", i); string(c.Path) != want || string(c.Entry.Target) != want[3:] {
					t.Fatalf("change %d of %d is %q -> %q", i, n, c.Path, c.Entry.Target)
				}
				i++
			}
			stop()
			want := n
			if end != nil {
				want = n - n%aheadBatch // an error ends the commit: what was not handed over is not needed
			}
			if i != want || last != end {
				t.Errorf("%d of %d changes, ended with %v, want %d and %v", i, n, last, want, end)
			}
		}
	}
}

func TestReadAheadCanBeLeft(t *testing.T) {
	r := newWork(t).Repo
	seq, stop := r.readAhead(context.Background(), numbered(100*aheadBatch, nil))
	for range seq {
		break
	}
	stop() // ends although most was not taken
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	seq, stop = r.readAhead(ctx, numbered(10*aheadBatch, nil))
	defer stop()
	var last error
	for _, err := range seq {
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("a cancelled sequence ends with %v", last)
	}
}
