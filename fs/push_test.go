package fs

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"bole/merkle"
)

// drive sends READs of slots to a stream and returns what each made it push.
func drive(s *stream, credit *int, slots ...uint32) []uint32 {
	var got []uint32
	for _, slot := range slots {
		got = append(got, s.read(slot, credit))
	}
	return got
}

func TestStreamDecisions(t *testing.T) {
	const w = firstWindow
	for _, c := range []struct {
		name   string
		slots  []uint32
		credit int
		want   []uint32
		left   int
	}{
		{"the first READ pushes on credit", []uint32{5}, 3, []uint32{w}, 2},
		{"without credit it does not", []uint32{5}, 0, []uint32{0}, 0},
		{"two in a row do", []uint32{5, 6}, 0, []uint32{0, w}, 0},
		{"with one that is no file between", []uint32{5, 7}, 0, []uint32{0, w}, 0},
		{"READs of what was pushed, overtaking it", []uint32{1, 2, 3}, 3, []uint32{w, 0, 0}, 2},
		{"where pushing ended, it goes on and doubles", []uint32{1, 2 + w, 3 + w + 2*w}, 1, []uint32{w, 2 * w, 4 * w}, 2 * hitCredit},
		{"to a limit", []uint32{1, 18, 51, 116, 181}, 1, []uint32{w, 2 * w, maxWindow, maxWindow, maxWindow}, maxCredit},
		{"elsewhere it stops", []uint32{1, 500, 90, 300, 2}, 3, []uint32{w, 0, 0, 0, 0}, 2},
		{"backwards too", []uint32{50, 49, 48}, 1, []uint32{w, 0, 0}, 0},
		{"and starts again with two in a row", []uint32{1, 500, 501}, 1, []uint32{w, 0, w}, 0},
		{"the same again", []uint32{1, 1, 1}, 1, []uint32{w, 0, 0}, 0},
	} {
		var s stream
		credit := c.credit
		if got := drive(&s, &credit, c.slots...); fmt.Sprint(got) != fmt.Sprint(c.want) || credit != c.left {
			t.Errorf("%s: %v and credit %d, want %v and %d", c.name, got, credit, c.want, c.left)
		}
	}
}

// TestPushAhead: reading in listing order sends far fewer READs than files, and
// every byte is right whichever way it came.
func TestPushAhead(t *testing.T) {
	const dirs, files, size = 100, 30, 900
	dir, id := flatTree(t, dirs, files, size)
	m := mount(t, dir, id)
	readSlowly(t, m, dirs, files, size)
	s := m.stats()
	if n := s.Requests["READ"]; n > dirs*files/3 || s.Pushed < dirs*files/2 {
		t.Errorf("%d READs, %d pushed", n, s.Pushed)
	}
	m.settles("reading again", func() { readAll(t, m, dirs, files, size) })
}

// readSlowly is a program that does something with each file: pushing is then
// ahead of it on any machine.
func readSlowly(t testing.TB, m *mounted, dirs, files, size int) {
	t.Helper()
	for d := range dirs {
		es, err := os.ReadDir(m.path(fmt.Sprintf("d%03d", d)))
		check(t, err)
		for f, e := range es {
			got, err := os.ReadFile(m.path(fmt.Sprintf("d%03d", d), e.Name()))
			if err != nil || !bytes.Equal(got, noise(d*files+f, size)) {
				t.Fatalf("%s: %d bytes, %v", e.Name(), len(got), err)
			}
			if f == 0 {
				time.Sleep(2 * time.Millisecond)
			}
		}
	}
}

// TestPushStops: a program that reads one file in each directory makes only
// so many contents be pushed for nothing.
func TestPushStops(t *testing.T) {
	const dirs, files = 400, 20
	dir, id := flatTree(t, dirs, files, 100)
	m := mount(t, dir, id)
	for d := range dirs {
		p := m.path(fmt.Sprintf("d%03d", d))
		_, err := os.ReadDir(p)
		check(t, err)
		_, err = os.ReadFile(p + "/f0003")
		check(t, err)
	}
	if s := m.stats(); s.Pushed > maxCredit*firstWindow || s.Requests["READ"] != dirs {
		t.Errorf("%d pushed, %d READs", s.Pushed, s.Requests["READ"])
	}
}

