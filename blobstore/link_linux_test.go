package blobstore

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"bole/merkle"
)

// linkStore makes a store and a source folder on one file system.
func linkStore(t *testing.T) (*Store, *table, *Batch, func(seed uint64, n int) *os.File) {
	t.Helper()
	dir := t.TempDir()
	s, tab := createAt(t, filepath.Join(dir, "contents")), newTable()
	source := func(seed uint64, n int) *os.File {
		path := filepath.Join(dir, "source-"+content2name(seed))
		check(t, os.WriteFile(path, content(seed, n), 0o640))
		return openSource(t, path)
	}
	return s, tab, begin(t, s, tab), source
}

func content2name(seed uint64) string { return merkle.ContentHash(content(seed, 8)).String()[:8] }

func inode(t testing.TB, path string) fileStat {
	t.Helper()
	f, err := os.Open(path)
	check(t, err)
	defer f.Close()
	st, err := fstat(f)
	check(t, err)
	return st
}

func TestLinkSharesTheInode(t *testing.T) {
	s, tab, b, source := linkStore(t)
	src := source(1, 3<<20)
	before := inode(t, src.Name())
	h, size, linked, err := b.LinkFile(src, src.Name())
	check(t, err)
	if !linked || size != 3<<20 || h != merkle.ContentHash(content(1, 3<<20)) {
		t.Fatalf("linked %v, %d bytes, hash %s", linked, size, h)
	}
	syncCommit(t, b, tab)
	if st := s.Stats(); st.BytesWritten != 0 || st.BytesHashed != 3<<20 {
		t.Errorf("%d bytes written, %d hashed: want none written and each hashed once", st.BytesWritten, st.BytesHashed)
	}
	after := inode(t, s.wholePath(&h))
	if !after.sameBytes(before.fileID) || after.perm != 0o640 {
		t.Errorf("whole file is %+v, source was %+v", after, before)
	}
	if _, err := os.Stat(src.Name()); err != nil {
		t.Error("the source is gone before the commit")
	}
	check(t, s.Seal(h, size, before.mtime))
	check(t, os.Remove(src.Name()))
	if st := inode(t, s.wholePath(&h)); st.perm != 0o444 || st.nlink != 1 {
		t.Errorf("sealed file has mode %v and %d names", st.perm, st.nlink)
	}
	wantContent(t, s, tab, h, content(1, 3<<20))
	check(t, s.Seal(h, size, before.mtime))
	if left := names(t, s, tmpDir); len(left) != 1 {
		t.Errorf("left in tmp: %v", left)
	}
}

func TestLinkCopiesWhereItMust(t *testing.T) {
	for name, c := range map[string]struct {
		size    int
		prepare func(t *testing.T, path string)
	}{
		"small": {DefaultLimit, func(*testing.T, string) {}},
		"open for writing": {1 << 20, func(t *testing.T, path string) {
			w, err := os.OpenFile(path, os.O_WRONLY, 0)
			check(t, err)
			t.Cleanup(func() { w.Close() })
		}},
		"mapped for writing": {1 << 20, func(t *testing.T, path string) {
			w, err := os.OpenFile(path, os.O_RDWR, 0)
			check(t, err)
			m, err := syscall.Mmap(int(w.Fd()), 0, 4096, syscall.PROT_WRITE, syscall.MAP_SHARED)
			check(t, errors.Join(err, w.Close()))
			t.Cleanup(func() { check(t, syscall.Munmap(m)) })
		}},
		"two names": {1 << 20, func(t *testing.T, path string) { check(t, os.Link(path, path+".2")) }},
		"three names": {1 << 20, func(t *testing.T, path string) {
			check(t, errors.Join(os.Link(path, path+".2"), os.Link(path, path+".3")))
		}},
		"unlinked": {1 << 20, func(t *testing.T, path string) { check(t, os.Remove(path)) }},
	} {
		t.Run(name, func(t *testing.T) {
			s, tab, b, source := linkStore(t)
			src := source(1, c.size)
			before := inode(t, src.Name())
			c.prepare(t, src.Name())
			h, _, linked, err := b.LinkFile(src, src.Name())
			check(t, err)
			if linked {
				t.Error("was linked")
			}
			syncCommit(t, b, tab)
			wantContent(t, s, tab, h, content(1, c.size))
			if loc := tab.all()[h]; loc.Pack == 0 && inode(t, s.wholePath(&h)).sameInode(before.fileID) {
				t.Error("the store has the source's inode")
			}
		})
	}
}

func TestLinkFromAnotherFileSystem(t *testing.T) {
	if _, err := os.Stat("/dev/shm"); err != nil {
		t.Skip("no second file system at /dev/shm")
	}
	f, err := os.CreateTemp("/dev/shm", "bole-blobstore-test")
	check(t, err)
	defer os.Remove(f.Name())
	_, err = f.Write(content(1, 1<<20))
	check(t, errors.Join(err, f.Close()))
	s, tab, b, _ := linkStore(t)
	if inode(t, f.Name()).dev == inode(t, s.dir).dev {
		t.Skip("/dev/shm is the file system of the store")
	}
	src := openSource(t, f.Name())
	h, _, linked, err := b.LinkFile(src, src.Name())
	check(t, err)
	if linked {
		t.Error("linked across file systems")
	}
	syncCommit(t, b, tab)
	wantContent(t, s, tab, h, content(1, 1<<20))
}

