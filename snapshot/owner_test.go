package snapshot

import (
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCopiesShareContents: a repository and its cp -a store into one folder of contents, whichever
// comes first; nothing that either knows is lost.
func TestCopiesShareContents(t *testing.T) {
	for _, order := range [][]int{{0, 1}, {1, 0}, {0, 1, 0, 1}, {1, 1, 0, 0, 1}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			dir := t.TempDir()
			roots := []string{filepath.Join(dir, "r1"), filepath.Join(dir, "r2")}
			ok(t, Init(roots[0], InitOptions{Contents: filepath.Join(dir, "contents")}))
			step := func(root, name, data string) {
				t.Helper()
				r, err := Open(root, OpenOptions{})
				ok(t, err)
				w := &work{t, r}
				w.write(name, data)
				w.save(name)
				w.wantSound()
				ok(t, r.Close())
			}
			step(roots[0], "first", "known to both")
			if out, err := exec.Command("cp", "-a", roots[0], roots[1]).CombinedOutput(); err != nil {
				t.Fatalf("cp: %v: %s", err, out)
			}
			want := []map[string]string{{"first": "known to both"}, {"first": "known to both"}}
			for i, k := range order {
				name := fmt.Sprintf("step %d", i)
				want[k][name] = strings.Repeat(name, 100*(i+1))
				step(roots[k], name, want[k][name])
			}
			for k, root := range roots {
				w := openWork(t, root)
				if res := w.wantSound(); res.Contents != uint64(len(want[k])) {
					t.Errorf("%s has %d contents, want %d", root, res.Contents, len(want[k]))
				}
				for name, data := range want[k] {
					w.remove(name)
					if _, err := w.Update(ctx, CheckoutOptions{Force: true}); err != nil {
						t.Fatal(err)
					}
					if w.read(name) != data {
						t.Errorf("%s: %q came back changed", root, name)
					}
				}
			}
		})
	}
}

// TestPackOwner: it stays with the file that the database is, and no other file has it.
func TestPackOwner(t *testing.T) {
	root := initWork(t)
	db := filepath.Join(root, DirName, "db")
	first, err := packOwner(db)
	ok(t, err)
	w := openWork(t, root)
	w.write("f", "x")
	w.save("one")
	if again, err := packOwner(db); err != nil || again != first {
		t.Errorf("owner went from %x to %x: %v", first, again, err)
	}
	head, err := os.ReadFile(filepath.Join(w.ContentsDir(), "packs", "00000001.pack"))
	ok(t, err)
	if [16]byte(head[8:24]) != first {
		t.Errorf("the pack belongs to %x, the database is %x", head[8:24], first)
	}
	other := t.TempDir()
	data, err := os.ReadFile(filepath.Join(db, "data.mdb"))
	ok(t, err)
	ok(t, os.WriteFile(filepath.Join(other, "data.mdb"), data, 0o644))
	second, err := packOwner(other)
	ok(t, err)
	fi, err := os.Stat(filepath.Join(other, "data.mdb"))
	ok(t, err)
	if born := int64(binary.LittleEndian.Uint64(second[8:])); second == first || born != 0 && born > fi.ModTime().UnixNano() {
		t.Errorf("owner of the copy is %x, of the database %x", second, first)
	}
	_, err = packOwner(filepath.Join(other, "none"))
	wantErr(t, err, fs.ErrNotExist, "data.mdb")
}

// TestContentsNotMounted says so, and which folder is meant.
func TestContentsNotMounted(t *testing.T) {
	contents := filepath.Join(t.TempDir(), "contents")
	root := initWork(t, InitOptions{Contents: contents})
	ok(t, os.Rename(contents, contents+".away"))
	for range 2 {
		_, err := Open(root, OpenOptions{})
		wantErr(t, err, fs.ErrNotExist, "the contents folder "+contents+" is missing or not mounted")
		ok(t, os.MkdirAll(contents, 0o755)) // the folder that a mount would cover
	}
}
