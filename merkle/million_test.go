package merkle

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
)

// million is one directory of 1,000,000 files (100,000 with -short), built once.
type million struct {
	n int
	r *trusting
	h Hash
}

const millionFormat = "img_%08d.jpg"

func millionName(buf []byte, i int) []byte { return fmt.Appendf(buf[:0], millionFormat, i) }

var theMillion = sync.OnceValue(func() *million {
	m := &million{n: 1_000_000, r: &trusting{nodes: map[Hash][]byte{}}}
	if testing.Short() {
		m.n = 100_000
	}
	var err error
	m.h, _, err = Apply(m.r, m.r, Hash{}, numberedFiles(m.n))
	if err != nil {
		panic(err)
	}
	return m
})

// numberedFiles gives n files of one directory without allocating for each.
func numberedFiles(n int) func(yield func(Change, error) bool) {
	return func(yield func(Change, error) bool) {
		e := fileEntry("x")
		name := []byte(fmt.Sprintf(millionFormat, 0))
		for range n {
			if !yield(Change{Path: name, Op: OpSet, Entry: e}, nil) {
				return
			}
			for i := len("img_00000000") - 1; ; i-- {
				if name[i]++; name[i] <= '9' {
					break
				}
				name[i] = '0'
			}
		}
	}
}

func (r *trusting) PutNode(h Hash, b []byte) error {
	r.nodes[h] = append([]byte{}, b...)
	return nil
}

// counting counts what is written.
type counting struct{ nodes, bytes int }

func (c *counting) PutNode(h Hash, b []byte) error {
	c.nodes++
	c.bytes += len(b)
	return nil
}

const kib = 1 << 10

func TestMillionNodesAreSmall(t *testing.T) {
	m := theMillion()
	largest := 0
	for _, b := range m.r.nodes {
		largest = max(largest, len(b))
	}
	t.Logf("%d names: %d nodes, the largest %d bytes", m.n, len(m.r.nodes), largest)
	if largest > 32*kib {
		t.Errorf("a node of %d bytes, the limit is 32 KiB", largest)
	}
}

func TestMillionEditsAreSmall(t *testing.T) {
	m := theMillion()
	rng := rand.New(rand.NewPCG(11, 1))
	edits := 3000
	if testing.Short() {
		edits = 500
	}
	for kind, change := range map[string]func(i int) Change{
		"editing": func(i int) Change { return setFile(fmt.Sprintf(millionFormat, i), "edited") },
		"adding":  func(i int) Change { return setFile(fmt.Sprintf(millionFormat+"2", i), "added") },
		"removal": func(i int) Change { return remove(fmt.Sprintf(millionFormat, i)) },
	} {
		sum, worst, reads, worstReads := 0, 0, 0, 0
		for range edits {
			var w counting
			m.r.reads = 0
			h, _, err := Apply(m.r, &w, m.h, asGiven([]Change{change(rng.IntN(m.n))}))
			if err != nil || h == m.h {
				t.Fatal(h, err)
			}
			sum += w.bytes
			worst = max(worst, w.bytes)
			reads += m.r.reads
			worstReads = max(worstReads, m.r.reads)
		}
		t.Logf("%s: %d bytes written on average, %d at worst; %.1f nodes read on average, %d at worst",
			kind, sum/edits, worst, float64(reads)/float64(edits), worstReads)
		if kind == "editing" && worst > 32*kib || sum/edits > 20*kib || worst > 48*kib {
			t.Errorf("%s one file writes up to %d bytes, on average %d", kind, worst, sum/edits)
		}
		if reads/edits > 20 || worstReads > 40 {
			t.Errorf("%s one file reads up to %d nodes, on average %d", kind, worstReads, reads/edits)
		}
	}
}

func TestMillionReadsPerLookup(t *testing.T) {
	m := theMillion()
	d, err := OpenDir(m.r, &m.h)
	if err != nil {
		t.Fatal(err)
	}
	// Levels shrink 41 times: 1,000,000 names need the root and three below.
	const limit = 3
	var e Entry
	var buf []byte
	for i := 0; i < m.n; i += 997 {
		buf = millionName(buf, i)
		m.r.reads = 0
		if ord, err := d.Lookup(buf, &e); err != nil || ord != uint64(i) || string(e.Name) != string(buf) {
			t.Fatalf("Lookup(%q): %d, %v", buf, ord, err)
		}
		if err := d.At(uint64(i), &e); err != nil || string(e.Name) != string(buf) {
			t.Fatalf("At(%d): %q, %v", i, e.Name, err)
		}
		for _, c := range []Cursor{d.Seek(uint64(i)), d.SeekName(buf)} {
			if ok, err := c.Next(&e); !ok || err != nil || string(e.Name) != string(buf) {
				t.Fatalf("seek to %d: %q, %v, %v", i, e.Name, ok, err)
			}
		}
		if m.r.reads > 4*limit {
			t.Fatalf("lookup, at and two seeks of %q read %d nodes", buf, m.r.reads)
		}
	}
	m.r.reads = 0
	c := d.Seek(0)
	for {
		ok, err := c.Next(&e)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
	}
	if c.Ordinal() != uint64(m.n) || m.r.reads > len(m.r.nodes) {
		t.Errorf("listing gave %d entries with %d reads of %d nodes", c.Ordinal(), m.r.reads, len(m.r.nodes))
	}
}

