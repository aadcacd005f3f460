package integration

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"
)

var (
	boleBin string // absolute path of the binary under test
	testBin string // this test binary, copied to where every user may run it
	raceDir string // where the race detector reports
	fastDir string // a tmpfs; "" when none can be mounted
	homeDir string // HOME of all children: no settings of the developer leak in
)

// helperEnv names the helper that this binary runs instead of the tests.
const helperEnv = "BOLE_TEST_HELPER"

func TestMain(m *testing.M) {
	if name := os.Getenv(helperEnv); name != "" {
		os.Exit(runHelper(name, os.Args[1:]))
	}
	os.Exit(runAll(m))
}

func runAll(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bole-integration-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer os.RemoveAll(dir)
	if err := prepare(dir); err != nil {
		fmt.Fprintln(os.Stderr, "integration:", err)
		return 2
	}
	code := m.Run()
	if fastDir != "" {
		defer func() { _ = unix.Unmount(fastDir, unix.MNT_DETACH) }()
	}
	if races := raceReports(); races != "" {
		fmt.Fprintf(os.Stderr, "integration: the race detector reports:\n%s\n", races)
		code = max(code, 1)
	}
	if left := leftovers(); len(left) > 0 {
		fmt.Fprintf(os.Stderr, "integration: left behind by the tests:\n  %s\n", strings.Join(left, "\n  "))
		code = max(code, 1)
	}
	return code
}

// prepare builds the program and puts a copy of the test binary beside it.
// The folder is open to all users, because some tests change theirs.
func prepare(dir string) error {
	if err := os.Chmod(dir, 0o755); err != nil {
		return err
	}
	homeDir = filepath.Join(dir, "home")
	if err := os.Mkdir(homeDir, 0o755); err != nil {
		return err
	}
	raceDir = filepath.Join(dir, "race")
	if err := os.Mkdir(raceDir, 0o777); err != nil {
		return err
	}
	if err := os.Chmod(raceDir, 0o777); err != nil { // other users report as well
		return err
	}
	fastDir = filepath.Join(dir, "fast")
	if err := os.Mkdir(fastDir, 0o755); err != nil {
		return err
	}
	if unix.Mount("bole-test", fastDir, "tmpfs", 0, "mode=0755,size=2g") != nil {
		fastDir = ""
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	testBin = filepath.Join(dir, "helper")
	if out, err := exec.Command("cp", self, testBin).CombinedOutput(); err != nil {
		return fmt.Errorf("copying the test binary: %w: %s", err, out)
	}
	// The tests compare modes exactly.
	unix.Umask(0o022)
	boleBin = filepath.Join(dir, "bole")
	if given := os.Getenv("BOLE_BIN"); given != "" {
		out, err := exec.Command("cp", given, boleBin).CombinedOutput()
		if err != nil {
			return fmt.Errorf("copying BOLE_BIN: %w: %s", err, out)
		}
		return nil
	}
	args := []string{"build", "-o", boleBin}
	if underRace {
		args = append(args, "-race")
	}
	out, err := exec.Command("go", append(args, "bole/cmd/bole")...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("building bole: %w\n%s", err, out)
	}
	return nil
}

// raceReports returns what the race detector wrote in all processes, cut to a
// readable length.
func raceReports() string {
	files, _ := filepath.Glob(filepath.Join(raceDir, "report*"))
	var all strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			b = []byte(err.Error())
		}
		fmt.Fprintf(&all, "%s\n", clip(string(b)))
	}
	return clip(all.String())
}

// leftovers lists mounts and processes of the binary under test, and ends them.
func leftovers() []string {
	var left []string
	mounts, err := mountinfo.GetMounts(func(i *mountinfo.Info) (skip, stop bool) {
		return !underScratch(i.Mountpoint), false
	})
	if err != nil {
		left = append(left, "mountinfo: "+err.Error())
	}
	for i := len(mounts) - 1; i >= 0; i-- {
		left = append(left, "mount "+mounts[i].Mountpoint)
		_ = unix.Unmount(mounts[i].Mountpoint, unix.MNT_DETACH)
	}
	// A daemon may be on its way out just after its mount went.
	var pids []int
	for range 50 {
		if pids = bolePIDs(); len(pids) == 0 {
			return left
		}
		time.Sleep(100 * time.Millisecond)
	}
	for _, pid := range pids {
		left = append(left, fmt.Sprintf("process %d: %s", pid, strings.Join(cmdline(pid), " ")))
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	return left
}

// bolePIDs returns the processes that run the binary under test.
func bolePIDs() []int {
	var pids []int
	procs, _ := filepath.Glob("/proc/[0-9]*")
	for _, p := range procs {
		exe, err := os.Readlink(p + "/exe")
		if err != nil || strings.TrimSuffix(exe, " (deleted)") != boleBin {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(p)); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// cmdline returns the arguments of a process; none when it has ended.
func cmdline(pid int) []string {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return strings.Split(strings.TrimRight(string(b), "\x00"), "\x00")
}

// underRace says that the program is built with the race detector, which
// multiplies time and memory.
var underRace = os.Getenv("BOLE_RACE") == "1"

// often is n, or a fifth of it under the race detector.
func often(n int) int {
	if underRace {
		return max(n/5, 1)
	}
	return n
}

// needRoot skips tests that mount, change users or make cgroups.
func needRoot(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
}

// needTool skips when a program of the system is not installed.
func needTool(t testing.TB, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("needs the program %s", name)
		}
	}
}

// nobody returns the ids of the user that tests run as when not root.
func nobody(t testing.TB) (uid, gid int) {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("needs the user nobody: ", err)
	}
	uid, err = strconv.Atoi(u.Uid)
	if err != nil {
		t.Fatal(err)
	}
	gid, err = strconv.Atoi(u.Gid)
	if err != nil {
		t.Fatal(err)
	}
	return uid, gid
}
