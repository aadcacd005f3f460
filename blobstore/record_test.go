package blobstore

import (
	"bytes"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"bole/merkle"
)

// goldenPack is a pack that holds the content "abc", byte for byte.
const goldenPack = "" +
	"4250414b" + // "BPAK"
	"01000000" + // version 1
	"000102030405060708090a0b0c0d0e0f" + // owner
	"b052ec31" + // a record
	"0300000000000000" + // length 3
	"6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85" + // BLAKE3 of "abc"
	"616263" // the content

func TestPackGolden(t *testing.T) {
	s, tab := newStore(t), newTable()
	for i := range s.opts.Owner {
		s.opts.Owner[i] = byte(i)
	}
	b := begin(t, s, tab)
	h, err := b.PutBytes([]byte("abc"))
	check(t, err)
	syncCommit(t, b, tab)
	got, err := os.ReadFile(filepath.Join(s.dir, "packs", "00000001.pack"))
	check(t, err)
	if hex.EncodeToString(got) != goldenPack {
		t.Errorf("pack is\n%x, want\n%s", got, goldenPack)
	}
	if loc := tab.all()[h]; loc != (Location{Pack: 1, Offset: 24, Length: 3}) {
		t.Errorf("content lies at %+v", loc)
	}
	if end := tab.ends[1]; end != uint64(len(got)) {
		t.Errorf("committed end is %d, file has %d bytes", end, len(got))
	}
}

func TestWholeFileGoldenName(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	data := bytes.Repeat([]byte("bole"), DefaultLimit)
	h, _, err := b.PutFile(sourceFile(t, data), "source")
	check(t, err)
	syncCommit(t, b, tab)
	x := h.String()
	got, err := os.ReadFile(filepath.Join(s.dir, "whole", x[:2], x[2:]))
	check(t, err)
	if !bytes.Equal(got, data) {
		t.Error("whole file differs from its source")
	}
}

func TestPackHeaderRefusals(t *testing.T) {
	good := packHeader([16]byte{1, 2, 3})
	if reason := checkPackHeader(good[:]); reason != "" {
		t.Fatalf("a good header is refused: %s", reason)
	}
	for i := range good {
		bad := good
		bad[i] ^= 0x40
		if owner := i >= 8; (checkPackHeader(bad[:]) == "") != owner {
			t.Errorf("a header with byte %d changed: accepted is not %v", i, owner)
		}
	}
	if checkPackHeader(good[:23]) == "" {
		t.Error("a cut off header is accepted")
	}
}

func FuzzRecordHeader(f *testing.F) {
	h := merkle.ContentHash([]byte("abc"))
	good := make([]byte, RecordHeader)
	putRecordHeader(good, &h, 3)
	f.Add(good)
	f.Add(good[:RecordHeader-1])
	putRecordHeader(good, &h, MaxRecord+1)
	f.Add(bytes.Clone(good))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, length, err := parseRecordHeader(b)
		if err != nil {
			return
		}
		if length > MaxRecord {
			t.Fatalf("length %d was accepted", length)
		}
		again := make([]byte, RecordHeader)
		putRecordHeader(again, &h, length)
		if !bytes.Equal(again, b[:RecordHeader]) {
			t.Fatalf("%x was read as %x", b[:RecordHeader], again)
		}
	})
}

// FuzzPack lays arbitrary bytes down as a pack: reading must report damage or return matching
// bytes, and never panic.
func FuzzPack(f *testing.F) {
	golden, _ := hex.DecodeString(goldenPack)
	f.Add(golden, uint64(24), uint64(3))
	f.Add(golden[:36], uint64(24), uint64(3))
	f.Add(append(bytes.Clone(golden), golden[24:]...), uint64(71), uint64(3))
	f.Add([]byte{}, uint64(0), uint64(1<<63))
	h := merkle.ContentHash([]byte("abc"))
	dir := newStore(f).dir
	f.Fuzz(func(t *testing.T, pack []byte, off, length uint64) {
		s := reopen(t, dir)
		check(t, os.WriteFile(s.packPath(1), pack, 0o644))
		data, err := s.ReadSmall(h, Location{1, off, length}, nil)
		if err != nil {
			wantErr(t, err, ErrDamaged)
		} else if merkle.ContentHash(data) != h {
			t.Fatalf("bytes %x were served as %s", data, h)
		}
		last := uint64(0)
		check(t, s.Scan(ScanOptions{Contents: true}, func(found Found) error {
			if found.Err != nil {
				wantErr(t, found.Err, ErrDamaged)
				return nil
			}
			loc := found.Location
			if loc.Offset < last || loc.end() > uint64(len(pack)) {
				t.Fatalf("record at %+v overlaps another or the end", loc)
			}
			last = loc.end()
			if merkle.ContentHash(pack[loc.Offset+RecordHeader:loc.end()]) != found.Hash {
				t.Fatalf("scan calls the record at %+v sound", loc)
			}
			return nil
		}))
	})
}