func TestLinkOfKnownContent(t *testing.T) {
	s, tab, b, _ := linkStore(t)
	putLargeOnes(t, b, 7, 1)
	h := merkle.ContentHash(content(7, DefaultLimit+1))
	check(t, os.WriteFile(filepath.Join(filepath.Dir(s.dir), "again"), content(7, DefaultLimit+1), 0o644))
	again := openSource(t, filepath.Join(filepath.Dir(s.dir), "again"))
	for range 2 {
		got, size, linked, err := b.LinkFile(again, "again")
		check(t, err)
		if got != h || size != DefaultLimit+1 || linked {
			t.Errorf("hash %s, %d bytes, linked %v", got, size, linked)
		}
		if st := inode(t, again.Name()); st.nlink != 1 {
			t.Errorf("the source has %d names", st.nlink)
		}
		syncCommit(t, b, tab)
		b = begin(t, s, tab)
	}
}

// TestLinkAfterAnEarlierRun: a run that ended before its commit left links; the next one takes them
// as its own.
func TestLinkAfterAnEarlierRun(t *testing.T) {
	for name, end := range map[string]func(t *testing.T, b *Batch, tab *table){
		"before the barrier":     func(*testing.T, *Batch, *table) {},
		"before the transaction": func(t *testing.T, b *Batch, _ *table) { _, _, err := b.Sync(); check(t, err) },
		"before the commit":      func(t *testing.T, b *Batch, tab *table) { syncCommit(t, b, tab) },
	} {
		t.Run(name, func(t *testing.T) {
			s, tab, b, source := linkStore(t)
			src := source(1, 1<<20)
			mtime := inode(t, src.Name()).mtime
			_, _, _, err := b.LinkFile(src, src.Name())
			check(t, err)
			end(t, b, tab)
			check(t, b.Close())
			b = begin(t, s, tab)
			before := s.Stats().BytesWritten
			h, size, linked, err := b.LinkFile(src, src.Name())
			check(t, err)
			if !linked || s.Stats().BytesWritten != before {
				t.Errorf("linked %v, %d bytes written", linked, s.Stats().BytesWritten-before)
			}
			syncCommit(t, b, tab)
			check(t, s.Seal(h, size, mtime))
			wantContent(t, s, tab, h, content(1, 1<<20))
		})
	}
}

// TestUnsealedFileIsNotTrusted: a file that was linked and never sealed may have been changed
// through its source, with the same size and time.
func TestUnsealedFileIsNotTrusted(t *testing.T) {
	s, tab, b, source := linkStore(t)
	src := source(1, 1<<20)
	h, _, _, err := b.LinkFile(src, src.Name())
	check(t, err)
	syncCommit(t, b, tab)
	check(t, b.Close())
	check(t, patch(src.Name(), 1<<19, ^content(1, 1<<20)[1<<19]))

	b = begin(t, s, tab)
	good := sourceFile(t, content(1, 1<<20))
	_, _, err = b.PutFile(good, "good")
	check(t, err)
	syncCommit(t, b, tab)
	check(t, s.VerifyWhole(h))
}

// TestLinkDoesNotReplaceASealedFile that another process put there between the look-up and the
// barrier.
func TestLinkDoesNotReplaceASealedFile(t *testing.T) {
	for _, damage := range []bool{false, true} {
		s, tab, b, source := linkStore(t)
		src := source(1, 1<<20)
		mtime := inode(t, src.Name()).mtime
		h, size, linked, err := b.LinkFile(src, src.Name())
		check(t, err)
		if !linked {
			t.Fatal("not linked")
		}
		other := begin(t, reopen(t, s.dir), tab)
		_, _, err = other.PutFile(src, src.Name())
		check(t, err)
		_, _, err = other.Sync()
		check(t, err)
		if damage {
			check(t, os.Chmod(s.wholePath(&h), 0o644))
			check(t, patch(s.wholePath(&h), 0, ^content(1, 1)[0]))
			check(t, os.Chmod(s.wholePath(&h), 0o444))
		}
		syncCommit(t, b, tab)
		check(t, s.VerifyWhole(h))
		if st := inode(t, s.wholePath(&h)); st.sameInode(inode(t, src.Name()).fileID) != damage {
			t.Errorf("damaged %v: whole file is %+v", damage, st)
		}
		check(t, s.Seal(h, size, mtime))
		if left := names(t, s, tmpDir); len(left) != 2 { // two owners' locks
			t.Errorf("left in tmp: %v", left)
		}
	}
}

