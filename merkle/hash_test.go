package merkle

import (
	"errors"
	"math"
	"strings"
	"sync"
	"testing"
)

// The values were computed with another implementation of BLAKE3 (the Python
// package blake3).
var knownHashes = []struct {
	length        int
	node, content string
}{
	{5000, "435c090a5b28eea9d2fde7c621b878640104a9aae920e5e1ca751bf9c6a63388", ""},
	{20000, "", "4709a054386c005857d4416e624f628d7bc910030ec527c37f350c4371f4eb85"},
	{100000, "a9cdc1739dfe55ed960493ef183fe2f1af111ac5686dd38c18134c0217429441", "93c9cbad5f20030da777768b85452873d5a5aa409b96a226874593d5dc240b46"},
}

func TestHashesAreBLAKE3(t *testing.T) {
	for in, want := range map[string]string{
		"":    "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262",
		"abc": "6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85",
	} {
		if got := ContentHash([]byte(in)).String(); got != want {
			t.Errorf("ContentHash(%q) is %s, want %s", in, got, want)
		}
	}
	if got := NodeHash([]byte("abc")).String(); got != "a1d89ef839ab7015a57f1de4620f4650be7c52dc66d86721404a2f9307d53482" {
		t.Errorf("NodeHash(abc) is %s", got)
	}
	for _, k := range knownHashes {
		b := []byte(strings.Repeat("x", k.length))
		if got := NodeHash(b).String(); k.node != "" && got != k.node {
			t.Errorf("NodeHash of %d bytes is %s, want %s", k.length, got, k.node)
		}
		if got := ContentHash(b).String(); k.content != "" && got != k.content {
			t.Errorf("ContentHash of %d bytes is %s, want %s", k.length, got, k.content)
		}
	}
	names := nameHasher{p: newHashing()}
	for level, want := range map[int]uint64{0: 0x23748f8a26dc021d, 3: 0x42fe6d1edce88748} {
		if got := names.hash(level, []byte("name")); got != want {
			t.Errorf("h(%d, name) is %#x, want %#x", level, got, want)
		}
	}
}

func TestContentHasher(t *testing.T) {
	h := NewContentHasher()
	for _, size := range []int{0, 1, 1024, 1025, 8192, 8193, 100_000} {
		b := []byte(strings.Repeat("x", size))
		for _, piece := range []int{1, 1000, 8192, math.MaxInt} {
			h.Reset()
			for rest := b; len(rest) > 0; {
				n := min(piece, len(rest))
				if _, err := h.Write(rest[:n]); err != nil {
					t.Fatal(err)
				}
				rest = rest[n:]
			}
			if got := h.Sum(); got != ContentHash(b) {
				t.Fatalf("%d bytes in pieces of %d: %s", size, piece, got)
			}
		}
	}
}

func TestHashingAllocatesNothing(t *testing.T) {
	b := []byte(strings.Repeat("x", 3000))
	c := NewContentHasher()
	for name, fn := range map[string]func(){
		"NodeHash":      func() { NodeHash(b) },
		"ContentHash":   func() { ContentHash(b) },
		"ContentHasher": func() { c.Reset(); c.Write(b); c.Sum() },
	} {
		if n := testing.AllocsPerRun(100, fn); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}

// TestHashingInParallel: hashers of the pool are not shared while in use.
func TestHashingInParallel(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		b := []byte(strings.Repeat("x", i*700))
		want, wantNode := ContentHash(b), NodeHash(b)
		wg.Go(func() {
			for range 300 {
				if ContentHash(b) != want || NodeHash(b) != wantNode {
					t.Error("another hash in parallel")
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestParseHash(t *testing.T) {
	h := ContentHash([]byte("x"))
	for _, s := range []string{h.String(), strings.ToUpper(h.String())} {
		if got, err := ParseHash(s); err != nil || got != h {
			t.Errorf("ParseHash(%q): %s, %v", s, got, err)
		}
	}
	for _, s := range []string{"", "x", h.String()[1:], h.String() + "0", strings.Repeat("g", 64), strings.Repeat("é", 32), strings.Repeat("0", 10_000)} {
		got, err := ParseHash(s)
		if !errors.Is(err, ErrBadHash) || got != (Hash{}) {
			t.Errorf("ParseHash(%.20q): %s, %v", s, got, err)
		}
		if len(err.Error()) > 500 {
			t.Errorf("ParseHash of %d bytes: an error of %d", len(s), len(err.Error()))
		}
	}
	if h.IsZero() || !(Hash{}).IsZero() {
		t.Error("IsZero is wrong")
	}
	if k := h.Key(); string(k[:]) != string(h[:16]) {
		t.Errorf("Key is %x of %s", k, h)
	}
}
