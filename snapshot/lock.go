package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLocked is returned when a lock is held and the caller does not wait.
var ErrLocked = errors.New("locked by another process")

// fileLock is one flock. The file stays; the kernel drops the lock with the process.
type fileLock struct{ f *os.File }

// openLock opens a lock file of .bole, or makes it. In a shared repository
// everybody in the group must be able to, whatever the umask of the first.
func (r *Repo) openLock(name string) (*fileLock, error) {
	mode := r.fileMode(0o644)
	f, err := os.OpenFile(r.file(name), os.O_RDWR|os.O_CREATE, mode)
	if err != nil {
		return nil, fmt.Errorf("open lock: %w", err)
	}
	if r.cfg.Core.Shared {
		if fi, err := f.Stat(); err == nil && fi.Mode().Perm() != mode {
			f.Chmod(mode) // its owner can; for others it is right already
		}
	}
	return &fileLock{f}, nil
}

// try takes the lock at once or returns ErrLocked naming the holder that left its name.
func (l *fileLock) try(how int) error {
	for {
		err := unix.Flock(int(l.f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return fmt.Errorf("%s: %w%s", l.f.Name(), ErrLocked, l.holder())
		}
		return fmt.Errorf("lock %s: %w", l.f.Name(), err)
	}
}

// wait takes the lock, telling waiting once who holds it. It gives up when ctx ends.
func (l *fileLock) wait(ctx context.Context, how int, waiting func(string)) error {
	told := false
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		err := l.try(how)
		if !errors.Is(err, ErrLocked) {
			return err
		}
		if !told && waiting != nil && pause > 20*time.Millisecond {
			told = true
			waiting(err.Error())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", err, ctx.Err())
		case <-time.After(pause):
		}
	}
}

// sign writes who holds an exclusive lock, for the messages of those who wait.
func (l *fileLock) sign() error {
	who := fmt.Sprintf("%d %s\n", os.Getpid(), commandName())
	if err := l.f.Truncate(0); err != nil {
		return fmt.Errorf("sign lock: %w", err)
	}
	if _, err := l.f.WriteAt([]byte(who), 0); err != nil {
		return fmt.Errorf("sign lock: %w", err)
	}
	return nil
}

func (l *fileLock) holder() string {
	b := make([]byte, 256)
	n, _ := l.f.ReadAt(b, 0)
	pid, name, ok := strings.Cut(strings.TrimSpace(string(b[:n])), " ")
	if _, err := strconv.Atoi(pid); !ok || err != nil {
		return ""
	}
	return fmt.Sprintf(" (process %s, %s)", pid, name)
}

// close lets go of the lock.
func (l *fileLock) close() error { return l.f.Close() }

// commandName is the program and its first word, for example "bole add".
func commandName() string {
	name := "bole"
	for _, a := range os.Args[min(1, len(os.Args)):] {
		if !strings.HasPrefix(a, "-") && !strings.ContainsAny(a, "/\n") {
			return name + " " + a
		}
	}
	return name
}

// lockWorktree holds worktree.lock exclusively: add, commit from the stage,
// checkout and update exclude each other; readers do not take it.
func (r *Repo) lockWorktree(ctx context.Context) (*fileLock, error) {
	return r.lockExclusive(ctx, "worktree.lock")
}

// lockImport holds import.lock exclusively: the record of how far an import has
// come is one for each source, and two must not go on from it at once.
func (r *Repo) lockImport(ctx context.Context) (*fileLock, error) {
	return r.lockExclusive(ctx, "import.lock")
}

func (r *Repo) lockExclusive(ctx context.Context, name string) (*fileLock, error) {
	l, err := r.openLock(name)
	if err != nil {
		return nil, err
	}
	if err := l.wait(ctx, unix.LOCK_EX, r.waiting); err != nil {
		return nil, errors.Join(err, l.close())
	}
	if err := l.sign(); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}

// shareGC holds gc.lock shared from before the first "is it there already"
// until the transaction that refers to it is durable, so that a garbage
// collection never takes what a command is about to name.
func (r *Repo) shareGC(ctx context.Context) (*fileLock, error) {
	l, err := r.openLock("gc.lock")
	if err != nil {
		return nil, err
	}
	if err := l.wait(ctx, unix.LOCK_SH, r.waiting); err != nil {
		return nil, errors.Join(err, l.close())
	}
	return l, nil
}
