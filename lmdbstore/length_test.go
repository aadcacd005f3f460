package lmdbstore

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Pages that a transaction takes at the end and frees again are not written:
// the file is shorter than its last page says, and whole all the same.
func TestLengthWithUnwrittenFreePages(t *testing.T) {
	dir := newDir(t)
	s := openDir(t, dir)
	big := make([]byte, 1<<20)
	// Only a transaction that has found some free pages takes its own back.
	for range 4 {
		update(t, s, func(w *Writer) error { return w.Put(Cache, []byte("some"), big[:20000]) })
		update(t, s, func(w *Writer) error { return w.Delete(Cache, []byte("some")) })
	}
	update(t, s, func(w *Writer) error {
		if err := w.Put(Cache, []byte("first"), nil); err != nil {
			return err
		}
		if err := w.Put(Cache, []byte("big"), big); err != nil {
			return err
		}
		if err := w.Delete(Cache, []byte("big")); err != nil {
			return err
		}
		return w.Put(Cache, []byte("small"), []byte("value"))
	})
	info, err := s.Info()
	if err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(filepath.Join(dir, "data.mdb"))
	if err != nil {
		t.Fatal(err)
	}
	if need := int64(info.LastPage+1) * int64(info.PageSize); st.Size() >= need {
		t.Fatalf("the file has %d bytes of %d: the case is not met", st.Size(), need)
	}
	if err := s.CheckLength(); err != nil {
		t.Error(err)
	}
	if err := s.CheckPages(func(d Damage) error { return errors.New(d.String()) }); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = openDir(t, dir)
	view(t, s, func(r *Reader) error {
		_, err := r.Get(Cache, []byte("small"))
		return err
	})
	// The next transaction takes them again.
	update(t, s, func(w *Writer) error { return w.Put(Cache, []byte("big"), big) })
	view(t, s, func(r *Reader) error {
		_, err := r.Get(Cache, []byte("big"))
		return err
	})
	// A page less that is not free is damage.
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if st, err = os.Stat(filepath.Join(dir, "data.mdb")); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(filepath.Join(dir, "data.mdb"), st.Size()-4096); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir, Options{})
	mustFail(t, err, ErrPageUnreadable, dir)
}
