package integration

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zeebo/blake3"
	"golang.org/x/sys/unix"
)

// while runs change again and again in the background until stop is called.
func while(change func(round int)) (stop func()) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				return
			default:
				change(i)
			}
		}
	})
	return sync.OnceFunc(func() { close(done); wg.Wait() })
}

// blake3Of returns the plain BLAKE3-256 of a file, as b3sum prints it.
func blake3Of(t testing.TB, path string) string {
	t.Helper()
	f, err := os.Open(path)
	ok(t, err)
	defer f.Close()
	h := blake3.New()
	_, err = io.Copy(h, f)
	ok(t, err)
	return hex.EncodeToString(h.Sum(nil))
}

// getAttr returns one attribute of a path, links not followed.
func getAttr(t testing.TB, path, name string) string {
	t.Helper()
	buf := make([]byte, 64<<10)
	n, err := unix.Lgetxattr(path, name, buf)
	if err != nil {
		t.Fatalf("getxattr %s %s: %v", path, name, err)
	}
	return string(buf[:n])
}

// hashesMatch fails unless each file's bytes match the name they are stored under.
func hashesMatch(t testing.TB, dir string, paths ...string) {
	t.Helper()
	for _, p := range paths {
		if got, want := blake3Of(t, dir+"/"+p), getAttr(t, dir+"/"+p, "user.bole.hash"); got != want {
			t.Errorf("%s: bytes hash to %s, stored as %s", p, got, want)
		}
	}
}

func TestCase13FileChangesWhileItIsAdded(t *testing.T) {
	const size = 200 * mib
	changes := map[string]func(f *os.File, i int){
		"rewritten": func(f *os.File, i int) {
			chunk := bytes.Repeat([]byte{byte(i)}, mib)
			for off := int64(size / 2); off < size; off += mib {
				_, _ = f.WriteAt(chunk, off)
			}
		},
		"truncated": func(f *os.File, i int) { _ = f.Truncate(int64(size - i%7*mib)); time.Sleep(time.Millisecond) },
		"appended":  func(f *os.File, i int) { _, _ = f.Seek(0, io.SeekEnd); _, _ = fmt.Fprintf(f, "line %d\n", i) },
	}
	for name, change := range changes {
		t.Run(name, func(t *testing.T) {
			r := newRepo(t)
			write(t, r.path("quiet"), "q")
			first := r.commit()
			f, err := os.Create(r.path("big"))
			ok(t, err)
			defer f.Close()
			_, err = f.Write(bytes.Repeat([]byte("some bytes"), size/10))
			ok(t, err)
			stop := while(func(i int) { change(f, i) })
			defer stop()
			time.Sleep(20 * time.Millisecond)
			res := r.run("add", "big")
			stop()
			if res.code != 0 {
				checkRefused(t, res, "big")
				if st := r.run("commit", "-m", "x"); st.code == 0 || r.head() != first {
					t.Errorf("the refused file was committed: %v", st)
				}
				r.must("add", "big")
			}
			r.must("commit", "-m", "x")
			r.fsck()
			m := r.mount("HEAD")
			hashesMatch(t, m.dir, "big", "quiet")
			m.umount()
			// What the file holds now is never missed by the next add.
			r.commitIfChanged()
			m = r.mount("HEAD")
			if blake3Of(t, m.path("big")) != blake3Of(t, r.path("big")) {
				t.Error("the file's last state was taken for unchanged")
			}
			m.umount()
		})
	}
}

// commitIfChanged adds everything and commits when there is something.
func (r *repo) commitIfChanged() {
	r.t.Helper()
	r.must("add", ".")
	if res := r.run("commit", "-m", "x"); res.code != 0 && res.code != 1 {
		r.t.Fatalf("%v", res)
	}
}

func TestCase13FilesComeAndGoDuringTheWalk(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for i := range 2000 {
		write(t, r.path(fmt.Sprintf("d%02d", i%40), fmt.Sprint(i)), fmt.Sprint("content ", i))
	}
	stop := while(func(i int) {
		dir := fmt.Sprintf("d%02d", i%40)
		_ = os.Remove(r.path(dir, fmt.Sprint(i%2000)))
		_ = os.Mkdir(r.path(dir, "sub"), 0o755)
		_ = os.WriteFile(r.path(dir, "sub", "new"), []byte(strings.Repeat("n", i%100)), 0o644)
		_ = os.RemoveAll(r.path(fmt.Sprintf("d%02d", (i+1)%40), "sub"))
		time.Sleep(20 * time.Microsecond)
	})
	defer stop()
	for range 10 {
		res := r.run("add", ".")
		if res.code != 0 {
			checkRefused(t, res)
		}
		if res := r.run("commit", "-m", "x"); res.code != 0 && res.code != 1 {
			t.Errorf("commit: %v", res)
		}
	}
	stop()
	r.fsck()
	r.commitIfChanged()
	r.wantClean()
	want := readTree(t, r.dir)
	m := r.mount("HEAD")
	sameTree(t, "mount", want, readTree(t, m.dir), sameOpts{dirTimes: true})
	m.umount()
}

// A change of the same size in the same clock tick is never missed.
func TestCase13SameSizeEditInTheSameTick(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	for i := range 60 {
		now := fmt.Sprintf("%03d", i)
		write(t, r.path("f"), now+"a")
		r.must("add", "f")
		write(t, r.path("f"), now+"b")
		if i%2 == 0 { // and the time of before, as a careful tool sets it
			st, err := os.Stat(r.path("f"))
			ok(t, err)
			write(t, r.path("f"), now+"c")
			ok(t, os.Chtimes(r.path("f"), st.ModTime(), st.ModTime()))
		}
		want := read(t, r.path("f"))
		if got := r.status()["f"]; !strings.Contains(got, "unstaged") {
			t.Fatalf("round %d: status misses the second edit: %q", i, got)
		}
		r.must("add", "f")
		r.must("commit", "-m", now)
		if got := r.must("cat", "HEAD:f"); got != want {
			t.Fatalf("round %d: the second edit was missed: %q, want %q", i, got, want)
		}
	}
}