func TestMillionLookupAllocatesNothing(t *testing.T) {
	m := theMillion()
	h := m.h
	var e Entry
	var buf [64]byte
	i := 0
	for what, fn := range map[string]func(){
		"open and lookup": func() {
			d, err := OpenDir(m.r, &h)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Lookup(fixedName(&buf, i%m.n), &e); err != nil {
				t.Fatal(err)
			}
			i += 7919
		},
		"lookup of nothing": func() {
			d, _ := OpenDir(m.r, &h)
			if _, err := d.Lookup([]byte("nothing"), &e); err != ErrNotFound {
				t.Fatal(err)
			}
		},
		"at, seek and next": func() {
			d, _ := OpenDir(m.r, &h)
			if err := d.At(uint64(i%m.n), &e); err != nil {
				t.Fatal(err)
			}
			c := d.Seek(uint64(i % (m.n / 2)))
			for range 100 {
				if ok, err := c.Next(&e); !ok || err != nil {
					t.Fatal(ok, err)
				}
			}
			c = d.SeekName(e.Name)
			if ok, err := c.Next(&e); !ok || err != nil {
				t.Fatal(ok, err)
			}
			i += 7919
		},
	} {
		if got := testing.AllocsPerRun(200, fn); got != 0 {
			t.Errorf("%s: %v allocations", what, got)
		}
	}
}

// fixedName is millionName without allocations.
func fixedName(buf *[64]byte, i int) []byte {
	name := append(buf[:0], "img_00000000.jpg"...)
	for p := len("img_0000000"); i > 0; p-- {
		name[p] = '0' + byte(i%10)
		i /= 10
	}
	return name
}

// TestApplyMemoryDoesNotGrow adds up what is allocated for directories of two
// sizes, which bounds what is held at any time: for building them, for changing
// every file, and for removing all.
func TestApplyMemoryDoesNotGrow(t *testing.T) {
	if raceEnabled {
		t.Skip("allocations are not counted under the race detector")
	}
	allocated := func(r Reader, base Hash, changes iter.Seq2[Change, error]) uint64 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, _, err := Apply(r, discard{}, base, changes); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	for _, n := range []int{1000, 20_000, 200_000} {
		r := &trusting{nodes: map[Hash][]byte{}}
		h, _, err := Apply(r, r, Hash{}, numberedFiles(n))
		if err != nil {
			t.Fatal(err)
		}
		for what, sum := range map[string]uint64{
			"building": allocated(r, Hash{}, numberedFiles(n)),
			"changing": allocated(r, h, changed(numberedFiles(n), func(c *Change) { c.Entry.Mtime++ })),
			"removing": allocated(r, h, changed(numberedFiles(n), func(c *Change) { c.Op = OpRemove })),
		} {
			t.Logf("%s %d files allocates %d bytes in all", what, n, sum)
			if sum > 1<<20 {
				t.Errorf("%s %d files allocates %d bytes, the limit is 1 MiB", what, n, sum)
			}
		}
	}
}

// changed gives changes after fn.
func changed(changes iter.Seq2[Change, error], fn func(*Change)) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for c, err := range changes {
			fn(&c)
			if !yield(c, err) {
				return
			}
		}
	}
}

// TestMillionEditWithoutEffectReadsOnePath reads no more than leads to the
// entry, and writes nothing.
func TestMillionEditWithoutEffectReadsOnePath(t *testing.T) {
	m := theMillion()
	for i := 0; i < m.n; i += m.n / 50 {
		var w counting
		m.r.reads = 0
		c := setFile(fmt.Sprintf(millionFormat, i), "x")
		if i%3 == 0 {
			c = remove(fmt.Sprintf(millionFormat+"!", i))
		}
		if h, _, err := Apply(m.r, &w, m.h, asGiven([]Change{c})); err != nil || h != m.h || w.nodes != 0 {
			t.Fatalf("%q: %s, %v, %d nodes written", c.Path, h, err, w.nodes)
		}
		if m.r.reads > 4 {
			t.Errorf("%q: %d nodes read", c.Path, m.r.reads)
		}
	}
}
