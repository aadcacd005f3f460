package blobstore

import (
	"encoding/hex"
	"math"
	"testing"

	"pgregory.net/rapid"
)

func drawLocation(t *rapid.T) Location {
	l := Location{Pack: rapid.Uint32().Draw(t, "pack")}
	if l.Pack == 0 {
		l.Length = rapid.Uint64Max(math.MaxInt64).Draw(t, "length")
		return l
	}
	l.Offset = rapid.Uint64Range(packHeaderSize, math.MaxInt64-RecordHeader-MaxRecord).Draw(t, "offset")
	l.Length = rapid.Uint64Max(MaxRecord).Draw(t, "length")
	return l
}

func TestLocationRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := drawLocation(t)
		b := want.Encode()
		got, err := DecodeLocation(b)
		if err != nil || got != want {
			t.Fatalf("%+v came back as %+v, %v", want, got, err)
		}
		if _, err := DecodeLocation(append(b, 0)); err == nil {
			t.Fatal("a byte too many was accepted")
		}
		if _, err := DecodeLocation(b[:len(b)-1]); err == nil {
			t.Fatal("a byte too few was accepted")
		}
	})
}

func TestLocationGolden(t *testing.T) {
	for _, c := range []struct {
		loc Location
		hex string
	}{
		{Location{}, "0000"},                              // pack 0: whole file; length 0
		{Location{Length: 300}, "00ac02"},                 // whole file of 300 bytes
		{Location{1, 24, 0}, "011800"},                    // pack 1, offset 24, an empty content
		{Location{2, 1 << 20, 1024}, "02808040" + "8008"}, // pack 2, offset 1 MiB, 1 KiB
	} {
		if got := hex.EncodeToString(c.loc.Encode()); got != c.hex {
			t.Errorf("%+v is stored as %s, want %s", c.loc, got, c.hex)
		}
	}
}

func TestLocationRefusals(t *testing.T) {
	for name, h := range map[string]string{
		"empty":                       "",
		"pack alone":                  "01",
		"no length":                   "0118",
		"long varint":                 "8000" + "00",
		"long length":                 "00" + "8000",
		"pack over 32 bits":           "8080808010" + "18" + "00",
		"varint over 64 bits":         "00" + "ffffffffffffffffff7f",
		"length over 63 bits":         "00" + "ffffffffffffffffff01",
		"offset in the pack's header": "01" + "17" + "00",
		"offset that overflows":       "01" + "ffffffffffffffff7f" + "00",
		"record over the limit":       "01" + "18" + "818040",
		"bytes left over":             "000000",
	} {
		b, err := hex.DecodeString(h)
		check(t, err)
		loc, err := DecodeLocation(b)
		if err == nil {
			t.Errorf("%s: accepted as %+v", name, loc)
			continue
		}
		wantErr(t, err, ErrLocation)
	}
}

func FuzzDecodeLocation(f *testing.F) {
	for _, l := range []Location{{}, {Length: math.MaxInt64}, {1, 24, 0}, {math.MaxUint32, 1 << 28, MaxRecord}} {
		f.Add(l.Encode())
	}
	f.Add([]byte{0x80, 0x00, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		l, err := DecodeLocation(b)
		if err != nil {
			wantErr(t, err, ErrLocation)
			return
		}
		if got := l.Encode(); string(got) != string(b) {
			t.Fatalf("%x decodes to %+v, which is stored as %x", b, l, got)
		}
		if l.Pack != 0 && (l.end() < l.Offset || l.Length > MaxRecord) {
			t.Fatalf("%x decodes to an impossible place %+v", b, l)
		}
	})
}
