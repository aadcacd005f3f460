package fs

import (
	"fmt"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"bole/merkle"
)

// model is the row table told naively: what was given out, and nothing freed
// until nothing can refer to it.
type model struct {
	ids   map[string]uint64 // live directories by path
	held  map[uint64]int    // replies by node id
	used  map[uint64]bool   // row numbers ever seen
	table *rows
}

func TestRowsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &model{ids: map[string]uint64{"": rootID}, held: map[uint64]int{}, used: map[uint64]bool{}, table: newRows(merkle.Hash{1})}
		t.Repeat(map[string]func(*rapid.T){
			"lookup directory": m.lookupDir,
			"lookup file":      m.lookupFile,
			"forget":           m.forget,
			"":                 m.check,
		})
		for id, n := range m.held {
			m.table.forget(id, uint64(n))
		}
		if n := m.table.len(); n != 1 {
			t.Fatalf("%d rows are left when all is forgotten", n)
		}
		if r := m.table.root; r.count != 1 || r.children != 0 || len(m.table.byEntry) != 0 {
			t.Fatalf("root counts %d and %d children, %d entries", r.count, r.children, len(m.table.byEntry))
		}
	})
}

// reachable are the directories that a request may name: those held themselves.
func (m *model) reachable() []string {
	paths := []string{""}
	for p, id := range m.ids {
		if p != "" && m.held[id] > 0 {
			paths = append(paths, p)
		}
	}
	return paths
}

func (m *model) pick(t *rapid.T) (string, *row) {
	paths := m.reachable()
	slicesSort(paths)
	p := rapid.SampledFrom(paths).Draw(t, "directory")
	r, slot, ok := m.table.get(m.ids[p])
	if !ok || slot != 0 {
		t.Fatalf("row of %q is gone though the kernel holds it", p)
	}
	return p, r
}

func (m *model) lookupDir(t *rapid.T) {
	p, parent := m.pick(t)
	slot := rapid.Uint32Range(1, 4).Draw(t, "slot")
	path := fmt.Sprintf("%s/%d", p, slot)
	r, ok := m.table.enter(parent, slot, &merkle.Hash{byte(slot)}, uint64(slot))
	if !ok {
		t.Fatal("no row")
	}
	if id, live := m.ids[path]; live && id != r.id() {
		t.Fatalf("%q had id %#x and now %#x", path, id, r.id())
	} else if !live && m.used[r.number] {
		t.Fatalf("row number %d is used again", r.number)
	}
	m.ids[path], m.used[r.number] = r.id(), true
	m.held[r.id()]++
}

func (m *model) lookupFile(t *rapid.T) {
	_, r := m.pick(t)
	id := r.entryID(rapid.Uint32Range(10, 13).Draw(t, "slot"))
	m.table.hold(r, 1)
	m.held[id]++
}

func (m *model) forget(t *rapid.T) {
	var ids []uint64
	for id, n := range m.held {
		if n > 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		t.Skip()
	}
	slicesSort(ids)
	id := rapid.SampledFrom(ids).Draw(t, "id")
	n := rapid.IntRange(1, m.held[id]).Draw(t, "n")
	m.table.forget(id, uint64(n))
	m.held[id] -= n
}

// check compares the table with what the counts say must live: a directory
// that is held, has something held in it, or has such a directory below it.
func (m *model) check(t *rapid.T) {
	live := map[uint64]bool{firstRow: true}
	for p, id := range m.ids {
		number := id >> slotBits
		if p == "" {
			number = firstRow
		}
		for h, n := range m.held {
			if n > 0 && h>>slotBits == number {
				for q := p; q != ""; q = q[:lastSlash(q)] {
					live[m.ids[q]>>slotBits] = true
				}
			}
		}
	}
	for p, id := range m.ids {
		if p != "" && !live[id>>slotBits] {
			delete(m.ids, p)
		}
	}
	if got := m.table.len(); got != len(live) {
		t.Fatalf("%d rows, want %d", got, len(live))
	}
	for n := range live {
		if m.table.byNumber[n] == nil {
			t.Fatalf("row %d is gone", n)
		}
	}
}

func lastSlash(p string) int {
	for i := len(p) - 1; ; i-- {
		if p[i] == '/' {
			return i
		}
	}
}

func slicesSort[T string | uint64](s []T) {
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
}

func TestRowsForgetTooMuch(t *testing.T) {
	table := newRows(merkle.Hash{})
	r, _ := table.enter(table.root, 1, &merkle.Hash{}, 5)
	if invariants {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
	}
	table.forget(r.id(), 7)
	if n := table.len(); n != 1 {
		t.Errorf("%d rows", n)
	}
	table.forget(firstRow<<slotBits, 9)
	if _, _, ok := table.get(rootID); !ok || table.len() != 1 {
		t.Error("the root is gone")
	}
	table.forget(12345<<slotBits, 1)
}

func TestRowsRunOut(t *testing.T) {
	table := newRows(merkle.Hash{})
	table.next = rowLimit - 1
	if r, ok := table.enter(table.root, 1, &merkle.Hash{}, 5); !ok || r.id()>>slotBits != rowLimit-1 {
		t.Fatal("the last number is refused")
	}
	if _, ok := table.enter(table.root, 2, &merkle.Hash{}, 5); ok {
		t.Fatal("a number is used again")
	}
	if _, ok := table.enter(table.root, 1, &merkle.Hash{}, 5); !ok {
		t.Fatal("a row that lives is refused")
	}
	if _, ok := slotOf(maxSlot); ok {
		t.Fatal("a slot beyond the id is given out")
	}
	if s, ok := slotOf(maxSlot - 1); !ok || s != maxSlot {
		t.Fatal("the last slot is refused")
	}
}

// TestRowsMemory holds the bound of 200 bytes for a cached directory at the
// moments when the table has just grown.
func TestRowsMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	table := newRows(merkle.Hash{})
	worst := 0.0
	n := 0
	for _, size := range []int{50_000, 115_000, 230_000, 300_000} {
		for ; n < size; n++ {
			if _, ok := table.enter(table.root, uint32(n+1), &merkle.Hash{}, 1); !ok {
				t.Fatal("no row")
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		worst = max(worst, float64(after.HeapAlloc-before.HeapAlloc)/float64(n))
	}
	if worst > 200 {
		t.Errorf("%.0f bytes a row", worst)
	}
	t.Logf("%.0f bytes a row at most", worst)
	runtime.KeepAlive(table)
}
