package snapshot

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// childEnv names what a child process of a test does instead of running tests.
const childEnv = "BOLE_SNAPSHOT_CHILD"

// limitEnv makes the checkpoints of a child as small as it says.
const limitEnv = "BOLE_SNAPSHOT_LIMIT"

func TestMain(m *testing.M) {
	unix.Umask(0o022) // modes are compared exactly
	if name := os.Getenv(childEnv); name != "" {
		if n, err := strconv.Atoi(os.Getenv(limitEnv)); err == nil {
			limits.records, limits.fresh = n, 20*n
		}
		if err := children[name](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(runTests(m))
}

// runTests gives the tests a home without anybody's settings and, where there
// is one with room, a file system in memory: what is tested here does not
// depend on how long a disk takes to flush.
func runTests(m *testing.M) int {
	base := ""
	var st unix.Statfs_t
	if unix.Statfs("/dev/shm", &st) == nil && st.Type == unix.TMPFS_MAGIC && st.Bavail*uint64(st.Bsize) > 1<<30 {
		base = "/dev/shm"
	}
	dir, err := os.MkdirTemp(base, "bole-snapshot-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o755); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Chmod(dir, 0o755)
	os.Setenv("TMPDIR", dir)
	os.Setenv("HOME", home)
	os.Setenv("XDG_CONFIG_HOME", filepath.Join(home, ".config"))
	os.Unsetenv("XDG_RUNTIME_DIR")
	os.Setenv("BOLE_USER_NAME", "Test")
	os.Setenv("BOLE_USER_EMAIL", "test@example.org")
	flag.Set("rapid.nofailfile", "true") // the seed is printed
	flag.Set("rapid.checks", "50")       // the model waits for the clock at each checkout; the command line may say more
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
