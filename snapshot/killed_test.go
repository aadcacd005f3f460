package snapshot

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bole/merkle"
)

// killAfter runs a command and kills it after a while; false when it was faster.
func killAfter(t testing.TB, cmd *exec.Cmd, d time.Duration) bool {
	t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	ok(t, cmd.Start())
	timer := time.AfterFunc(d, func() { cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	if err != nil && cmd.ProcessState.Exited() {
		t.Fatalf("%v: %s", err, out.String())
	}
	return err != nil
}

// killRounds calls run with growing times after which it kills its child, until
// that is done before it is killed; setup comes before each round. Most of the
// rounds are where the child is at work.
func killRounds(t *testing.T, setup func(), run func(after time.Duration) (killed bool), check func()) {
	t.Helper()
	setup()
	start := time.Now()
	for run(time.Minute) {
	}
	full := time.Since(start)
	check()
	killed := 0
	for range rounds(20) {
		setup()
		if run(time.Duration(rand.Int64N(int64(full)*11/10) + 1)) {
			killed++
		}
		check()
	}
	t.Logf("%d of %d runs were killed within %v", killed, rounds(20), full)
}

// TestCheckoutKilled kills checkouts and runs them again: the disk is right
// then, and nothing is taken for somebody's work.
func TestCheckoutKilled(t *testing.T) {
	w := newWork(t)
	fill := func(text string) {
		for i := range 400 {
			p := fmt.Sprintf("d%d/%c%d/f", i%20, text[0], i) // no name in both, so all times are of the commit
			w.write(p, strings.Repeat(text, i))
		}
		w.write("large", strings.Repeat(text, 1<<20))
	}
	fill("one ")
	one := w.save("one")
	for i := range 20 {
		w.remove(fmt.Sprintf("d%d", i))
	}
	fill("two ")
	two := w.save("two")
	settleClock()
	want := map[merkle.Hash]tree{one: readCommitTree(t, w.Repo, one), two: readCommitTree(t, w.Repo, two)}
	to := one
	killRounds(t, func() {}, func(after time.Duration) bool {
		return killAfter(t, smallSteps(child(t, "checkout", w.root, to.String())), after)
	}, func() {
		w.mustCheckout(to.String()) // without force
		wantTree(t, "disk", readDisk(t, w.root), want[to])
		w.wantClean()
		if left, err := os.ReadDir(w.file("tmp")); err != nil || len(left) > 0 {
			t.Fatalf("left in .bole/tmp: %v, %v", left, err)
		}
		if to == one {
			to = two
		} else {
			to = one
		}
	})
}

// smallSteps makes a child write to the database every few records.
func smallSteps(cmd *exec.Cmd) *exec.Cmd {
	cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%d", limitEnv, 1+rand.IntN(30)))
	return cmd
}

// TestAddKilled kills adds between and in their checkpoints: what was recorded is
// sound, a commit of it holds nothing that was neither there before nor is there
// now, and the next add ends right.
func TestAddKilled(t *testing.T) {
	w := newWork(t)
	n := 0
	before := tree{}
	killRounds(t, func() {
		n++
		// Folders become files and files folders, names go, and come back.
		for i := range 150 {
			d := fmt.Sprintf("d%d", i%30)
			switch rand.IntN(4) {
			case 0:
				w.remove(d)
			case 1:
				w.remove(d)
				w.write(d, fmt.Sprint(n))
			default:
				if fi, err := os.Lstat(w.at(d)); err == nil && !fi.IsDir() {
					w.remove(d)
				}
				for k := range 5 {
					w.write(fmt.Sprintf("%s/%d/%d", d, rand.IntN(3), k), fmt.Sprint(n, i%3))
				}
			}
		}
	}, func(after time.Duration) bool { return killAfter(t, smallSteps(child(t, "add", w.root)), after) }, func() {
		w.wantSound()
		disk := readDisk(t, w.root)
		if len(before) == 0 {
			before = disk // the first was not killed
		}
		if _, err := w.tryCommit("half"); err == nil {
			half := readCommitTree(t, w.Repo, w.head())
			for p, n := range half {
				if !sameIn(n, before[p]) && !sameIn(n, disk[p]) {
					t.Fatalf("a commit of half an add has %q as %+v; before it was %+v, it is %+v", p, n, before[p], disk[p])
				}
			}
		}
		w.add()
		if _, err := w.tryCommit("after"); err != nil {
			wantErr(t, err, ErrNothing)
		}
		before = readCommitTree(t, w.Repo, w.head())
		if left := before.changesTo(disk, true); len(left) > 0 {
			t.Fatalf("the commit differs from the disk: %q", left[:min(10, len(left))])
		}
		w.wantClean()
	})
}

// TestCommitKilled: a commit is there or not.
func TestCommitKilled(t *testing.T) {
	w := newWork(t)
	n := 0
	killRounds(t, func() {
		n++
		for i := range 500 {
			w.write(fmt.Sprintf("d%d/f", i), fmt.Sprint(n))
		}
		w.add()
	}, func(after time.Duration) bool { return killAfter(t, child(t, "commit", w.root, "killed"), after) }, func() {
		w.wantSound()
		if _, err := w.tryCommit("after"); err != nil {
			wantErr(t, err, ErrNothing)
		}
		w.wantClean()
	})
}

// TestImportKilled kills imports of a tree with large and small files, and runs
// them again. With move no source is missing before the commit.
func TestImportKilled(t *testing.T) {
	for _, how := range []string{"move", "copy"} {
		t.Run(how, func(t *testing.T) {
			w := newWork(t, InitOptions{Bare: true})
			src := filepath.Join(t.TempDir(), "src")
			n := 0
			var want tree
			setup := func() {
				n++
				ok(t, os.RemoveAll(src))
				for i := range 40 {
					dir := filepath.Join(src, fmt.Sprint("d", i%5))
					ok(t, os.MkdirAll(dir, 0o755))
					size := 100
					if i%2 == 0 {
						size = 400_000
					}
					ok(t, os.WriteFile(filepath.Join(dir, fmt.Sprint("f", i)), []byte(strings.Repeat(fmt.Sprintf("%3d%5d\n", n, i), size/9)), 0o644))
				}
				want = readDisk(t, src)
			}
			dest := func() string { return fmt.Sprint("at", n) }
			again := func() ImportResult {
				head, err := w.Head()
				ok(t, err)
				if _, err := w.Lookup(head.Commit, dest()); head.Commit.IsZero() || err != nil { // not committed
					if missing := want.changesTo(readDisk(t, src), true); len(missing) > 0 {
						t.Fatalf("not committed, and the source has lost %q", missing)
					}
				}
				res, err := w.Import(ctx, ImportOptions{Source: src, Dest: dest(), Move: how == "move", Meta: Meta{Message: "again"}})
				if err != nil {
					wantErr(t, err, ErrNothing)
				}
				return res
			}
			killRounds(t, setup, func(after time.Duration) bool {
				return killAfter(t, smallSteps(child(t, "import", w.root, src, dest(), how)), after)
			}, func() {
				again()
				head, err := w.Head()
				ok(t, err)
				wantTree(t, "what was imported", readSubtree(t, w.Repo, head.Commit, dest()), want)
				if left := readDisk(t, src); how == "move" && len(left) != 1 {
					t.Fatalf("%d paths are left in the source", len(left)-1)
				}
			})
			w.wantSound()
		})
	}
}
