package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"bole/lmdbstore"
	"bole/merkle"
)

// records counts the records of a table.
func (w *work) records(t lmdbstore.Table) (n uint64) {
	w.t.Helper()
	ok(w.t, w.db.View(func(rd *lmdbstore.Reader) (err error) {
		n, err = rd.Entries(t)
		return err
	}))
	return n
}

// ledgerRecords counts the records that imports keep.
func (w *work) ledgerRecords() uint64 { return w.records(lmdbstore.Cache) }

// stageRecords counts the records of the stage.
func (w *work) stageRecords() uint64 { return w.records(lmdbstore.Stage) }

// transactions counts the write transactions of fn.
func (w *work) transactions(fn func()) uint64 {
	w.t.Helper()
	before := w.lastTxn()
	fn()
	return w.lastTxn() - before
}

func TestTransactions(t *testing.T) {
	w := newWork(t)
	for i := range 500 {
		w.write(fmt.Sprintf("d%d/%d/f", i%10, i), fmt.Sprint(i))
		w.link(fmt.Sprintf("d%d/%d/l", i%10, i), "f")
	}
	settleClock()
	if n := w.transactions(func() { w.add() }); n != 1 {
		t.Errorf("the first add made %d transactions", n)
	}
	before := w.blobs.Stats()
	if n := w.transactions(func() { w.commit("first") }); n != 1 {
		t.Errorf("a commit made %d transactions", n)
	}
	if now := w.blobs.Stats(); now != before {
		t.Errorf("a commit touched contents: %+v, before %+v", now, before)
	}
	for range 2 {
		if n := w.transactions(func() { w.add() }); n != 0 {
			t.Errorf("an unchanged add made %d transactions", n)
		}
	}
	if now := w.blobs.Stats(); now != before {
		t.Errorf("an unchanged add touched contents: %+v, before %+v", now, before)
	}
	if n := w.transactions(func() { w.wantClean(); w.wantSound() }); n != 0 {
		t.Errorf("status and fsck made %d transactions", n)
	}
	w.write("d3/3/f", "changed")
	if n := w.transactions(func() { w.add("d3/3/f") }); n != 1 {
		t.Errorf("an add of one file made %d transactions", n)
	}
	if n := w.transactions(func() { w.commit("second") }); n != 1 {
		t.Errorf("a commit made %d transactions", n)
	}
	if n := w.transactions(func() {
		_, err := w.Add(ctx, AddOptions{DryRun: true})
		ok(t, err)
		_, err = w.tryAdd("nowhere")
		wantErr(t, err, ErrNoPath)
	}); n != 0 {
		t.Errorf("a dry run and a refused add made %d transactions", n)
	}
}

// TestDryRun says what would be recorded, records nothing and stores nothing.
func TestDryRun(t *testing.T) {
	w := newWork(t)
	w.write("changed", "1")
	w.write("gone", "1")
	w.write("same", "1")
	w.save("first")
	w.write("changed", "2")
	w.remove("gone")
	w.write("new/f", "1")
	w.write("same", "1") // written again: has to be read
	w.link("link", strings.Repeat("l", 300))
	before, stats := repoBytes(t, w.root), w.blobs.Stats()
	var got []string
	res, err := w.Add(ctx, AddOptions{DryRun: true, Changed: func(c PathChange) { got = append(got, c.Kind.String()+" "+c.Path) }})
	ok(t, err)
	if res.Added != 3 || res.Modified != 1 || res.Deleted != 1 || res.Unchanged != 1 {
		t.Errorf("result: %+v", res)
	}
	wantSame(t, got, "M changed", "D gone", "A new", "A new/f", "A link")
	if now := repoBytes(t, w.root); fmt.Sprint(now) != fmt.Sprint(before) || w.blobs.Stats() != stats {
		t.Errorf("a dry run changed the repository:\n%v\nbefore:\n%v", now, before)
	}
	var real []string
	_, err = w.Add(ctx, AddOptions{Changed: func(c PathChange) { real = append(real, c.Kind.String()+" "+c.Path) }})
	ok(t, err)
	wantSame(t, real, got...)
}

// wantSame compares lists in any order.
func wantSame(t tb, got []string, want ...string) {
	t.Helper()
	a, b := map[string]int{}, map[string]int{}
	for _, s := range got {
		a[s]++
	}
	for _, s := range want {
		b[s]++
	}
	if fmt.Sprint(a) != fmt.Sprint(b) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// flatDir makes many empty files in one folder.
func flatDir(t testing.TB, dir string, n int) {
	t.Helper()
	ok(t, os.MkdirAll(dir, 0o755))
	for i := range n {
		f, err := os.Create(filepath.Join(dir, fmt.Sprintf("some file name %07d", i)))
		ok(t, err)
		ok(t, f.Close())
	}
}

// rssAnon is the memory that a child says it has, in bytes.
func rssAnon(t testing.TB, out string) int {
	t.Helper()
	_, rest, found := strings.Cut(out, "RssAnon:")
	if !found {
		t.Fatalf("the child says nothing about its memory:\n%s", out)
	}
	kb, err := strconv.Atoi(strings.Fields(rest)[0])
	ok(t, err)
	return kb << 10
}

// TestMemory: a directory of 300,000 names is added, looked at, and removed in
// memory that does not grow with it, beside the names themselves, and in
// transactions of bounded size.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 300,000 files")
	}
	const limit = 64 << 20
	w := newWork(t)
	flatDir(t, w.at("flat"), 300_000)
	measure := func(what string, args ...string) string {
		t.Helper()
		out, err := runChild(t, args[0], append([]string{w.root}, args[1:]...)...)
		if err != nil {
			t.Fatalf("%s: %v\n%s", what, err, out)
		}
		if rss := rssAnon(t, out); rss > limit {
			t.Errorf("%s ends with %d MiB", what, rss>>20)
		} else {
			t.Logf("%s ends with %d MiB", what, rss>>20)
		}
		return out
	}
	measure("add", "add")
	w.commit("first")
	measure("unchanged add", "add")
	measure("status", "status")
	bare := newWork(t, InitOptions{Bare: true})
	out, err := runChild(t, "import", bare.root, w.at("flat"), "", "copy")
	if rss := rssAnon(t, out); err != nil || rss > limit {
		t.Errorf("import ends with %d MiB, %v", rss>>20, err)
	} else {
		t.Logf("import ends with %d MiB", rss>>20)
	}
	// Every name goes, and the folder stays.
	ok(t, os.RemoveAll(w.at("flat")))
	w.mkdir("flat")
	wantAll(t, measure("add of 300,000 deletions", "add"), "Deleted:300000")
	if n := w.records(lmdbstore.Stat); n > 2 {
		t.Errorf("%d records are left in the stat table", n)
	}
	w.remove("flat") // and now the folder goes with all that is recorded in it
	wantAll(t, measure("add of a deleted folder", "add"), "Deleted:1 ")
	if n := w.stageRecords(); n > 2 {
		t.Errorf("%d records are left in the stage", n)
	}
	w.wantPaths(w.commit("second"))
	if e, err := w.Lookup(w.head(), ""); err != nil || e.Totals() != (merkle.Totals{}) {
		t.Errorf("%+v, %v", e.Totals(), err)
	}
}
