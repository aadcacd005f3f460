package blobstore

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"bole/merkle"
)

// model is a store beside a map of what was committed.
type model struct {
	t    *rapid.T
	dir  string
	s    *Store
	b    *Batch
	tab  *table
	data map[merkle.Hash][]byte // everything that was ever put
}

func (m *model) must(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
}

func (m *model) open() {
	var err error
	m.s, err = Open(m.dir, Options{Limit: 4 << 10})
	m.must(err)
	m.s.packSize = MaxRecord + 4096
	m.b, err = m.s.Begin(m.tab.index, m.tab.packEnd)
	m.must(err)
}

func (m *model) drawContent() []byte {
	// Few seeds, so that equal contents meet.
	n := rapid.OneOf(rapid.IntRange(0, 64), rapid.IntRange(4000, 4200), rapid.IntRange(0, 300<<10)).Draw(m.t, "size")
	return content(rapid.Uint64Range(0, 3).Draw(m.t, "seed"), n)
}

func (m *model) putBytes(t *rapid.T) {
	m.t = t
	data := m.drawContent()
	h, err := m.b.PutBytes(data)
	m.must(err)
	m.data[h] = data
}

func (m *model) putFile(t *rapid.T) {
	m.t = t
	data := m.drawContent()
	path := filepath.Join(m.dir, "source")
	m.must(os.WriteFile(path, data, 0o644))
	f, err := os.Open(path)
	m.must(err)
	defer f.Close()
	h, size, err := m.b.PutFile(f, path)
	m.must(err)
	if size != int64(len(data)) || h != merkle.ContentHash(data) {
		t.Fatalf("PutFile returned %s, %d", h, size)
	}
	m.data[h] = data
}

func (m *model) sync(t *rapid.T) {
	m.t = t
	recs, ends, err := m.b.Sync()
	m.must(err)
	m.tab.commit(recs, ends)
}

// syncLost is a barrier whose transaction never comes.
func (m *model) syncLost(t *rapid.T) {
	m.t = t
	_, _, err := m.b.Sync()
	m.must(err)
	m.reopen(t)
}

func (m *model) reopen(t *rapid.T) {
	m.t = t
	m.must(m.b.Close())
	m.must(m.s.Close())
	m.open()
}

// tear leaves garbage behind the records of a pack, as a killed writer does.
func (m *model) tear(t *rapid.T) {
	m.reopen(t)
	nums, err := m.s.packNumbers()
	m.must(err)
	if len(nums) == 0 {
		return
	}
	path := m.s.packPath(rapid.SampledFrom(nums).Draw(t, "pack"))
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	m.must(err)
	_, err = f.Write(content(9, rapid.IntRange(1, 2000).Draw(t, "garbage")))
	m.must(err)
	m.must(f.Close())
}

// check holds after every step: what was committed is there, verified, and the same; and a scan
// agrees.
func (m *model) check(t *rapid.T) {
	m.t = t
	for h, loc := range m.tab.all() {
		m.must(m.s.Verify(h, loc))
		if loc.Pack == 0 {
			continue
		}
		got, err := m.s.ReadSmall(h, loc, nil)
		m.must(err)
		if !bytes.Equal(got, m.data[h]) {
			t.Fatalf("content %s differs from what was put", h)
		}
	}
	seen := map[merkle.Hash]bool{}
	m.must(m.s.Scan(ScanOptions{Contents: true, PackEnd: m.tab.packEnd}, func(f Found) error {
		seen[f.Hash] = true
		return f.Err
	}))
	for h, loc := range m.tab.all() {
		if !seen[h] {
			t.Fatalf("scan does not find %s at %+v", h, loc)
		}
	}
}

func TestStoreAgainstModel(t *testing.T) {
	base := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp(base, "")
		m := &model{t: t, dir: dir, tab: newTable(), data: map[merkle.Hash][]byte{}}
		m.must(err)
		m.must(Create(dir, Options{}))
		m.open()
		defer func() {
			m.must(m.b.Close())
			m.must(m.s.Close())
			m.must(os.RemoveAll(dir))
		}()
		t.Repeat(map[string]func(*rapid.T){
			"": m.check, "bytes": m.putBytes, "file": m.putFile, "sync": m.sync,
			"lost": m.syncLost, "reopen": m.reopen, "tear": m.tear,
		})
	})
}

// TestManyGoroutines puts from several goroutines while another one syncs and reads.
func TestManyGoroutines(t *testing.T) {
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	const workers, each = 8, 60
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(w), 0))
			for range each {
				// Half of the seeds are shared by all workers.
				seed := rng.Uint64N(200)
				data := content(seed, int(seed*37%9000))
				h, err := b.PutBytes(data)
				if err != nil || h != merkle.ContentHash(data) {
					t.Errorf("PutBytes: %s, %v", h, err)
				}
				if seed%40 == 0 {
					large := content(seed, DefaultLimit+int(seed))
					if _, _, err := b.PutFile(sourceFile(t, large), "source"); err != nil {
						t.Errorf("PutFile: %v", err)
					}
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	total := 0
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		total += len(syncCommit(t, b, tab))
		verifyAll(t, s, tab)
	}
	if got := len(tab.all()); got != total {
		t.Errorf("%d records were handed out for %d contents: something was stored twice", total, got)
	}
	for seed := range uint64(200) {
		data := content(seed, int(seed*37%9000))
		if _, ok, _ := tab.index(merkle.ContentHash(data)); ok {
			wantContent(t, s, tab, merkle.ContentHash(data), data)
		}
	}
}
