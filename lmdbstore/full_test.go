package lmdbstore

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"bole/merkle"
)

// TestMapFull: nothing of the transaction remains, everything before does.
func TestMapFull(t *testing.T) {
	dir := newDir(t)
	s := openWith(t, dir, Options{MapSize: 1 << 20})
	update(t, s, putNodes(0, 300, 900))
	before := txnID(t, s)
	for range 3 {
		err := s.Update(func(w *Writer) error {
			if err := w.Put(Refs, []byte("main"), []byte("x")); err != nil {
				return err
			}
			return putNodes(300, 5000, 900)(w)
		})
		mustFail(t, err, ErrMapFull, s.dataFile(), "ulimit")
	}
	// Ignoring the error of a put does not lead to half a commit.
	mustFail(t, s.Update(func(w *Writer) error {
		for i := range 5000 {
			w.Put(Stage, fmt.Appendf(nil, "%d", i), make([]byte, 900))
		}
		return nil
	}), ErrMapFull)
	if after := txnID(t, s); after != before {
		t.Errorf("transaction %d became %d", before, after)
	}
	if got := readRecords(t, s, Refs, "", ""); len(got) != 0 {
		t.Errorf("refs hold %v", got)
	}
	view(t, s, func(r *Reader) error { return checkNodes(r, 0, 300, 900) })
	update(t, s, putNodes(300, 310, 900))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	// With a larger map the same succeeds.
	s = openDir(t, dir)
	update(t, s, putNodes(300, 5000, 900))
	view(t, s, func(r *Reader) error { return checkNodes(r, 0, 5000, 900) })
}

func init() {
	// Opens a database with a limited address space.
	children["limited"] = func(args []string) int {
		limit := syscall.Rlimit{Cur: 32 << 30, Max: 32 << 30}
		fatal(syscall.Setrlimit(syscall.RLIMIT_AS, &limit))
		s, err := Open(args[0], Options{})
		fatal(err)
		fatal(s.View(func(r *Reader) error { return checkNodes(r, 0, 10, 900) }))
		fatal(s.Update(putNodes(10, 20, 900)))
		info, err := s.Info()
		fatal(err)
		fmt.Println(info.MapSize)
		fatal(s.Close())
		return 0
	}
	// Makes steps until one fails; the file may grow up to args[1] bytes.
	children["file limit"] = func(args []string) int {
		s, err := Open(args[0], Options{})
		fatal(err)
		var bytes uint64
		fmt.Sscan(args[1], &bytes)
		signal.Ignore(syscall.SIGXFSZ)
		fatal(syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: bytes, Max: bytes}))
		stepUntilFull(s)
		return 0
	}
	// Makes steps until one fails.
	children["until full"] = func(args []string) int {
		s, err := Open(args[0], Options{})
		fatal(err)
		stepUntilFull(s)
		return 0
	}
}

// stepUntilFull prints how many steps succeeded and why the next did not.
func stepUntilFull(s *Store) {
	for n := 0; ; n++ {
		if err := s.Update(step); err != nil {
			fmt.Println(n, errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EFBIG), err)
			fatal(s.View(func(r *Reader) error { return checkNodes(r, 0, n*perStep, 600) }))
			if err := s.Update(step); err == nil {
				fatal(fmt.Errorf("the disk is full and then it is not"))
			}
			fatal(s.Close())
			return
		}
	}
}

