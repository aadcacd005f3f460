package snapshot

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWorkPath holds the spellings of a path to git's rule.
func TestWorkPath(t *testing.T) {
	w := newWork(t)
	w.write("real/f", "x")
	w.write("real/sub/g", "x")
	w.link("link", "real")
	w.link("back", ".")
	w.link("dangling", "nowhere")
	w.link("flink", "real/f")
	other := filepath.Join(t.TempDir(), "other")
	ok(t, os.Symlink(w.root, other)) // the root, reached through a link
	sub := w.at("real/sub")
	for _, c := range []struct {
		cwd, arg, want string
		err            error
		text           string
	}{
		{w.root, "real/f", "real/f", nil, ""},
		{w.root, "./real/../real/f", "real/f", nil, ""},
		{w.root, "real//f", "real/f", nil, ""},
		{w.root, "real/", "real", nil, ""},
		{w.root, "real/.", "real", nil, ""},
		{w.root, ".", "", nil, ""},
		{w.root, "./", "", nil, ""},
		{w.root, w.at("real/f"), "real/f", nil, ""},
		{w.root, w.root, "", nil, ""},
		{sub, "g", "real/sub/g", nil, ""},
		{sub, "../f", "real/f", nil, ""},
		{sub, "../..", "", nil, ""},
		{sub, ".", "real/sub", nil, ""},
		{"/", other + "/real/f", "real/f", nil, ""},
		{other, "real/f", "real/f", nil, ""},
		{filepath.Join(other, "real"), "f", "real/f", nil, ""},
		{w.root, "not/there", "not/there", nil, ""},
		{w.root, "link", "link", nil, ""},
		{w.root, "dangling", "dangling", nil, ""},
		{w.root, "flink", "flink", nil, ""},

		{w.root, "link/f", "", ErrBeyondLink, "link"},
		{w.root, "link/", "", ErrBeyondLink, "link"},
		{w.root, "link/.", "", ErrBeyondLink, "link"},
		{w.root, "link/sub/g", "", ErrBeyondLink, "link"},
		{w.root, "back/real/f", "", ErrBeyondLink, "back"},
		{w.root, w.at("back/real/f"), "", ErrBeyondLink, "back"},
		{other, "link/f", "", ErrBeyondLink, "link"},
		{w.root, "dangling/x", "", ErrBeyondLink, "dangling"},
		{w.root, "flink/", "", ErrBeyondLink, "flink"},
		{w.root, "..", "", ErrOutside, ".."},
		{w.root, "../x", "", ErrOutside, "../x"},
		{w.root, "/etc/passwd", "", ErrOutside, "/etc/passwd"},
		{sub, "../../../x", "", ErrOutside, ""},
		{w.root, "", "", ErrNoPath, ""},
		{w.root, "real/f/", "", ErrNotDir, "real/f/"},
		{w.root, "real/f/.", "", ErrNotDir, "real/f/."},
		{w.root, "real/f/x", "real/f/x", nil, ""}, // the index may have it
	} {
		got, err := w.WorkPath(c.cwd, c.arg)
		if c.err != nil {
			if err == nil {
				t.Errorf("in %s, %q is %q, want an error", c.cwd, c.arg, got)
				continue
			}
			wantErr(t, err, c.err, c.text)
		} else if err != nil || got != c.want {
			t.Errorf("in %s, %q is %q, %v; want %q", c.cwd, c.arg, got, err, c.want)
		}
	}
	for _, arg := range []string{".bole", ".bole/db", ".BOLE/x", "a\x00b", filepath.Join(w.root, ".bole")} {
		if got, err := w.WorkPath(w.root, arg); err == nil {
			t.Errorf("%q is %q, want an error", arg, got)
		}
	}
}

// TestAddThroughALink: adding a link adds the link.
func TestAddThroughALink(t *testing.T) {
	w := newWork(t)
	w.write("real/f", "x")
	w.link("link", "real")
	w.add("link")
	w.wantStaged("A link")
	// The path of something beyond, given past WorkPath, records neither it nor the link.
	w = newWork(t)
	w.write("real/f", "x")
	w.link("link", "real")
	_, err := w.tryAdd("link/f")
	wantErr(t, err, ErrNoPath, "link/f")
	w.wantStaged()
}

