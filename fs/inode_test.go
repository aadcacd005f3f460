package fs

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestInodeNumberGolden: the numbers are seen outside (rsync, tar and backup
// tools keep them), so they never change.
func TestInodeNumberGolden(t *testing.T) {
	for _, c := range []struct {
		parent uint64
		name   string
		want   uint64
	}{
		{rootInode, "a", 6279830735723069227},
		{rootInode, "README.md", 2835602777131315939},
		{1<<63 - 1, strings.Repeat("\xff", 255), 1616766458716675041},
	} {
		if got := inodeNumber(c.parent, []byte(c.name)); got != c.want {
			t.Errorf("%d %.10q: %d, want %d", c.parent, c.name, got, c.want)
		}
	}
}

func TestInodeNumber(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parent := rapid.Uint64().Draw(t, "parent")
		name := rapid.SliceOfN(rapid.Byte(), 1, 255).Draw(t, "name")
		n := inodeNumber(parent, name)
		if n>>63 != 0 || uint32(n) == 0 || n != inodeNumber(parent, append([]byte(nil), name...)) {
			t.Fatalf("%#x", n)
		}
		if n == inodeNumber(parent+1, name) || n == inodeNumber(parent, append(name[:len(name)-1:len(name)-1], name[len(name)-1]^1)) {
			t.Fatalf("another path has %#x too", n)
		}
	})
}

func BenchmarkInodeNumber(b *testing.B) {
	b.ReportAllocs()
	name := []byte("file-0012345.txt")
	for i := 0; b.Loop(); i++ {
		_ = inodeNumber(uint64(i), name)
	}
}
