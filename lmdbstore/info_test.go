package lmdbstore

import (
	"os"
	"path/filepath"
	"testing"

	"bole/merkle"
)

// TestInfoAccountsForEveryPage: meta pages, tables, free pages: nothing else.
func TestInfoAccountsForEveryPage(t *testing.T) {
	s := newStore(t)
	check := func() Info {
		info, err := s.Info()
		if err != nil {
			t.Fatal(err)
		}
		if got := 2 + allPages(info) + info.FreePages; got != info.LastPage+1 {
			t.Errorf("%d pages accounted for of %d", got, info.LastPage+1)
		}
		return info
	}
	check()
	update(t, s, putNodes(0, 3000, 700))
	check()
	update(t, s, putNodes(3000, 4000, 7000))
	for range 3 {
		update(t, s, func(w *Writer) error {
			for i := range 2000 {
				if err := w.Put(Stage, []byte{byte(i), byte(i >> 8)}, make([]byte, i%300)); err != nil {
					return err
				}
			}
			return nil
		})
		check()
		update(t, s, func(w *Writer) error { return w.Drop(Stage) })
	}
	info := check()
	nodes := info.Tables[Nodes]
	if nodes.Name != "nodes" || nodes.Entries != 4000 || nodes.Overflow != 2000 {
		t.Errorf("%+v", nodes)
	}
	if stage := info.Tables[Stage]; stage.Entries != 0 || stage.Pages() != 0 || stage.Depth != 0 {
		t.Errorf("%+v", stage)
	}
	st, err := os.Stat(s.dataFile())
	if err != nil || st.Size() != info.FileSize {
		t.Errorf("file of %d bytes, Info says %d, %v", st.Size(), info.FileSize, err)
	}
	if info.MapSize != DefaultMapSize || info.PageSize != os.Getpagesize() || info.LastTxnID != txnID(t, s) ||
		info.Readers != 1 || info.MaxReader < 2*maxReaders-10 {
		t.Errorf("%+v", info)
	}
}

func TestCopyTo(t *testing.T) {
	s := newStore(t)
	update(t, s, putNodes(0, 500, 3000))
	dir := filepath.Join(t.TempDir(), "copy")
	if err := s.CopyTo(dir); err != nil {
		t.Fatal(err)
	}
	update(t, s, putNodes(500, 600, 3000))
	mustFail(t, s.CopyTo(dir), os.ErrExist, dir)
	c := openDir(t, dir)
	view(t, c, func(r *Reader) error { return checkNodes(r, 0, 500, 3000) })
	n := 0
	if err := c.Nodes(func(merkle.Key, []byte) error { n++; return nil }); err != nil || n != 500 {
		t.Errorf("%d nodes, %v", n, err)
	}
	update(t, c, putNodes(500, 510, 3000))
	names, err := os.ReadDir(dir)
	if err != nil || len(names) != 2 {
		t.Errorf("the copy's folder holds %v, %v", names, err)
	}
	missing := filepath.Join(t.TempDir(), "no", "copy")
	mustFail(t, s.CopyTo(missing), os.ErrNotExist, missing)
}
