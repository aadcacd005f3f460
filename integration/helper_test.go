package integration

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// runHelper is what this test binary does in a child process: system calls as
// another user, or from a process of its own. It prints answers as JSON.
func runHelper(name string, args []string) int {
	if name == "measure" {
		return measure(args[0], args[1:])
	}
	answers := make(map[string]string)
	note := func(op string, err error) { answers[op] = errnoName(err) }
	switch name {
	case "mutate":
		mutate(args[0], note)
	case "access":
		probe(args, note)
	case "touchpages":
		touchPages(args[0], note)
	default:
		fmt.Fprintln(os.Stderr, "no helper", name)
		return 2
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		return 1
	}
	return 0
}

// measure runs a command and writes what it took to a file.
func measure(file string, args []string) int {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	// Linux counts memory in KiB and blocks of 512 bytes here.
	ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	text, err := json.Marshal(usage{MaxRSS: ru.Maxrss * 1024, Read: ru.Inblock * 512, Written: ru.Oublock * 512})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 125
	}
	if code := cmd.ProcessState.ExitCode(); code >= 0 {
		return code
	}
	return 126
}

// errnoName returns "ok", the errno's name, or the text of another error.
func errnoName(err error) string {
	if err == nil {
		return "ok"
	}
	var errno unix.Errno
	if errors.As(err, &errno) {
		if n := unix.ErrnoName(errno); n != "" {
			return n
		}
	}
	return err.Error()
}

// mutate tries each way to change a tree. It expects in dir: file f, directory
// d with file d/g, empty directory e, link l.
func mutate(dir string, note func(string, error)) {
	p := func(n string) string { return filepath.Join(dir, n) }
	open := func(op, name string, flags int) {
		fd, err := unix.Open(p(name), flags|unix.O_CLOEXEC, 0o644)
		if err == nil {
			unix.Close(fd)
		}
		note(op, err)
	}
	open("create", "new", unix.O_WRONLY|unix.O_CREAT)
	open("create excl", "new", unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL)
	open("create in dir", "d/new", unix.O_WRONLY|unix.O_CREAT)
	open("write", "f", unix.O_WRONLY)
	open("read-write", "f", unix.O_RDWR)
	open("append", "f", unix.O_WRONLY|unix.O_APPEND)
	open("truncate on open", "f", unix.O_WRONLY|unix.O_TRUNC)
	open("read and truncate", "f", unix.O_RDONLY|unix.O_TRUNC)
	open("create and truncate", "f", unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC)
	open("tmpfile", "", unix.O_WRONLY|unix.O_TMPFILE)
	note("truncate", unix.Truncate(p("f"), 1))
	note("unlink", unix.Unlink(p("f")))
	note("unlink link", unix.Unlink(p("l")))
	note("rmdir", unix.Rmdir(p("e")))
	note("mkdir", unix.Mkdir(p("newdir"), 0o755))
	note("rename", unix.Rename(p("f"), p("f2")))
	note("rename over", unix.Rename(p("f"), p("d/g")))
	note("rename dir", unix.Rename(p("d"), p("d2")))
	note("exchange", unix.Renameat2(unix.AT_FDCWD, p("f"), unix.AT_FDCWD, p("d/g"), unix.RENAME_EXCHANGE))
	note("link", unix.Link(p("f"), p("hard")))
	note("symlink", unix.Symlink("f", p("soft")))
	note("chmod", unix.Chmod(p("f"), 0o600))
	note("chmod dir", unix.Chmod(p("d"), 0o700))
	note("chown", unix.Lchown(p("f"), os.Getuid(), os.Getgid()))
	now := []unix.Timespec{{Sec: 1}, {Sec: 1}}
	note("touch", unix.UtimesNanoAt(unix.AT_FDCWD, p("f"), now, 0))
	note("touch link", unix.UtimesNanoAt(unix.AT_FDCWD, p("l"), now, unix.AT_SYMLINK_NOFOLLOW))
	note("fifo", unix.Mkfifo(p("fifo"), 0o644))
	note("socket", unix.Mknod(p("sock"), unix.S_IFSOCK|0o644, 0))
	note("setxattr", unix.Setxattr(p("f"), "user.x", []byte("1"), 0))
	note("setxattr virtual", unix.Setxattr(p("f"), "user.bole.hash", []byte("1"), 0))
	note("removexattr", unix.Removexattr(p("f"), "user.x"))
	note("removexattr virtual", unix.Removexattr(p("f"), "user.bole.hash"))
	mutateOpen(p("f"), note)
}

// mutateOpen tries changes through a descriptor that was opened for reading.
func mutateOpen(path string, note func(string, error)) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	note("open to read", err)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	note("fchmod", unix.Fchmod(fd, 0o600))
	note("fchown", unix.Fchown(fd, os.Getuid(), os.Getgid()))
	note("ftruncate", unix.Ftruncate(fd, 0))
	note("fallocate", unix.Fallocate(fd, 0, 0, 100))
	note("fsetxattr", unix.Fsetxattr(fd, "user.x", []byte("1"), 0))
	_, err = unix.Write(fd, []byte("x"))
	note("write to reader", err)
	_, err = unix.Mmap(fd, 0, 1, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	note("map for writing", err)
	note("fsync", unix.Fsync(fd))
}

// probe asks access(2) and opens for each path.
func probe(paths []string, note func(string, error)) {
	for _, p := range paths {
		base := filepath.Base(p)
		note(base+" stat", unix.Lstat(p, new(unix.Stat_t)))
		note(base+" access r", unix.Faccessat(unix.AT_FDCWD, p, unix.R_OK, 0))
		note(base+" access w", unix.Faccessat(unix.AT_FDCWD, p, unix.W_OK, 0))
		note(base+" access x", unix.Faccessat(unix.AT_FDCWD, p, unix.X_OK, 0))
		fd, err := unix.Open(p, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
		note(base+" open", err)
		if err != nil {
			continue
		}
		var st unix.Stat_t
		if unix.Fstat(fd, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			_, err = unix.Getdents(fd, make([]byte, 4096))
			note(base+" list", err)
		} else {
			_, err = unix.Read(fd, make([]byte, 16))
			note(base+" read", err)
		}
		unix.Close(fd)
	}
}

// touchPages maps a whole file and reads one byte of each page.
func touchPages(path string, note func(string, error)) {
	f, err := os.Open(path)
	if err != nil {
		note("open", err)
		return
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		note("stat", err)
		return
	}
	m, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_SHARED)
	note("map", err)
	if err != nil {
		return
	}
	sum := 0
	for i := 0; i < len(m); i += 4096 {
		sum += int(m[i])
	}
	note("sum", fmt.Errorf("%d", sum))
	note("unmap", unix.Munmap(m))
}
