package snapshot

import (
	"errors"
	"strings"
	"testing"
	"time"

	"bole/lmdbstore"
	"bole/merkle"
)

// reflogOf reads the moves of a ref, oldest first.
func (w *work) reflogOf(ref string) (out []ReflogEntry) {
	w.t.Helper()
	ok(w.t, w.db.View(func(rd *lmdbstore.Reader) error {
		return rd.Scan(lmdbstore.Reflog, append([]byte(ref), 0), nil, func(k, v []byte) error {
			e, err := decodeReflog(k, v)
			out = append(out, e)
			return err
		})
	}))
	return out
}

// TestReflog wants one entry for every move, each going on from the one before.
func TestReflog(t *testing.T) {
	w := newWork(t)
	start := time.Now().UnixNano()
	w.write("f", "1")
	one := w.save("one\nwith a body")
	w.write("f", "2")
	two := w.save("two")
	ok(t, w.CreateBranch("b", one, false))
	ok(t, w.CreateBranch("b", two, true))
	ok(t, w.RenameBranch("b", "c"))
	ok(t, w.DeleteBranch("c"))
	var zero merkle.Hash
	for ref, want := range map[string][]ReflogEntry{
		"refs/heads/main": {{Old: zero, New: one, Why: "commit: one"}, {Old: one, New: two, Why: "commit: two"}},
		"refs/heads/b": {{Old: zero, New: one, Why: "branch: created"}, {Old: one, New: two, Why: "branch: created"},
			{Old: two, New: zero, Why: "branch: renamed b to c"}},
		"refs/heads/c": {{Old: zero, New: two, Why: "branch: renamed b to c"}, {Old: two, New: zero, Why: "branch: deleted"}},
		"refs/heads/":  nil,
	} {
		got := w.reflogOf(ref)
		if len(got) != len(want) {
			t.Fatalf("%s: %+v", ref, got)
		}
		last := start
		for i, e := range got {
			if e.When < last || e.When > time.Now().UnixNano() {
				t.Errorf("%s: entry %d is of %d", ref, i, e.When)
			}
			last = e.When
			if e.Who != "Test <test@example.org>" {
				t.Errorf("%s: entry %d is by %q", ref, i, e.Who)
			}
			e.When, e.Who = 0, ""
			if e != want[i] {
				t.Errorf("%s: entry %d is %+v, want %+v", ref, i, e, want[i])
			}
		}
	}
}

// TestReflogOfOneInstant keeps several moves of one nanosecond, in their order.
func TestReflogOfOneInstant(t *testing.T) {
	w := newWork(t)
	for i := range byte(5) {
		ok(t, w.db.Update(func(tx *lmdbstore.Writer) error {
			return appendReflog(tx, "refs/heads/x", ReflogEntry{When: 7, New: merkle.Hash{i}, Who: strings.Repeat("w", 70_000), Why: strings.Repeat("y", 70_000)})
		}))
	}
	got := w.reflogOf("refs/heads/x")
	if len(got) != 5 {
		t.Fatalf("%d entries", len(got))
	}
	for i, e := range got {
		if e.New != (merkle.Hash{byte(i)}) || e.When != int64(7+i) || len(e.Why) != reflogText || len(e.Who) != reflogText {
			t.Errorf("entry %d: new %s, when %d, who of %d bytes, why of %d", i, e.New, e.When, len(e.Who), len(e.Why))
		}
	}
}

func TestDecodeReflog(t *testing.T) {
	e := ReflogEntry{When: -5, Old: merkle.Hash{1}, New: merkle.Hash{2}, Who: "who", Why: "why"}
	key, val := reflogKey("refs/heads/x", e.When), encodeReflog(e)
	got, err := decodeReflog(key, val)
	if err != nil || got != e {
		t.Fatalf("%+v, %v", got, err)
	}
	for i := range 66 + 3 {
		if _, err := decodeReflog(key, val[:i]); !errors.Is(err, merkle.ErrCorrupt) {
			t.Fatalf("cut to %d bytes: %v", i, err)
		}
	}
	if _, err := decodeReflog(key[:8], val); !errors.Is(err, merkle.ErrCorrupt) {
		t.Fatalf("a short key: %v", err)
	}
}
