package integration

import (
	"os"
	"strings"
	"testing"
)

// Hard links of a work tree are stored as equal files: independent, each with
// link count 1 and a number of its own.
func TestCase12HardLinksInTheWorkTree(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	big := strings.Repeat("large enough for a whole file. ", 1<<15)
	for name, content := range map[string]string{"small": "one", "empty": "", "big": big} {
		write(t, r.path(name), content)
		ok(t, os.Link(r.path(name), r.path(name+"2")))
		mkdir(t, r.path("sub"))
		ok(t, os.Link(r.path(name), r.path("sub", name)))
	}
	id := r.commit()
	r.wantClean()
	want := readTree(t, r.dir)
	r.views(id, func(t testing.TB, how, dir string) {
		got := readTree(t, dir)
		sameTree(t, how, want, got, sameOpts{})
		seen := make(map[uint64]string)
		for path, n := range got {
			if n.kind == "file" && n.nlink != 1 {
				t.Errorf("%s: %s has link count %d", how, path, n.nlink)
			}
			if other := seen[n.ino]; other != "" {
				t.Errorf("%s: %s and %s have the same number", how, path, other)
			}
			seen[n.ino] = path
		}
		listing := tool(t, "sh", "-c", `tar -C "$1" -cf - . | tar -tvf -`, "sh", dir)
		if strings.Contains(listing, "link to") {
			t.Errorf("%s: tar records a hard link:\n%s", how, listing)
		}
	})

	other := r.elsewhere(id)
	for _, name := range []string{"small", "big"} {
		f, err := os.OpenFile(other.path(name), os.O_WRONLY|os.O_APPEND, 0)
		ok(t, err)
		_, err = f.WriteString("more")
		ok(t, err)
		ok(t, f.Close())
		before := read(t, r.path(name))
		if got := read(t, other.path(name)); got != before+"more" {
			t.Errorf("appending to the restored %s gives %d bytes", name, len(got))
		}
		if read(t, other.path(name+"2")) != before || read(t, other.path("sub", name)) != before {
			t.Errorf("a write to the restored %s changed another name", name)
		}
		if got := r.must("cat", "HEAD:"+name); got != before {
			t.Errorf("a write to the restored %s changed the stored content", name)
		}
	}
	other.fsck()
	other.wantStatus("small", "big")
}