// TestAddBelowWhatIsGone records deletions below folders that are gone or are none any more.
func TestAddBelowWhatIsGone(t *testing.T) {
	for name, change := range map[string]func(w *work){
		"gone":    func(w *work) { w.remove("d") },
		"a file":  func(w *work) { w.remove("d"); w.write("d", "file") },
		"a link":  func(w *work) { w.remove("d"); w.link("d", "/") },
		"a pipe":  func(w *work) { w.remove("d"); ok(w.t, unix.Mkfifo(w.at("d"), 0o644)) },
		"half":    func(w *work) { w.remove("d/e") },
		"nothing": func(w *work) {},
	} {
		w := newWork(t)
		w.write("d/e/f", "1")
		w.write("d/e/g", "1")
		w.write("d/h", "1")
		w.save("first")
		change(w)
		if _, err := w.tryAdd("d/e/f"); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if name == "nothing" {
			w.wantStaged()
		} else {
			w.wantStaged("D d/e/f")
		}
		_, err := w.tryAdd("d/e/never")
		wantErr(t, err, ErrNoPath, "d/e/never")
		_, err = w.tryAdd("d/e/f/below")
		wantErr(t, err, ErrNoPath, "d/e/f/below")
	}
}

// TestAddOfSomePaths records those and nothing else.
func TestAddOfSomePaths(t *testing.T) {
	w := newWork(t)
	for _, p := range []string{"a", "d/b", "d/c", "d/e/x", "d/e/y", "d2/z"} {
		w.write(p, "1")
	}
	w.add("d/b", "d/e")
	w.wantStaged("A d", "A d/b", "A d/e", "A d/e/x", "A d/e/y")
	w.wantUnstaged("? a", "? d/c", "? d2/")
	w.add()
	w.commit("first")
	for _, p := range []string{"a", "d/b", "d/c", "d/e/x"} {
		w.write(p, "2")
	}
	w.chmod("d", 0o700)
	w.chmod("d/e", 0o700)
	w.remove("d/e/y")
	w.remove("d2")
	w.add("d/e/y", "d/c") // the modes of folders on the way were not asked for
	w.wantStaged("D d/e/y", "M d/c")
	w.add("d/e")
	w.wantStaged("D d/e/y", "M d/c", "M d/e", "M d/e/x")
	_, err := w.tryAdd("d/c", "never")
	wantErr(t, err, ErrNoPath, "never")
	w.add("d2/z")
	w.wantStaged("D d/e/y", "M d/c", "M d/e", "M d/e/x", "D d2/z")
	w.add("d2")
	w.wantStaged("D d/e/y", "M d/c", "M d/e", "M d/e/x", "D d2")
	st := w.status("d/e", "a")
	wantList(t, "status of some paths", append(letters(st.Staged), letters(st.Unstaged)...), "M d/e", "M d/e/x", "D d/e/y", "M a")
}

// TestAddLongName: a name that no file system holds is named, not looked up.
func TestAddLongName(t *testing.T) {
	w := newWork(t)
	w.write("f", "x")
	for _, n := range []int{256, 300, 600, 5000} {
		name := strings.Repeat("n", n)
		_, err := w.tryAdd(name)
		if err == nil || !strings.Contains(err.Error(), name[:200]) {
			t.Fatalf("a name of %d bytes: %v", n, err)
		}
		_, err = w.tryAdd("d/" + name + "/x")
		wantErr(t, err, ErrNoPath)
	}
	w.wantStaged()
}

func TestBareHasNoWorkingDirectory(t *testing.T) {
	w := newWork(t, InitOptions{Bare: true})
	_, err := w.tryAdd()
	wantErr(t, err, ErrBare)
	_, err = w.Status(ctx, StatusOptions{})
	wantErr(t, err, ErrBare)
	_, err = w.tryCommit("x")
	wantErr(t, err, ErrBare)
	_, err = w.WorkPath("/", "x")
	wantErr(t, err, ErrBare)
	_, err = w.Update(ctx, CheckoutOptions{})
	wantErr(t, err, ErrBare)
	wantErr(t, w.DiffStaged(nil), ErrBare)
}
