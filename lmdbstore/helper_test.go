package lmdbstore

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bole/merkle"

	"go.uber.org/goleak"
)

// childMode names the function of this test binary that a child process runs.
const childMode = "LMDBSTORE_TEST_CHILD"

// children are the functions that a child process may run; the result is its
// exit status.
var children = map[string]func(args []string) int{}

func TestMain(m *testing.M) {
	if mode := os.Getenv(childMode); mode != "" {
		os.Exit(children[mode](os.Args[1:]))
	}
	goleak.VerifyTestMain(m)
}

// childCommand returns a command that runs children[mode] in another process,
// which is killed after a minute.
func childCommand(t testing.TB, mode string, args ...string) *exec.Cmd {
	t.Helper()
	if children[mode] == nil {
		t.Fatalf("no child function %q", mode)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), childMode+"="+mode)
	return cmd
}

// manyProcesses skips, in a short run, a test that is about processes and not
// about what goes on inside one.
func manyProcesses(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts many processes")
	}
}

// runChild runs children[mode] to its end and returns its exit status and what
// it wrote. A child that was killed, by a signal or the time limit, fails the test.
func runChild(t testing.TB, mode string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	cmd := childCommand(t, mode, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if status = cmd.ProcessState.ExitCode(); status < 0 {
		t.Fatalf("child %s %q: %v\n%s%s", mode, args, cmd.ProcessState, &out, &errs)
	}
	return status, out.String(), errs.String()
}

// fatal is what a child calls when it cannot go on.
func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(3)
	}
}

// newDir returns the folder of an empty database.
func newDir(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "db")
	if err := Create(dir, Options{}); err != nil {
		t.Fatal(err)
	}
	return dir
}

// openDir opens a database and closes it at the end of the test.
func openDir(t testing.TB, dir string) *Store {
	t.Helper()
	return openWith(t, dir, Options{})
}

func openWith(t testing.TB, dir string, o Options) *Store {
	t.Helper()
	s, err := Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
	})
	return s
}

func newStore(t testing.TB) *Store {
	t.Helper()
	return openDir(t, newDir(t))
}

// update fails the test when the Update does.
func update(t testing.TB, s *Store, fn func(w *Writer) error) {
	t.Helper()
	if err := s.Update(fn); err != nil {
		t.Fatal(err)
	}
}

func view(t testing.TB, s *Store, fn func(r *Reader) error) {
	t.Helper()
	if err := s.View(fn); err != nil {
		t.Fatal(err)
	}
}

// testNode returns a canonical node with about size bytes, another for each number.
func testNode(number, size int) (merkle.Hash, []byte) {
	value := bytes.Repeat([]byte{byte(number)}, max(size-40, 8))
	binary.LittleEndian.PutUint64(value, uint64(number))
	b, err := merkle.EncodeAttrs([]merkle.Attr{{Name: "user.test", Value: value}})
	if err != nil {
		panic(err)
	}
	return merkle.NodeHash(b), b
}

// putNodes returns a function for Update that puts nodes from, from+1, ... to-1.
func putNodes(from, to, size int) func(w *Writer) error {
	return func(w *Writer) error {
		for i := from; i < to; i++ {
			h, b := testNode(i, size)
			if err := w.PutNode(h, b); err != nil {
				return err
			}
		}
		return nil
	}
}

// checkNodes reads nodes from ... to-1 with verification.
func checkNodes(r *Reader, from, to, size int) error {
	for i := from; i < to; i++ {
		h, want := testNode(i, size)
		got, err := r.Node(&h)
		if err != nil {
			return fmt.Errorf("node %d: %w", i, err)
		}
		if !bytes.Equal(got, want) {
			return fmt.Errorf("node %d has other bytes", i)
		}
	}
	return nil
}

// mustFail checks that an error is there, is of a kind, and names what it is about.
func mustFail(t testing.TB, err, kind error, names ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want %v", err, kind)
	}
	for _, name := range names {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("error does not name %q: %v", name, err)
		}
	}
}

// readRecords returns the records of a table under a prefix.
func readRecords(t testing.TB, s *Store, table Table, prefix, start string) map[string]string {
	t.Helper()
	got := map[string]string{}
	view(t, s, func(r *Reader) error {
		return r.Scan(table, []byte(prefix), []byte(start), func(k, v []byte) error {
			got[string(k)] = string(v)
			return nil
		})
	})
	return got
}

// runChildAs is runChild as another user, with no groups.
func runChildAs(t testing.TB, uid uint32, mode string, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	// The binary of the test lies in a folder that only its owner may enter.
	binary := filepath.Join(t.TempDir(), "child")
	b, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(binary, b, 0o755)
	}
	if err == nil {
		err = os.Chmod(filepath.Dir(binary), 0o755)
	}
	if err == nil {
		err = os.Chmod(filepath.Dir(filepath.Dir(binary)), 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := childCommand(t, mode, args...)
	cmd.Path = binary
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func init() {
	// Locks byte args[1] of the lock file until its input ends. This process
	// never has the database open.
	children["lockpid"] = func(args []string) int {
		f, err := os.OpenFile(filepath.Join(args[0], "lock.mdb"), os.O_RDWR, 0)
		fatal(err)
		pid, err := strconv.ParseInt(args[1], 10, 64)
		fatal(err)
		lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: pid, Len: 1}
		fatal(syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &lock))
		fmt.Println("locked")
		io.Copy(io.Discard, os.Stdin)
		return 0
	}
}
