package blobstore

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

func TestCreateTwiceKeepsWhatIsThere(t *testing.T) {
	s, tab, hs := storeWith(t, content(1, 100))
	check(t, Create(s.dir, Options{}))
	wantContent(t, s, tab, hs[0], content(1, 100))
	wantErr(t, Create(filepath.Join(s.dir, "no", "parent"), Options{}), fs.ErrNotExist)
}

func TestOpenRefusesWhatIsNoStore(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("an empty folder is opened")
	}
	check(t, Create(dir, Options{}))
	check(t, os.Remove(filepath.Join(dir, wholeDir)))
	check(t, os.WriteFile(filepath.Join(dir, wholeDir), nil, 0o644))
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("a file in the place of whole/ is accepted")
	}
	if err := Create(dir, Options{}); err == nil {
		t.Error("Create accepts a file in the place of whole/")
	}
	check(t, os.Remove(filepath.Join(dir, wholeDir)))
	check(t, os.Symlink("/", filepath.Join(dir, wholeDir)))
	if _, err := Open(dir, Options{}); err == nil {
		t.Error("a symlink in the place of whole/ is followed")
	}
}

func TestModesOfSharedAndPrivateStores(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	for name, c := range map[string]struct {
		o                Options
		dir, pack, whole fs.FileMode
	}{
		"by umask": {Options{}, 0o700, 0o600, 0o444},
		"shared":   {Options{DirMode: 0o2775, FileMode: 0o664}, fs.ModeSetgid | 0o775, 0o664, 0o444},
		"private":  {Options{DirMode: 0o700, FileMode: 0o600}, 0o700, 0o600, 0o400},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "contents")
			check(t, Create(dir, c.o))
			s, err := Open(dir, c.o)
			check(t, err)
			defer s.Close()
			tab := newTable()
			b := begin(t, s, tab)
			putOne(t, b, 1, 10)
			h, _, err := b.PutFile(sourceFile(t, content(2, 1<<20)), "source")
			check(t, err)
			syncCommit(t, b, tab)
			for path, want := range map[string]fs.FileMode{
				dir: c.dir, filepath.Join(dir, packsDir): c.dir, filepath.Join(dir, tmpDir): c.dir,
				filepath.Dir(s.wholePath(&h)): c.dir, s.packPath(1): c.pack, s.wholePath(&h): c.whole,
			} {
				fi, err := os.Stat(path)
				check(t, err)
				if got := fi.Mode() & (fs.ModePerm | fs.ModeSetgid); got != want {
					t.Errorf("%s has mode %v, want %v", path, got, want)
				}
			}
		})
	}
}

// allocated runs fn and returns how many bytes of memory it asked for.
func allocated(fn func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	fn()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestMemoryDoesNotGrowWithTheFile stores, links, and verifies 200 MiB.
func TestMemoryDoesNotGrowWithTheFile(t *testing.T) {
	if testing.Short() {
		t.Skip("writes 200 MiB")
	}
	s, tab := newStore(t), newTable()
	b := begin(t, s, tab)
	path := filepath.Join(filepath.Dir(s.dir), "source")
	w, err := os.Create(path)
	check(t, err)
	chunk := content(1, 1<<20)
	for range 200 {
		_, err := io.Copy(w, bytes.NewReader(chunk))
		check(t, err)
	}
	check(t, w.Close())
	src := openSource(t, path)
	var h merkle.Hash
	for _, step := range []struct {
		what string
		do   func()
	}{
		{"PutFile", func() { h, _, err = b.PutFile(src, path) }},
		{"LinkFile", func() { h, _, _, err = b.LinkFile(src, path) }},
		{"VerifyWhole", func() { err = s.VerifyWhole(h) }},
	} {
		got := allocated(step.do)
		check(t, err)
		if got > 4<<20 {
			t.Errorf("%s allocated %d bytes", step.what, got)
		}
		syncCommit(t, b, tab)
	}
}

// TestMemoryDoesNotGrowWithTheNumber: about 100 bytes for each content until the Sync after the one
// that hands it over.
func TestMemoryDoesNotGrowWithTheNumber(t *testing.T) {
	s := newStore(t)
	b := begin(t, s, newTable()) // an empty table of the caller's
	heap := func() int64 {
		runtime.GC()
		runtime.GC() // the first leaves what pools hold
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	const n = 50000
	start := heap()
	for i := range n {
		_, err := b.PutBytes([]byte{byte(i), byte(i >> 8), byte(i >> 16)})
		check(t, err)
	}
	if grown := heap() - start; grown > n*200 {
		t.Errorf("%d pending contents take %d bytes", n, grown)
	}
	recs, ends, err := b.Sync()
	check(t, err)
	if len(recs) != n || len(ends) == 0 {
		t.Fatalf("%d records, %d ends", len(recs), len(ends))
	}
	_, _, err = b.Sync()
	check(t, err)
	if grown := heap() - start; grown > 1<<20 {
		t.Errorf("%d bytes are still held after the contents were handed over", grown)
	}
	runtime.KeepAlive(b)
}
