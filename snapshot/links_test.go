package snapshot

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"bole/merkle"
)

// TestRestoreOverALink: a link that stands where a file comes is replaced, and
// what it leads to stays as it is; also when that is our own database.
func TestRestoreOverALink(t *testing.T) {
	for _, target := range []string{"../victim", ".bole/db/data.mdb", ".bole/config.toml", "other"} {
		t.Run(target, func(t *testing.T) {
			w := newWork(t)
			w.write("f", "1")
			one := w.save("one")
			w.write("f", "2")
			w.write("other", "other")
			w.save("two")
			victim := w.at(target)
			if target == "../victim" {
				ok(t, os.WriteFile(victim, []byte("victim"), 0o644))
			}
			before, err := os.ReadFile(victim)
			ok(t, err)
			w.remove("f")
			w.link("f", target)
			_, err = w.checkout(one.String())
			wantConflicts(t, err, "f")
			if target == ".bole/db/data.mdb" { // it is written to with every transaction
				before, err = os.ReadFile(victim)
				ok(t, err)
			}
			w.mustCheckout(one.String(), true)
			if w.read("f") != "1" {
				t.Fatal("f is not restored")
			}
			if fi, err := os.Lstat(w.at("f")); err != nil || !fi.Mode().IsRegular() {
				t.Fatalf("f is %v, %v", fi.Mode(), err)
			}
			w.wantSound()
			after, err := os.ReadFile(victim)
			if target == "other" { // not in the first commit
				return
			}
			ok(t, err)
			if target != ".bole/db/data.mdb" && string(after) != string(before) {
				t.Fatalf("the victim was changed")
			}
		})
	}
}

// TestHardLinkToTheDatabase: it is never opened, which would drop this process's
// locks, and a checkout replaces it only when told to.
func TestHardLinkToTheDatabase(t *testing.T) {
	for _, name := range []string{"data.mdb", "lock.mdb"} {
		w := newWork(t)
		w.write("f", "1")
		one := w.save("one")
		w.write("f", "2")
		w.save("two")
		w.remove("f")
		for _, p := range []string{"f", "new"} {
			ok(t, os.Link(w.at(".bole/db/"+name), w.at(p)))
		}
		wantList(t, "skipped by status", w.statusSkipped(), "f", "new")
		wantList(t, "skipped by add", w.addSkipping(), "f", "new")
		_, err := w.tryAdd("new")
		wantErr(t, err, ErrUnreadable, "new")
		w.wantStaged()
		_, err = w.checkout(one.String())
		wantConflicts(t, err, "f")
		// The other process would take the database for nobody's, were the lock gone.
		if out, err := runChild(t, "status", w.root); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if locks, err := os.ReadFile("/proc/locks"); err == nil && !strings.Contains(string(locks), fmt.Sprintf(":%d ", w.dbFiles[1].Ino)) {
			t.Fatalf("%s: this process has lost its lock", name)
		}
		w.mustCheckout(one.String(), true)
		if w.read("f") != "1" {
			t.Fatal("f is not restored")
		}
		w.remove("new")
		w.wantClean()
		w.wantSound()
	}
}

// TestLinkedParent: a folder that became a link to a place outside is not
// written through, with force it is replaced.
func TestLinkedParent(t *testing.T) {
	w := newWork(t)
	w.write("d/e/f", "1")
	one := w.save("one")
	w.write("d/e/f", "2")
	w.write("d/e/new", "2")
	two := w.save("two")
	outside := t.TempDir()
	ok(t, os.MkdirAll(filepath.Join(outside, "e"), 0o755))
	ok(t, os.WriteFile(filepath.Join(outside, "e/f"), []byte("2"), 0o644))
	w.remove("d")
	w.link("d", outside)
	_, err := w.checkout(one.String())
	wantConflicts(t, err, "d")
	w.mustCheckout(one.String(), true)
	w.wantClean()
	for _, id := range []merkle.Hash{two, one} {
		w.remove("d/e")
		w.link("d/e", outside)
		w.mustCheckout(id.String(), true)
		w.wantClean()
	}
	got := readDisk(t, outside)
	if len(got) != 3 || got["e/f"].Data != "2" {
		t.Fatalf("the checkout reached outside: %v", got)
	}
}

// TestParentsReplacedMeanwhile swaps folders for links while checkouts run: they
// may fail, they must not leave the working directory.
func TestParentsReplacedMeanwhile(t *testing.T) {
	w := newWork(t)
	for i := range 100 {
		w.write(fmt.Sprintf("d%d/e/f", i%10), "1")
		w.write(fmt.Sprintf("d%d/e/%d", i%10, i), "1")
	}
	one := w.save("one")
	for i := range 100 {
		w.write(fmt.Sprintf("d%d/e/%d", i%10, i), "two")
		w.remove(fmt.Sprintf("d%d/e/f", i%10))
	}
	two := w.save("two")
	outside := t.TempDir()
	ok(t, os.Mkdir(filepath.Join(outside, "e"), 0o755))
	ok(t, os.WriteFile(filepath.Join(outside, "e/f"), []byte("victim"), 0o644))
	want := readDisk(t, outside)
	stop := while(func(i int) {
		d, saved := w.at(fmt.Sprintf("d%d", i%10)), w.at("saved")
		if unix.Rename(d, saved) == nil {
			os.Symlink(outside, d)
			os.Remove(d)
			unix.Rename(saved, d)
		}
	})
	for i := range rounds(60) {
		rev, err := w.Resolve([]merkle.Hash{one, two}[i%2].String())
		ok(t, err)
		w.Checkout(ctx, rev, CheckoutOptions{Force: true}) // may fail
	}
	stop()
	wantTree(t, "what lies outside", readDisk(t, outside), want)
	w.mustCheckout(one.String(), true)
	if st := w.status(); len(st.Unstaged)+len(st.Staged) > 0 {
		t.Fatalf("at rest unstaged %v", letters(st.Unstaged))
	}
}
