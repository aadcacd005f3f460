package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"bole/snapshot"
)

const (
	// logLimit is the size in bytes from which a log is put aside; the one before it is dropped.
	logLimit = 4 << 20
	// logAge is how long the log of an ended mount is kept, when it holds a warning.
	logAge = 30 * 24 * time.Hour
	// logSuffix and oldSuffix end the names of a mount's log and the part put aside.
	logSuffix, oldSuffix = ".log", ".log.old"
)

// daemonLog is the log of one mount: a bounded file in the background, standard
// error in the foreground.
type daemonLog struct {
	*logrus.Logger
	file  *logFile
	worry atomic.Bool // something above information was logged
}

// openDaemonLog makes the log and, in the background, names it in info.
func openDaemonLog(r *snapshot.Repo, info *snapshot.LeaseInfo, background bool) (*daemonLog, error) {
	l := &daemonLog{Logger: logrus.New()}
	l.AddHook(l)
	if !background {
		l.SetLevel(logrus.WarnLevel)
		return l, nil
	}
	dir, err := r.RunDir()
	if err != nil {
		return nil, err
	}
	if err := removeOldLogs(dir, time.Now().Add(-logAge)); err != nil {
		return nil, err
	}
	info.Log = filepath.Join(dir, info.ID+logSuffix)
	l.file = &logFile{path: info.Log}
	if err := l.file.open(); err != nil {
		return nil, err
	}
	l.SetOutput(l.file)
	l.SetFormatter(&logrus.TextFormatter{DisableColors: true, FullTimestamp: true, TimestampFormat: time.RFC3339Nano})
	return l, nil
}

// Levels makes the log its own hook.
func (l *daemonLog) Levels() []logrus.Level {
	return []logrus.Level{logrus.PanicLevel, logrus.FatalLevel, logrus.ErrorLevel, logrus.WarnLevel}
}

// Fire notes that there is something to read.
func (l *daemonLog) Fire(*logrus.Entry) error {
	l.worry.Store(true)
	return nil
}

// capture sends standard output and standard error to the log from here on.
func (l *daemonLog) capture() error {
	if l.file == nil {
		return nil
	}
	return l.file.capture()
}

// close removes a log that nobody needs.
func (l *daemonLog) close(keep bool) error {
	if l.file == nil || keep || l.worry.Load() {
		return nil
	}
	return l.file.remove()
}

// removeOldLogs removes the logs of ended mounts from before a time. That of a
// living mount is written to at its start only, so its lease counts.
func removeOldLogs(dir string, before time.Time) error {
	names, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("look for old logs: %w", err)
	}
	for _, d := range names {
		id, isLog := strings.CutSuffix(strings.TrimSuffix(d.Name(), ".old"), logSuffix)
		if !isLog {
			continue
		}
		fi, err := d.Info()
		if err != nil || fi.ModTime().After(before) {
			continue // gone meanwhile, or young
		}
		if _, err := os.Lstat(filepath.Join(dir, id+".lease")); err == nil {
			continue
		}
		if err := os.Remove(filepath.Join(dir, d.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove old log: %w", err)
		}
	}
	return nil
}

// logFile is a file of at most logLimit bytes, and as much put aside.
type logFile struct {
	path string

	mu       sync.Mutex
	f        *os.File
	size     int64
	captured bool
}

func (l *logFile) open() (err error) {
	if l.f, err = os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644); err != nil {
		return fmt.Errorf("open log: %w", err)
	}
	l.size = 0
	return nil
}

// capture puts the file where standard output and standard error are, so that
// what a fault in C code or the Go runtime says is kept as well.
func (l *logFile) capture() error {
	l.captured = true
	for fd := 1; fd <= 2; fd++ {
		if err := unix.Dup3(int(l.f.Fd()), fd, 0); err != nil {
			return fmt.Errorf("write standard error to %s: %w", l.path, err)
		}
	}
	return nil
}

// Write appends a line and puts the file aside when it is full.
func (l *logFile) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size+int64(len(b)) > logLimit {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := l.f.Write(b)
	l.size += int64(n)
	return n, err
}

func (l *logFile) rotate() error {
	full := l.f
	if err := os.Rename(l.path, l.aside()); err != nil {
		return fmt.Errorf("put log aside: %w", err)
	}
	err := l.open()
	if err == nil && l.captured {
		err = l.capture()
	}
	return errors.Join(err, full.Close())
}

func (l *logFile) aside() string { return strings.TrimSuffix(l.path, logSuffix) + oldSuffix }

// remove deletes the log and the part put aside.
func (l *logFile) remove() error {
	var errs []error
	for _, p := range []string{l.path, l.aside()} {
		if err := os.Remove(p); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
