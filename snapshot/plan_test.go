package snapshot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sparse makes a file of size bytes that is a hole but for data at its front.
func sparse(t *testing.T, path string, size int64, data string) {
	t.Helper()
	ok(t, os.WriteFile(path, []byte(data), 0o644))
	ok(t, os.Truncate(path, size))
}

// TestPlanCountsWhatIsWritten: holes need no room, in a pack they do; progress counts all that is read.
func TestPlanCountsWhatIsWritten(t *testing.T) {
	const size = 256 << 20
	w := newWork(t)
	sparse(t, w.at("hole"), size, "")
	sparse(t, w.at("mostly hole"), size, strings.Repeat("data", 50_000))
	sparse(t, w.at("small hole"), 1000, "")
	w.write("full", strings.Repeat("full", 50_000))
	var plan Plan
	var last Progress
	res, err := w.Add(ctx, AddOptions{Plan: func(p Plan) { plan = p }, Progress: func(p Progress) { last = p }})
	ok(t, err)
	// The file system gives whole pages for the part that is no hole.
	if least := uint64(2*200_000 + 1000); plan.Files != 4 || plan.Bytes < least || plan.Bytes > least+64<<10 {
		t.Errorf("plan: %+v, want 4 files, %d bytes and a bit", plan, least)
	}
	if want := uint64(2*size + 200_000 + 1000); last.TotalBytes != want || last.Bytes != want || res.Bytes != want || last.TotalFiles != 4 {
		t.Errorf("progress ended at %+v, read %d, want %d bytes", last, res.Bytes, want)
	}
}

// TestPlanOfMove: what will be linked needs no room; a file with another name is copied.
func TestPlanOfMove(t *testing.T) {
	for name, c := range map[string]struct {
		move  bool
		named bool // the large file has another name
		bytes uint64
	}{
		"copy":               {false, false, 200_005},
		"move":               {true, false, 5},
		"move a second name": {true, true, 200_005},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWork(t, InitOptions{Bare: true})
			src := t.TempDir()
			ok(t, os.WriteFile(filepath.Join(src, "large"), make([]byte, 200_000), 0o644))
			ok(t, os.WriteFile(filepath.Join(src, "small"), []byte("small"), 0o644))
			if c.named {
				ok(t, os.Link(filepath.Join(src, "large"), filepath.Join(t.TempDir(), "other")))
			}
			var plan Plan
			var last Progress
			res, err := w.Import(ctx, ImportOptions{Source: src, Move: c.move, Meta: Meta{Message: "import"},
				Plan: func(p Plan) { plan = p }, Progress: func(p Progress) {
					if p.Phase == "add" {
						last = p
					}
				}})
			ok(t, err)
			if plan.Files != 2 || plan.Bytes != c.bytes || plan.Free == 0 {
				t.Errorf("plan: %+v, want %d bytes", plan, c.bytes)
			}
			if last.TotalBytes != 200_005 || last.Bytes != 200_005 {
				t.Errorf("progress ended at %+v", last)
			}
			if linked := res.Linked == 200_000; linked != (c.bytes == 5) {
				t.Errorf("the plan says %d bytes to write, %d were linked", plan.Bytes, res.Linked)
			}
		})
	}
}
