package blobstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"bole/merkle"
)

// TestUntilStopsInsideAFile cancels while the first chunk is read: the rest is not, nothing of the
// file stays, and the batch goes on to serve.
func TestUntilStopsInsideAFile(t *testing.T) {
	const size = 8 << 20
	for name, put := range map[string]func(*Batch, *os.File) error{
		"PutFile":  func(b *Batch, f *os.File) error { _, _, err := b.PutFile(f, "big"); return err },
		"LinkFile": func(b *Batch, f *os.File) error { _, _, _, err := b.LinkFile(f, "big"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s, tab, b, source := linkStore(t)
			ctx, cancel := context.WithCancel(context.Background())
			b.Until(ctx)
			s.midRead = cancel
			src := source(1, size)
			if err := put(b, src); !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v, want %v", err, context.Canceled)
			}
			if n := s.Stats().BytesHashed; n == 0 || n > size/2 {
				t.Errorf("%d of %d bytes hashed: want some and not all", n, size)
			}
			s.midRead = nil
			h, err := b.PutBytes([]byte("afterwards"))
			check(t, err)
			syncCommit(t, b, tab)
			wantContent(t, s, tab, h, []byte("afterwards"))
			if left := tab.all(); len(left) != 1 {
				t.Errorf("%d contents recorded, want the small one alone", len(left))
			}
			check(t, b.Close())
			if left := names(t, s, tmpDir); len(left) != 0 {
				t.Errorf("left in tmp: %q", left)
			}
			if got := inode(t, src.Name()); got.size != size || got.nlink != 1 {
				t.Errorf("the source has %d bytes and %d names", got.size, got.nlink)
			}
		})
	}
}

// TestUntilStopsInsideAHole: the zeros of a hole take long to hash as well.
func TestUntilStopsInsideAHole(t *testing.T) {
	_, tab, b, _ := linkStore(t)
	path := filepath.Join(t.TempDir(), "sparse")
	check(t, os.WriteFile(path, nil, 0o644))
	check(t, os.Truncate(path, 16<<30))
	ctx, cancel := context.WithCancel(context.Background())
	b.Until(ctx)
	cancel()
	h, _, err := b.PutFile(openSource(t, path), path)
	if !errors.Is(err, context.Canceled) || h != (merkle.Hash{}) {
		t.Fatalf("hash %s, error %v, want %v", h, err, context.Canceled)
	}
	if len(syncCommit(t, b, tab)) != 0 {
		t.Error("an interrupted file was recorded")
	}
}
