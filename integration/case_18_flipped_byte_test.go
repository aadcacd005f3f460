package integration

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// flips returns offsets spread over a database file: page headers, the pointer
// arrays and values, both meta pages among them.
func flips(size int64) []int64 {
	offs := []int64{16, 4096 + 16, 8192 + 12}
	for i := range int64(often(50)) {
		// An odd step, so that all kinds of place within a page are met.
		offs = append(offs, (size/int64(often(50))*i+i*83)%size)
	}
	return offs
}

func TestCase18FlippedByteInAPage(t *testing.T) {
	t.Parallel()
	r := newFastRepo(t)
	for i := range 2000 {
		write(t, r.path(fmt.Sprintf("d%02d", i%50), fmt.Sprint("file", i)), fmt.Sprint("content ", i))
	}
	id := r.commit()
	want := readTree(t, r.dir)
	db := r.path(".bole", "db", "data.mdb")
	good, err := os.ReadFile(db)
	ok(t, err)
	words := make(map[string]int)
	for _, off := range flips(int64(len(good))) {
		bad := append([]byte(nil), good...)
		bad[off] ^= 0xff
		ok(t, os.WriteFile(db, bad, 0o644))
		for _, args := range [][]string{{"fsck"}, {"log"}, {"status"}, {"ls", "HEAD:d01"}} {
			res := runDamaged(t, off, append([]string{boleBin, "-C", r.dir}, args...))
			if args[0] == "log" && res.code == 0 && !strings.Contains(res.stdout, id) {
				t.Errorf("offset %d: log says nothing of the commit and exits 0", off)
			}
			words[fmt.Sprintf("%s exit %d", args[0], res.code)]++
		}
		words[readDamaged(t, r, off, want)]++
	}
	t.Logf("answers: %v", words)
	ok(t, os.WriteFile(db, good, 0o644))
	r.fsck()
}

// runDamaged runs one command on a damaged database: an error or a right
// answer, in bounded time, no signal, no trace.
func runDamaged(t *testing.T, off int64, args []string) result {
	t.Helper()
	res := run(t, command{args: args, limit: 30 * time.Second})
	if res.signal != 0 || res.code < 0 || res.code > 2 {
		t.Errorf("offset %d: %v", off, res)
	}
	if res.code != 0 && strings.TrimSpace(res.both()) == "" {
		t.Errorf("offset %d: fails without a word: %v", off, res)
	}
	return res
}

// readDamaged mounts the damaged repository and reads all of it: each content
// is either an error or right.
func readDamaged(t *testing.T, r *repo, off int64, want map[string]node) string {
	t.Helper()
	m := &mnt{t: t, dir: scratch(t) + "/M"}
	mkdir(t, m.dir)
	t.Cleanup(m.destroy)
	res := runDamaged(t, off, []string{boleBin, "-C", r.dir, "mount", "HEAD", m.dir})
	if res.code != 0 {
		if isMount(m.dir) {
			t.Errorf("offset %d: a mount stands after its command failed: %v", off, res)
		}
		return "mount refused"
	}
	defer m.destroy()
	list := run(t, command{args: []string{"ls", "-R", m.dir}, limit: 30 * time.Second})
	if list.signal != 0 {
		t.Errorf("offset %d: %v", off, list)
	}
	// The reader is a process of its own, so that a hanging read can be ended.
	sums := run(t, command{args: []string{"sh", "-c", `cd "$1" && find . -type f -print0 | xargs -0r sha256sum`, "sh", m.dir}, limit: time.Minute})
	n := 0
	for _, line := range lines(sums.stdout) {
		sum, path, _ := strings.Cut(line, "  ./")
		n++
		if w, there := want[path]; !there || fmt.Sprintf("%x", w.sum) != sum {
			t.Errorf("offset %d: %s has wrong content, or never was", off, path)
		}
	}
	files := 0
	for _, w := range want {
		if w.kind == "file" {
			files++
		}
	}
	if n != files && sums.stderr == "" {
		t.Errorf("offset %d: %d files of %d, and no error", off, n, files)
	}
	if n == files {
		return "mount complete"
	}
	return "mount with errors"
}

// Cut off at any length, the database is refused in words.
func TestCase18CutOffDatabase(t *testing.T) {
	t.Parallel()
	r := newFastRepo(t)
	for i := range 500 {
		write(t, r.path(fmt.Sprint("file", i)), fmt.Sprint("content ", i))
	}
	r.commit()
	db := r.path(".bole", "db", "data.mdb")
	good, err := os.ReadFile(db)
	ok(t, err)
	for _, n := range []int{0, 1, 100, 4095, 4096, 8191, 8192, 12288, len(good) / 2, len(good) - 4096, len(good) - 1} {
		ok(t, os.WriteFile(db, good[:n], 0o644))
		for _, args := range [][]string{{"log"}, {"status"}, {"fsck"}, {"add", "."}} {
			res := runDamaged(t, int64(n), append([]string{boleBin, "-C", r.dir}, args...))
			if res.code == 0 {
				t.Errorf("cut at %d of %d: %s succeeds", n, len(good), args[0])
			}
		}
	}
	ok(t, os.WriteFile(db, good, 0o644))
	r.fsck()
}
