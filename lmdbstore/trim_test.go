package lmdbstore

import (
	"encoding/binary"
	"testing"
)

// TestWalkKeepsFewPagesMapped walks a database of twice the limit and looks at
// what the process is charged with.
func TestWalkKeepsFewPagesMapped(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 190 MB")
	}
	s := newStore(t)
	s.limits.mapped = 64 << 20
	value := make([]byte, 4000)
	const records = 48 << 10
	for from := 0; from < records; from += 8 << 10 {
		err := s.Update(func(w *Writer) error {
			for i := from; i < from+8<<10; i++ {
				binary.BigEndian.PutUint64(value, uint64(i))
				if err := w.Put(Cache, value[:8], value); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	before, most, n := mappedBytes(), uint64(0), 0
	err := s.View(func(r *Reader) error {
		return r.Scan(Cache, nil, nil, func(k, v []byte) error {
			if binary.BigEndian.Uint64(v) != binary.BigEndian.Uint64(k) {
				t.Fatalf("record %x has the value of %x", k, v[:8])
			}
			if n++; n%1024 == 0 {
				most = max(most, mappedBytes())
			}
			return nil
		})
	})
	if err != nil || n != records {
		t.Fatalf("scanned %d records: %v", n, err)
	}
	if limit := s.limits.mapped + trimEvery*8192; most > limit || before == 0 {
		t.Errorf("%d bytes mapped during the walk (%d before), want at most %d", most, before, limit)
	}
}