func TestLimitedAddressSpace(t *testing.T) {
	dir := filledDir(t, 10, 900)
	status, stdout, stderr := runChild(t, "limited", dir)
	if status != 0 || strings.TrimSpace(stdout) != fmt.Sprint(smallMapSize) {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
	s := openDir(t, dir)
	view(t, s, func(r *Reader) error { return checkNodes(r, 0, 20, 900) })
	if info, err := s.Info(); err != nil || info.MapSize != DefaultMapSize {
		t.Errorf("map size %d, %v", info.MapSize, err)
	}
}

// checkFull checks what stepUntilFull printed and what it left.
func checkFull(t *testing.T, dir, stdout, stderr string) {
	t.Helper()
	var steps uint64
	var full bool
	fmt.Sscan(stdout, &steps, &full)
	if !full || stderr != "" || !strings.Contains(stdout, filepath.Join(dir, "data.mdb")) {
		t.Errorf("stdout: %s\nstderr: %s", stdout, stderr)
	}
	s := openDir(t, dir)
	if n := checkSteps(t, s); n != steps {
		t.Errorf("%d steps of %d remain", n, steps)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestFileMayNotGrow: the system refuses to let data.mdb grow, at many sizes.
func TestFileMayNotGrow(t *testing.T) {
	manyProcesses(t)
	for _, size := range []int{36864, 40960, 45000, 99_000, 300_000, 1_000_000} {
		dir := newDir(t)
		_, stdout, stderr := runChild(t, "file limit", dir, fmt.Sprint(size))
		checkFull(t, dir, stdout, stderr)
		s := openDir(t, dir)
		before := checkSteps(t, s)
		update(t, s, step)
		if after := checkSteps(t, s); after != before+1 {
			t.Errorf("%d steps after %d", after, before)
		}
	}
}

// TestDiskFull: a disk of its own that is full.
func TestDiskFull(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	for _, kilobytes := range []int{64, 256, 1024, 3000} {
		disk := t.TempDir()
		if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%dk", kilobytes)); err != nil {
			t.Skipf("cannot mount here: %v", err)
		}
		dir := filepath.Join(disk, "db")
		err := Create(dir, Options{})
		if err == nil {
			_, stdout, stderr := runChild(t, "until full", dir)
			checkFull(t, dir, stdout, stderr)
		} else {
			mustFail(t, err, syscall.ENOSPC, dir)
		}
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestReadOnlyDisk: on a disk that nobody can write no lock file is needed.
func TestReadOnlyDisk(t *testing.T) {
	disk := smallDisk(t, 8<<20)
	dir := filepath.Join(disk, "db")
	if err := Create(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	s := openDir(t, dir)
	update(t, s, putNodes(0, 50, 900))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "lock.mdb")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("", disk, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	_, err := Open(dir, Options{})
	mustFail(t, err, syscall.EROFS, dir)
	s, err = Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	view(t, s, func(r *Reader) error { return checkNodes(r, 0, 50, 900) })
	if err := s.Nodes(func(merkle.Key, []byte) error { return nil }); err != nil {
		t.Error(err)
	}
	if _, err := s.Info(); err != nil {
		t.Error(err)
	}
	mustFail(t, s.Update(func(w *Writer) error { return nil }), ErrReadOnly)
}

// TestReadOnlyBindMount: others may write what cannot be written here, so a
// reader without a lock is refused.
func TestReadOnlyBindMount(t *testing.T) {
	disk, bind := smallDisk(t, 8<<20), t.TempDir()
	if err := Create(filepath.Join(disk, "db"), Options{}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount(disk, bind, "", syscall.MS_BIND, ""); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	defer func() {
		if err := syscall.Unmount(bind, 0); err != nil {
			t.Error(err)
		}
	}()
	if err := syscall.Mount("", bind, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(bind, "db")
	for _, o := range []Options{{}, {ReadOnly: true}} {
		_, err := Open(dir, o)
		mustFail(t, err, syscall.EROFS, dir, "lock.mdb")
	}
	openDir(t, filepath.Join(disk, "db"))
}

func init() {
	// Makes a database and takes one step; status 4 for an error.
	children["create"] = func(args []string) int {
		err := Create(args[0], Options{})
		if err == nil {
			var s *Store
			if s, err = Open(args[0], Options{}); err == nil {
				err = s.Update(func(w *Writer) error { return w.Put(Refs, []byte("main"), []byte("x")) })
				fatal(s.Close())
			}
		}
		if err != nil {
			fmt.Println(err)
			return 4
		}
		return 0
	}
	// Has many readers at once, which touch all of the lock file.
	children["many views"] = func(args []string) int {
		s, err := Open(args[0], Options{})
		if err != nil {
			fmt.Println(err)
			return 4
		}
		var nest func(left int) error
		nest = func(left int) error {
			return s.View(func(r *Reader) error {
				if left == 0 {
					return nil
				}
				return nest(left - 1)
			})
		}
		fatal(nest(1000))
		fatal(s.Close())
		return 0
	}
}

// smallDisk mounts a disk of that many bytes and returns where.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a small disk")
	}
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("cannot mount here: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Error(err)
		}
	})
	return disk
}

// TestCreateOnSmallDisks: from one page upward, each size gives an error that
// names a file, until it succeeds.
func TestCreateOnSmallDisks(t *testing.T) {
	manyProcesses(t)
	for size := 4096; ; size += 5 * 4096 {
		dir := filepath.Join(smallDisk(t, size), "db")
		status, stdout, stderr := runChild(t, "create", dir)
		if status == 0 {
			if size < lockSize {
				t.Errorf("succeeds with %d bytes", size)
			}
			return
		}
		if status != 4 || stderr != "" || !strings.Contains(stdout, dir) || !strings.Contains(stdout, "no space left") {
			t.Errorf("%d bytes: status %d\n%s%s", size, status, stdout, stderr)
		}
		if size > 1<<20 {
			t.Fatal("never succeeds")
		}
	}
}

// TestReadersOnFullDisk: readers need no space.
func TestReadersOnFullDisk(t *testing.T) {
	disk := smallDisk(t, 400<<10)
	dir := filepath.Join(disk, "db")
	if err := Create(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 400<<10), 0o666); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if status, stdout, stderr := runChild(t, "many views", dir); status != 0 {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
	// A lock file that was copied with holes is an error, not a signal.
	lock := filepath.Join(dir, "lock.mdb")
	if err := errors.Join(os.Truncate(lock, 4096), os.Truncate(lock, lockSize)); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(filler, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(make([]byte, 400<<10)); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	status, stdout, stderr := runChild(t, "many views", dir)
	if status != 4 || stderr != "" || !strings.Contains(stdout, lock) || !strings.Contains(stdout, "no space left") {
		t.Errorf("status %d: %s%s", status, stdout, stderr)
	}
}
