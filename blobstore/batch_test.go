package blobstore

import (
	"os"
	"testing"

	"bole/merkle"
)

func TestSmallAndLargeComeBack(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	want := map[merkle.Hash][]byte{}
	for i, n := range []int{0, 1, 1000, DefaultLimit - 1, DefaultLimit, DefaultLimit + 1, 3 << 20} {
		data := content(uint64(i), n)
		h, size, err := b.PutFile(sourceFile(t, data), "source")
		check(t, err)
		if size != int64(n) || h != merkle.ContentHash(data) {
			t.Fatalf("PutFile of %d bytes returned size %d and hash %s", n, size, h)
		}
		want[h] = data
	}
	recs := syncCommit(t, b, tab)
	if len(recs) != len(want) {
		t.Fatalf("Sync handed out %d records, want %d", len(recs), len(want))
	}
	for h, data := range want {
		wantContent(t, s, tab, h, data)
		loc, _, _ := tab.index(h)
		if whole := len(data) > DefaultLimit; whole != (loc.Pack == 0) {
			t.Errorf("%d bytes lie in pack %d", len(data), loc.Pack)
		}
		if loc.Pack == 0 {
			fi, err := os.Stat(s.wholePath(&h))
			check(t, err)
			if fi.Mode() != 0o444 {
				t.Errorf("whole file has mode %v", fi.Mode())
			}
		}
	}
	check(t, b.Close())
	if left := names(t, s, tmpDir); len(left) != 0 {
		t.Errorf("left in tmp: %v", left)
	}
	verifyAll(t, s, tab)
}
