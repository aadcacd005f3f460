package merkle

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestCheckName(t *testing.T) {
	for _, name := range []string{"a", "...", "..a", ".a", ".bol", ".bolee", ".bole ", "bole", "_bole", ".git", "\xff", "a\nb", "\\", " ", "a:b",
		strings.Repeat("x", 255), "\x0ebole", ".\x02ole", ".bo\x0ce"} {
		if err := CheckName([]byte(name)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"", ".", "..", "/", "a/", "/a", "a/b", "\x00", "a\x00", ".bole", ".BOLE", ".BolE", strings.Repeat("x", 256)} {
		if err := CheckName([]byte(name)); !errors.Is(err, ErrBadName) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestCheckNameOnEveryCaseOfBole(t *testing.T) {
	for c1 := range 256 {
		for at := 1; at < 5; at++ {
			name := []byte(".bole")
			name[at] = byte(c1)
			bad := strings.EqualFold(string(name), ".bole") || c1 == 0 || c1 == '/'
			// EqualFold folds beyond ASCII; a single byte never does.
			if err := CheckName(name); (err != nil) != bad {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}

func TestComparePaths(t *testing.T) {
	sorted := []string{"", "a", "a/a", "a/b", "a/b/c", "a/b!", "a!", "a!/x", "a\"", "aa", "aa/b", "b", "\xff", "\xff/\xff"}
	for i, a := range sorted {
		for j, b := range sorted {
			want := max(-1, min(1, i-j))
			if got := ComparePaths([]byte(a), []byte(b)); got != want {
				t.Errorf("ComparePaths(%q, %q) is %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestComparePathsIsByComponents(t *testing.T) {
	path := rapid.StringMatching(`[ab!./]{0,8}`)
	rapid.Check(t, func(rt *rapid.T) {
		a, b := path.Draw(rt, "a"), path.Draw(rt, "b")
		want := slices.CompareFunc(strings.Split(a, "/"), strings.Split(b, "/"), strings.Compare)
		if a == "" || b == "" {
			want = strings.Compare(a, b)
		}
		if got := ComparePaths([]byte(a), []byte(b)); got != want {
			rt.Fatalf("ComparePaths(%q, %q) is %d, want %d", a, b, got, want)
		}
		if bytes.Equal([]byte(a), []byte(b)) != (want == 0) {
			rt.Fatalf("%q and %q compare as %d", a, b, want)
		}
	})
}