func TestLinkedFileThatChanges(t *testing.T) {
	t.Run("while it is hashed", func(t *testing.T) {
		s, tab, b, source := linkStore(t)
		src := source(1, 5<<20)
		changed := false
		s.midRead = func() {
			if !changed {
				changed = true
				check(t, os.Chtimes(src.Name(), time.Now(), time.Unix(1, 0)))
			}
		}
		h, _, linked, err := b.LinkFile(src, src.Name())
		check(t, err)
		if linked {
			t.Error("was linked")
		}
		syncCommit(t, b, tab)
		check(t, s.VerifyWhole(h))
	})
	t.Run("before Sync", func(t *testing.T) {
		s, _, b, source := linkStore(t)
		src := source(1, 1<<20)
		_, _, _, err := b.LinkFile(src, src.Name())
		check(t, err)
		check(t, patch(src.Name(), 5, 'x'))
		recs, _, err := b.Sync()
		wantErr(t, err, ErrChanged)
		if len(recs) != 0 || !strings.Contains(err.Error(), src.Name()) {
			t.Errorf("%d records, error %v", len(recs), err)
		}
		check(t, b.Close())
		if left := names(t, s, tmpDir); len(left) != 0 || inode(t, src.Name()).nlink != 1 {
			t.Errorf("left in tmp: %v", left)
		}
	})
	t.Run("before Seal", func(t *testing.T) {
		s, tab, b, source := linkStore(t)
		src := source(1, 1<<20)
		mtime := inode(t, src.Name()).mtime
		h, size, _, err := b.LinkFile(src, src.Name())
		check(t, err)
		syncCommit(t, b, tab)
		check(t, patch(src.Name(), 5, ^content(1, 6)[5]))
		wantErr(t, s.Seal(h, size, mtime), ErrChanged)
		_, err = s.Whole(h)
		wantErr(t, err, ErrDamaged)
	})
	t.Run("only its time, before Seal", func(t *testing.T) {
		s, tab, b, source := linkStore(t)
		src := source(1, 1<<20)
		h, size, _, err := b.LinkFile(src, src.Name())
		check(t, err)
		syncCommit(t, b, tab)
		check(t, s.Seal(h, size, 12345))
		if st := inode(t, s.wholePath(&h)); st.perm != 0o444 {
			t.Errorf("mode is %v", st.perm)
		}
	})
}

// TestSealOfFileOpenForWriting puts a copy in its place; the writer keeps the source.
func TestSealOfFileOpenForWriting(t *testing.T) {
	s, tab, b, source := linkStore(t)
	src := source(1, 1<<20)
	before := inode(t, src.Name())
	h, size, _, err := b.LinkFile(src, src.Name())
	check(t, err)
	syncCommit(t, b, tab)
	w, err := os.OpenFile(src.Name(), os.O_RDWR, 0)
	check(t, err)
	defer w.Close()
	check(t, s.Seal(h, size, before.mtime))
	_, err = w.WriteAt([]byte("written afterwards"), 0)
	check(t, err)
	check(t, s.VerifyWhole(h))
	if st := inode(t, s.wholePath(&h)); st.sameInode(before.fileID) || st.perm != 0o444 {
		t.Errorf("whole file is %+v", st)
	}
	if st := inode(t, src.Name()); st.perm != 0o640 || st.nlink != 1 {
		t.Errorf("source is %+v", st)
	}
	if left := names(t, s, tmpDir); len(left) != 1 {
		t.Errorf("left in tmp: %v", left)
	}
	// The same while the bytes have changed already: nothing is sealed.
	src = source(2, 1<<20)
	h, size, _, err = b.LinkFile(src, src.Name())
	check(t, err)
	syncCommit(t, b, tab)
	w2, err := os.OpenFile(src.Name(), os.O_RDWR, 0)
	check(t, err)
	defer w2.Close()
	_, err = w2.WriteAt([]byte("x"), 0)
	check(t, err)
	wantErr(t, s.Seal(h, size, before.mtime), ErrChanged)
}

// TestLeaseMakesWritersWait: a program that opens the source for writing while it is hashed gets it
// when the lease is given back, and the file is then copied.
func TestLeaseMakesWritersWait(t *testing.T) {
	s, tab, b, source := linkStore(t)
	src := source(1, 5<<20)
	var cmd *exec.Cmd
	s.midRead = func() {
		if cmd != nil {
			return
		}
		// Another process: within one, Go's own open would wait on this goroutine's thread.
		cmd = exec.Command("sh", "-c", "exec 3<>\"$0\"; printf changed >&3", src.Name())
		check(t, cmd.Start())
		for leaseHeld(src) {
			time.Sleep(time.Millisecond)
		}
	}
	h, _, linked, err := b.LinkFile(src, src.Name())
	if cmd == nil {
		t.Fatal("the file was not read")
	}
	check(t, cmd.Wait())
	if linked {
		t.Error("was linked although a writer came")
	}
	if errors.Is(err, ErrChanged) {
		return // the writer came in each of the copy's tries
	}
	check(t, err)
	syncCommit(t, b, tab)
	check(t, s.VerifyWhole(h))
}
