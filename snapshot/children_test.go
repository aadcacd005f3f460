package snapshot

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// children are what a child process of a test can do. The first argument is the
// root of the repository.
var children = map[string]func(args []string) error{
	"add":      func(args []string) error { return inRepo(args, childAdd) },
	"commit":   func(args []string) error { return inRepo(args, childCommit) },
	"status":   func(args []string) error { return inRepo(args, childStatus) },
	"checkout": func(args []string) error { return inRepo(args, childCheckout) },
	"import":   func(args []string) error { return inRepo(args, childImport) },
	"fsck":     func(args []string) error { return inRepo(args, childFsck) },
	"hold":     func(args []string) error { return inRepo(args, childHold) },
	"lease":    func(args []string) error { return inRepo(args, childLease) },
	"saves":    func(args []string) error { return inRepo(args, childSaves) },
}

func inRepo(args []string, fn func(r *Repo, args []string) error) error {
	r, err := Open(args[0], OpenOptions{})
	if err != nil {
		return err
	}
	return errors.Join(fn(r, args[1:]), r.Close())
}

func childAdd(r *Repo, args []string) error {
	res, err := r.Add(context.Background(), AddOptions{Paths: args})
	fmt.Printf("%+v\n", res)
	return errors.Join(err, printMemory())
}

func childCommit(r *Repo, args []string) error {
	id, _, err := r.CommitStaged(context.Background(), Meta{Message: strings.Join(args, " ")})
	fmt.Println(id)
	return err
}

func childStatus(r *Repo, args []string) error {
	st, err := r.Status(context.Background(), StatusOptions{Paths: args})
	if st != nil {
		for _, c := range append(letters(st.Staged), letters(st.Unstaged)...) {
			fmt.Println(c)
		}
		for _, p := range st.Untracked {
			fmt.Println("? " + p)
		}
	}
	return errors.Join(err, printMemory())
}

func childCheckout(r *Repo, args []string) error {
	rev, err := r.Resolve(args[0])
	if err != nil {
		return err
	}
	_, err = r.Checkout(context.Background(), rev, CheckoutOptions{Force: len(args) > 1})
	return err
}

func childImport(r *Repo, args []string) error {
	res, err := r.Import(context.Background(), ImportOptions{Source: args[0], Dest: args[1], Move: args[2] == "move",
		Meta: Meta{Message: "import"}})
	fmt.Printf("%+v\n", res)
	return errors.Join(err, printMemory())
}

func childFsck(r *Repo, _ []string) error {
	res, err := r.Fsck(context.Background(), FsckOptions{Contents: true, Damage: func(d Damage) { fmt.Printf("%+v\n", d) }})
	if err == nil && res.Damaged > 0 {
		err = fmt.Errorf("%d kinds of damage", res.Damaged)
	}
	return err
}

// childHold takes a lock, says so, and holds it until its input ends.
func childHold(r *Repo, args []string) error {
	l, err := r.lockExclusive(context.Background(), args[0])
	if err != nil {
		return err
	}
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
	return l.close()
}

// childLease holds a lease until its input ends.
func childLease(r *Repo, args []string) error {
	l, err := r.Lease(LeaseInfo{Kind: "mount", PID: os.Getpid(), Mountpoint: args[0]})
	if err != nil {
		return err
	}
	fmt.Println("held")
	io.Copy(io.Discard, os.Stdin)
	return l.Close()
}

// childSaves adds and commits a file of its own, again and again.
func childSaves(r *Repo, args []string) error {
	for i := range 10 {
		if err := os.WriteFile(filepath.Join(r.Root(), args[0]), fmt.Appendf(nil, "%s %d", args[0], i), 0o644); err != nil {
			return err
		}
		if _, err := r.Add(context.Background(), AddOptions{Paths: args[:1]}); err != nil {
			return err
		}
		// Another process may have committed it with its own.
		if _, _, err := r.CommitStaged(context.Background(), Meta{Message: args[0]}); err != nil && !errors.Is(err, ErrNothing) {
			return err
		}
	}
	return nil
}

// printMemory prints the process's own memory, in kB, without pages of files.
func printMemory() error {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "RssAnon:") || strings.HasPrefix(line, "VmHWM:") {
			fmt.Print(line)
		}
	}
	return nil
}

// selfCopy is this test binary where every user can run it.
var selfCopy = sync.OnceValues(func() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	to := filepath.Join(os.TempDir(), "self")
	if out, err := exec.Command("cp", exe, to).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return to, os.Chmod(to, 0o755)
})

// child is a command that runs one of children in a process of its own.
func child(t testing.TB, name string, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := selfCopy()
	ok(t, err)
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), childEnv+"="+name)
	cmd.WaitDelay = time.Second
	return cmd
}

// runChild runs it to its end and returns what it printed.
func runChild(t testing.TB, name string, args ...string) (string, error) {
	t.Helper()
	out, err := child(t, name, args...).CombinedOutput()
	return string(out), err
}

const nobody = 65534

// asNobody makes a command run as another user.
func asNobody(cmd *exec.Cmd) *exec.Cmd {
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	cmd.Dir = "/"
	return cmd
}

// giveAway makes everything below a path another user's.
func giveAway(t testing.TB, path string) {
	t.Helper()
	out, err := exec.Command("chown", "-R", fmt.Sprintf("%d:%d", nobody, nobody), path).CombinedOutput()
	if err != nil {
		t.Fatalf("chown: %v: %s", err, out)
	}
}

// openUp lets other users reach what lies in a test's own folder.
func openUp(t testing.TB, path string) {
	t.Helper()
	for dir := filepath.Dir(path); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		ok(t, os.Chmod(dir, 0o755))
	}
}
