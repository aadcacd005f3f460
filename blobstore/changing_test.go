package blobstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"bole/merkle"
)

// changes are what may happen to a file of size bytes in the middle of a read; n counts the reads
// so far.
var changes = map[string]func(f *os.File, size int64, n int) error{
	"second half rewritten": func(f *os.File, size int64, n int) error {
		_, err := f.WriteAt(content(uint64(n), 4096), size/2)
		return err
	},
	"truncated": func(f *os.File, size int64, n int) error { return f.Truncate(size/2 - int64(n)) },
	"emptied":   func(f *os.File, _ int64, _ int) error { return f.Truncate(0) },
	"appended": func(f *os.File, _ int64, _ int) error {
		if _, err := f.Seek(0, io.SeekEnd); err != nil {
			return err
		}
		_, err := f.Write([]byte("more"))
		return err
	},
}

// eachChange runs test for each kind of change, with a small and a large file that are open for
// writing too.
func eachChange(t *testing.T, test func(t *testing.T, s *Store, f *os.File, change func(n int) error)) {
	for name, change := range changes {
		for _, size := range []int{DefaultLimit / 2, 5 << 20} {
			t.Run(fmt.Sprintf("%s/%d", name, size), func(t *testing.T) {
				f := sourceFile(t, content(1, size))
				w, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
				check(t, err)
				defer w.Close()
				test(t, newStore(t), f, func(n int) error { return change(w, int64(size), n) })
			})
		}
	}
}

// TestFileThatKeepsChanging is refused by name after three tries, and nothing of it is kept.
func TestFileThatKeepsChanging(t *testing.T) {
	eachChange(t, func(t *testing.T, s *Store, f *os.File, change func(int) error) {
		tab := newTable()
		b := begin(t, s, tab)
		n := 0
		s.midRead = func() {
			n++
			check(t, change(n))
			if n > 1 {
				// Truncating an empty file is no change.
				check(t, os.Chmod(f.Name(), 0o600+os.FileMode(n%2)*0o40))
			}
		}
		_, _, err := b.PutFile(f, f.Name())
		wantErr(t, err, ErrChanged)
		if !strings.Contains(err.Error(), f.Name()) {
			t.Errorf("error does not name the file: %v", err)
		}
		if n < putTries {
			t.Errorf("read %d times", n)
		}
		if recs := syncCommit(t, b, tab); len(recs) != 0 {
			t.Errorf("%d records of a file that was refused", len(recs))
		}
		if left := names(t, s, tmpDir); len(left) > 1 {
			t.Errorf("copies were left: %v", left)
		}
	})
}

// TestFileThatChangedOnce is read again and stored as it is in the end.
func TestFileThatChangedOnce(t *testing.T) {
	eachChange(t, func(t *testing.T, s *Store, f *os.File, change func(int) error) {
		tab := newTable()
		b := begin(t, s, tab)
		n := 0
		s.midRead = func() {
			if n++; n == 1 {
				check(t, change(n))
			}
		}
		h, size, err := b.PutFile(f, f.Name())
		check(t, err)
		syncCommit(t, b, tab)
		want, err := os.ReadFile(f.Name())
		check(t, err)
		if size != int64(len(want)) {
			t.Errorf("PutFile says %d bytes, the file has %d", size, len(want))
		}
		wantContent(t, s, tab, h, want)
	})
}

// TestStoredBytesMatchUnderAWriter lets a writer run free beside the reader: whatever is taken
// matches its hash.
func TestStoredBytesMatchUnderAWriter(t *testing.T) {
	eachChange(t, func(t *testing.T, s *Store, f *os.File, change func(int) error) {
		tab := newTable()
		b := begin(t, s, tab)
		stop, done := make(chan struct{}), make(chan error, 1)
		go func() {
			for n := 1; ; n++ {
				select {
				case <-stop:
					done <- nil
					return
				case <-time.After(time.Millisecond):
				}
				if err := change(n); err != nil {
					done <- err
					return
				}
			}
		}()
		h, size, err := b.PutFile(f, f.Name())
		close(stop)
		check(t, <-done)
		syncCommit(t, b, tab)
		if errors.Is(err, ErrChanged) {
			return
		}
		check(t, err)
		if data := readBack(t, s, h, tab.all()[h]); int64(len(data)) != size || merkle.ContentHash(data) != h {
			t.Errorf("%d bytes stored for a file of %d, hash %s", len(data), size, h)
		}
	})
}

func TestUnchangedSeesEachChange(t *testing.T) {
	f := sourceFile(t, content(1, 100))
	for name, change := range map[string]func() error{
		"same size":  func() error { return patch(f.Name(), 50, 'x') },
		"truncation": func() error { return os.Truncate(f.Name(), 99) },
		"mode":       func() error { return os.Chmod(f.Name(), 0o600) },
	} {
		before, err := fstat(f)
		check(t, err)
		settle(f, before)
		check(t, unchanged(f, before))
		check(t, change())
		if err := unchanged(f, before); !errors.Is(err, errMoved) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOnlyRegularFiles(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	for _, path := range []string{t.TempDir(), os.DevNull} {
		f := openSource(t, path)
		_, _, err := b.PutFile(f, path)
		wantErr(t, err, ErrNotRegular)
		_, _, _, err = b.LinkFile(f, path)
		wantErr(t, err, ErrNotRegular)
	}
	_, err := b.PutBytes(make([]byte, MaxRecord+1))
	wantErr(t, err, ErrTooLarge)
	_, err = Open(s.dir, Options{Limit: MaxRecord + 1})
	wantErr(t, err, ErrTooLarge)
}

// TestSparseFileKeepsItsHoles: a file of 64 MiB with little data takes little space, and its hash
// covers the zeros.
func TestSparseFileKeepsItsHoles(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	f := sourceFile(t, nil)
	const size = 64 << 20
	check(t, os.Truncate(f.Name(), size))
	w, err := os.OpenFile(f.Name(), os.O_RDWR, 0)
	check(t, err)
	defer w.Close()
	want := merkle.NewContentHasher()
	for _, off := range []int64{5000, 30 << 20} {
		_, err := w.WriteAt([]byte("data"), off)
		check(t, err)
	}
	_, err = io.Copy(want, io.NewSectionReader(w, 0, size))
	check(t, err)
	h, n, err := b.PutFile(f, f.Name())
	check(t, err)
	syncCommit(t, b, tab)
	if h != want.Sum() || n != size {
		t.Fatalf("stored %d bytes as %s, want %s", n, h, want.Sum())
	}
	check(t, s.VerifyWhole(h))
	u, err := s.Usage()
	check(t, err)
	if u.WholeBytes != size || u.WholeAllocated > 1<<20 {
		t.Errorf("%d bytes take %d on the disk", u.WholeBytes, u.WholeAllocated)
	}
	if written := s.Stats().BytesWritten; written > 1<<20 {
		t.Errorf("%d bytes were written", written)
	}
}

func TestAllHoleAndTrailingHole(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	for i, lead := range []int{0, 3, 200 << 10} {
		data := append(content(uint64(i), lead), make([]byte, 1<<20)...)
		f := sourceFile(t, data[:lead])
		check(t, os.Truncate(f.Name(), int64(len(data))))
		h, _, err := b.PutFile(f, f.Name())
		check(t, err)
		syncCommit(t, b, tab)
		if got := readBack(t, s, h, tab.all()[h]); !bytes.Equal(got, data) {
			t.Errorf("%d bytes of data and a hole came back wrong", lead)
		}
	}
}
