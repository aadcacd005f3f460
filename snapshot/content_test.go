package snapshot

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bole/blobstore"
	"bole/lmdbstore"
	"bole/merkle"
)

// TestContents reads small and whole contents in each way.
func TestContents(t *testing.T) {
	w := newWork(t)
	data := map[string]string{"empty": "", "small": "small", "large": bigText("large")}
	for p, s := range data {
		w.write(p, s)
	}
	w.save("first")
	for p, s := range data {
		h := merkle.ContentHash([]byte(s))
		for _, dst := range [][]byte{nil, make([]byte, 0, 10), make([]byte, 300_000)} {
			b, err := w.ReadContent(h, dst)
			if err != nil || string(b) != s {
				t.Fatalf("%s: %d bytes, %v", p, len(b), err)
			}
		}
		whole, err := w.IsWhole(h)
		ok(t, err)
		ok(t, w.VerifyContent(h))
		c, err := w.OpenContent(h)
		ok(t, err)
		if whole != (p == "large") || (c.File() != nil) != whole || c.Size() != uint64(len(s)) {
			t.Errorf("%s: whole %v, size %d", p, whole, c.Size())
		}
		got, err := io.ReadAll(io.NewSectionReader(c, 0, 1<<30))
		if err != nil || string(got) != s {
			t.Errorf("%s: %d bytes, %v", p, len(got), err)
		}
		for _, off := range []int64{-1, int64(len(s)), int64(len(s)) + 5} {
			if n, err := c.ReadAt(make([]byte, 3), off); n != 0 || err == nil {
				t.Errorf("%s: read %d bytes at %d, %v", p, n, off, err)
			}
		}
		c.Release()
		c.Release() // does nothing
	}
	no := merkle.ContentHash([]byte("nowhere"))
	_, err := w.ReadContent(no, nil)
	wantErr(t, err, ErrNoContent, no.String())
	_, err = w.OpenContent(no)
	wantErr(t, err, ErrNoContent)
	wantErr(t, w.VerifyContent(no), ErrNoContent)
	_, err = w.IsWhole(no)
	wantErr(t, err, ErrNoContent)
}

// TestDamagedContents: wrong bytes are never returned.
func TestDamagedContents(t *testing.T) {
	w := newWork(t)
	w.write("small", "small")
	w.write("large", bigText("large"))
	w.save("first")
	small, loc := w.locationOf("small")
	large, _ := w.locationOf(bigText("large"))
	flip(t, w.packPath(loc.Pack), int64(loc.Offset)+blobstore.RecordHeader)
	flip(t, filepath.Join(w.ContentsDir(), "whole", large.String()[:2], large.String()[2:]), 99)
	for _, h := range []merkle.Hash{small, large} {
		_, err := w.ReadContent(h, nil)
		wantErr(t, err, ErrDamaged, h.String())
		wantErr(t, w.VerifyContent(h), ErrDamaged, h.String())
	}
	_, err := w.OpenContent(small)
	wantErr(t, err, ErrDamaged)
	w.remove("small")
	w.remove("large")
	_, err = w.checkout("main", true)
	wantErr(t, err, ErrDamaged)
	for _, p := range []string{"small", "large"} {
		if _, err := os.Lstat(w.at(p)); !os.IsNotExist(err) {
			t.Errorf("%s was written with wrong bytes", p)
		}
	}
	// The index claims what no memory could hold.
	w.rewrite(lmdbstore.Blobs, large[:], blobstore.Location{Length: 1 << 60}.Encode())
	if _, err := w.ReadContent(large, nil); err == nil {
		t.Error("a content of an exabyte was read")
	}
}

// TestAddHeals: adding a file again stores a content anew that is damaged.
func TestAddHeals(t *testing.T) {
	w := newWork(t)
	w.write("large", bigText("large"))
	w.save("first")
	h, _ := w.locationOf(bigText("large"))
	ok(t, os.Remove(filepath.Join(w.ContentsDir(), "whole", h.String()[:2], h.String()[2:])))
	w.write("copy", bigText("large"))
	w.save("second")
	w.wantSound()
}

// TestCopiesShareContents: equal files are stored once.
func TestEqualFilesShareContents(t *testing.T) {
	w := newWork(t)
	for _, p := range []string{"a", "b", "d/c"} {
		w.write(p, "small")
		w.write(p+"large", bigText("large"))
	}
	w.save("first")
	if n := w.records(lmdbstore.Blobs); n != 2 {
		t.Fatalf("%d contents are stored", n)
	}
	if res := w.wantSound(); res.Contents != 2 {
		t.Fatalf("fsck: %+v", res)
	}
}

// TestLinkTargets of all lengths come back.
func TestLinkTargets(t *testing.T) {
	w := newWork(t)
	for _, n := range []int{1, 127, 128, 129, 255, 256, 1023, 4095} {
		w.link(strings.Repeat("n", 1+n%200), strings.Repeat("t", n))
	}
	id := w.save("links")
	w.wantClean()
	disk := readDisk(t, w.root)
	wantTree(t, "the commit", readCommitTree(t, w.Repo, id), disk)
	w.remove(strings.Repeat("n", 130))
	w.mustCheckout(id.String(), true)
	w.wantClean()
	_, err := w.LinkTarget(&merkle.Entry{Kind: merkle.KindSymlink, Target: []byte("a\x00b")})
	wantErr(t, err, merkle.ErrCorrupt)
	_, err = w.LinkTarget(&merkle.Entry{Kind: merkle.KindSymlink, Hash: merkle.ContentHash([]byte("x")), Size: 200})
	wantErr(t, err, ErrNoContent)
}

// TestStoppableReader ends with its context.
func TestStoppableReader(t *testing.T) {
	stopped, stop := contextWithStop()
	r := &stoppableReader{stopped, bytes.NewReader(make([]byte, 100))}
	if n, err := r.Read(make([]byte, 10)); n != 10 || err != nil {
		t.Fatal(n, err)
	}
	stop()
	if n, err := r.Read(make([]byte, 10)); n != 0 || !errors.Is(err, stopped.Err()) {
		t.Fatal(n, err)
	}
}
