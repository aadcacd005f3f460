package snapshot

import (
	"slices"
	"strings"
	"testing"
)

// tracked lists the names that the next commit would hold.
func (w *work) tracked() []string {
	w.t.Helper()
	id := w.commit("tracked")
	var out []string
	for p := range readCommitTree(w.t, w.Repo, id) {
		if p != "" {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

func wantList(t tb, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

func TestNegatedPatterns(t *testing.T) {
	for _, c := range []struct {
		patterns string
		want     []string
	}{
		{"ignore.txt\n!no-ignore.txt\n", []string{".boleignore", "a.bin", "keep.bin", "no-ignore.txt"}},
		{"*.bin\n!keep.bin\n", []string{".boleignore", "ignore.txt", "keep.bin", "no-ignore.txt"}},
		{"*.bin\n*.txt\n!keep.bin\n/ignore.txt\n", []string{".boleignore", "keep.bin"}},
	} {
		w := newWork(t)
		for _, f := range []string{"ignore.txt", "no-ignore.txt", "a.bin", "keep.bin"} {
			w.write(f, f)
		}
		w.write(IgnoreFile, c.patterns)
		w.add()
		wantList(t, c.patterns, w.tracked(), c.want...)
		w.wantClean()
	}
}

// TestTrackedStaysTracked ignores names that are tracked already.
func TestTrackedStaysTracked(t *testing.T) {
	w := newWork(t)
	w.write("log", "1")
	w.write("build/a", "1")
	w.mkdir("build/empty")
	w.save("first")
	w.write(IgnoreFile, "log\nbuild/\n")
	w.write("build/new", "left out")
	w.write("build/sub/new", "left out")
	w.write("log", "2")
	w.write("build/a", "2")
	w.wantUnstaged("M log", "M build/a", "? .boleignore")
	w.add()
	wantList(t, "tracked", w.tracked(), ".boleignore", "build", "build/a", "build/empty", "log")
	w.wantClean()

	w.remove("log")
	w.remove("build/empty")
	w.save("gone")
	w.write("log", "again") // untracked by now, and left out
	w.mkdir("build/empty")
	w.wantClean()
}

// TestIgnoredByName asks for what patterns leave out.
func TestIgnoredByName(t *testing.T) {
	w := newWork(t)
	w.write(IgnoreFile, "*.o\nout/\n")
	w.write("a.o", "x")
	w.write("out/f", "x")
	w.write("src/b.o", "x")
	w.write("src/b.c", "x")
	for _, path := range []string{"a.o", "out", "out/f", "src/b.o"} {
		_, err := w.tryAdd("src/b.c", path)
		name := path
		if path == "out/f" {
			name = "out" // the pattern is about the folder
		}
		wantErr(t, err, ErrIgnored, name)
	}
	if n := w.stageRecords(); n != 0 {
		t.Fatalf("%d records of a refused add", n)
	}
	w.add("src")
	w.wantStaged("A src", "A src/b.c")
	_, err := w.Add(ctx, AddOptions{Paths: []string{"a.o", "out/f"}, Force: true})
	ok(t, err)
	w.wantStaged("A src", "A src/b.c", "A a.o", "A out", "A out/f")
	w.write("out/g", "x") // forcing one did not force all
	w.add()
	wantList(t, "tracked", w.tracked(), ".boleignore", "a.o", "out", "out/f", "src", "src/b.c")
}

func TestStatusListsIgnored(t *testing.T) {
	w := newWork(t)
	w.write(IgnoreFile, "*.o\nout/\n")
	w.write("a.o", "x")
	w.write("out/f", "x")
	w.write(".DS_Store", "x")
	st, err := w.Status(ctx, StatusOptions{Ignored: true})
	ok(t, err)
	wantList(t, "ignored", st.Ignored, ".DS_Store", "a.o", "out/")
	wantList(t, "untracked", st.Untracked, ".boleignore")
	wantList(t, "ignored unasked", w.status().Ignored)
}

// TestIgnoreFileKinds puts other things than a pattern file where one is looked for.
func TestIgnoreFileKinds(t *testing.T) {
	w := newWork(t)
	w.write("patterns", "*\n")
	w.link(IgnoreFile, "patterns") // a link is not followed
	w.mkdir("d/" + IgnoreFile)
	w.write("d/f", "x")
	w.write("e/f", "x")
	w.write("e/"+IgnoreFile, "\xef\xbb\xbff\r\n") // as some editors write it
	w.write("g/f", "x")
	w.write("g/"+IgnoreFile, "f")
	w.add()
	wantList(t, "tracked", w.tracked(), ".boleignore", "d", "d/.boleignore", "d/f", "e", "e/.boleignore",
		"g", "g/.boleignore", "patterns")
}

func TestHugeIgnoreFile(t *testing.T) {
	w := newWork(t)
	w.write("d/"+IgnoreFile, strings.Repeat("#\n", 9<<20))
	_, err := w.tryAdd()
	if err == nil || !strings.Contains(err.Error(), "d/"+IgnoreFile) {
		t.Fatalf("a pattern file of 18 MiB: %v", err)
	}
}