// TestPushIsNeverDamaged: what is pushed is verified like what is read.
func TestPushIsNeverDamaged(t *testing.T) {
	b := newBuilder(t)
	for i := range 12 {
		b.file(fmt.Sprintf("f%02d", i), noise(i, 800))
	}
	dir, id := b.build()
	damageContent(t, dir, noise(5, 800))
	m := mount(t, dir, id)
	es, err := os.ReadDir(m.dir)
	check(t, err)
	for i, e := range es {
		got, err := os.ReadFile(m.path(e.Name()))
		if i == 5 {
			if err == nil {
				t.Errorf("damaged bytes are served")
			}
		} else if err != nil || !bytes.Equal(got, noise(i, 800)) {
			t.Errorf("%s: %d bytes %v", e.Name(), len(got), err)
		}
		time.Sleep(time.Millisecond)
	}
}

// warmPass mounts afresh, warms, and runs a pass: five times at most, until one
// pass sends no request but FORGET. (The kernel may drop pages whenever it likes.)
func warmPass(t *testing.T, dir string, id merkle.Hash, paths string, files, bytes uint64, pass func(m *mounted)) {
	t.Helper()
	var all []map[string]uint64
	for range 5 {
		m := mount(t, dir, id, func(c *daemonConfig) { c.IO = IOStateless })
		r, err := m.ask("warm " + paths)
		check(t, err)
		if r.Files != files || r.Bytes != bytes {
			t.Errorf("warm %q: %d files, %d bytes, want %d and %d", paths, r.Files, r.Bytes, files, bytes)
		}
		before := m.stats()
		if n := before.Requests["LOOKUP"]; n > 200 {
			t.Errorf("warming looked up %d names", n)
		}
		pass(m)
		d := m.since(before)
		delete(d, "FORGET")
		if len(d) == 0 {
			return
		}
		all = append(all, d)
	}
	t.Errorf("after warm %q: requests in each pass: %v", paths, all)
}

// TestWarm: afterwards no order of reading sends any request.
func TestWarm(t *testing.T) {
	const dirs, files, size = 60, 30, 700
	dir, id := flatTree(t, dirs, files, size)
	for paths, want := range map[string]int{"": dirs * files, ".": dirs * files, "d000,d001/,/d002": 3 * files, "d000/f0000": 1} {
		warmPass(t, dir, id, paths, uint64(want), uint64(want*size), func(m *mounted) {
			for _, i := range rand.New(rand.NewPCG(3, 4)).Perm(want) {
				got, err := os.ReadFile(m.path(fmt.Sprintf("d%03d/f%04d", i/files, i%files)))
				if err != nil || !bytes.Equal(got, noise(i, size)) {
					t.Fatalf("file %d: %d bytes, %v", i, len(got), err)
				}
			}
		})
	}
}

// TestWarmLargeDirectory: more files than one reply holds, and deep folders.
func TestWarmLargeDirectory(t *testing.T) {
	b := newBuilder(t)
	const n = 5000
	b.dirAt("d", 0o755)
	for i := range n {
		b.file(fmt.Sprintf("d/f%05d", i), noise(i, 60))
	}
	deep := "deep"
	for range 30 {
		b.dirAt(deep, 0o755)
		deep += "/deep"
	}
	b.file(deep, noise(n, 60))
	b.file("whole", noise(n+1, smallContent+1))
	dir, id := b.build()
	warmPass(t, dir, id, "", n+1, (n+1)*60, func(m *mounted) {
		for i := range n { // backwards, so that nothing is pushed ahead
			if got, err := os.ReadFile(m.path(fmt.Sprintf("d/f%05d", n-1-i))); err != nil || len(got) != 60 {
				t.Fatal(err)
			}
		}
		if _, err := os.ReadFile(m.path(deep)); err != nil {
			t.Error(err)
		}
	})
}

func TestWarmErrors(t *testing.T) {
	b := newBuilder(t)
	b.file("f", noise(1, 100))
	b.file("bad", noise(2, 100))
	b.symlink("l", "f")
	dir, id := b.build()
	damageContent(t, dir, noise(2, 100))
	m := mount(t, dir, id)
	for path, ok := range map[string]bool{"f": true, "l": true, "none": false, "f/x": false, "../etc": false, "bad": false, ".": false} {
		if _, err := m.ask("warm " + path); (err == nil) != ok {
			t.Errorf("warm %s: %v", path, err)
		}
	}
	before := m.stats()
	if _, err := os.ReadFile(m.path("f")); err != nil {
		t.Error(err)
	}
	if d := m.since(before); d["READ"] != 0 {
		t.Errorf("the good file beside a damaged one is not warm: %v", d)
	}
}
