package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// barrier calls of Linux. A write to a descriptor opened with O_SYNC or
// O_DSYNC waits for the disk as well, and so do pwritev2 and sync_file_range
// with the flags named here.
const straceFilter = "trace=fsync,fdatasync,sync,syncfs,msync,sync_file_range,pwritev2,open,openat,openat2,creat,write,pwrite64,pwritev,writev"

var (
	syncCall = regexp.MustCompile(`(?m)^(?:\d+ +)?(fsync|fdatasync|sync|syncfs|msync)\(`)
	rangeOp  = regexp.MustCompile(`(?m)^(?:\d+ +)?sync_file_range\(.*WAIT`)
	dsyncOp  = regexp.MustCompile(`(?m)^(?:\d+ +)?pwritev2\(.*RWF_D?SYNC`)
	dsyncFD  = regexp.MustCompile(`(?m)^(?:\d+ +)?(?:open|openat|openat2)\(.*\bO_D?SYNC\b.*\) += (\d+)`)
)

// countSyncs runs a command under strace and returns how many times it waited
// for the disk, with the calls themselves for the message of a failure.
func countSyncs(t testing.TB, c command) (int, []string, result) {
	t.Helper()
	needTool(t, "strace")
	log := filepath.Join(scratch(t), "strace")
	c.args = append([]string{"strace", "-f", "-qq", "-s", "8", "-o", log, "-e", straceFilter}, c.args...)
	res := run(t, c)
	b, err := os.ReadFile(log)
	ok(t, err)
	calls := syncCalls(string(b))
	return len(calls), calls, res
}

// syncCalls picks the calls that wait for the disk out of a strace log.
func syncCalls(log string) []string {
	var calls []string
	for _, re := range []*regexp.Regexp{syncCall, rangeOp, dsyncOp} {
		calls = append(calls, re.FindAllString(log, -1)...)
	}
	for _, m := range dsyncFD.FindAllStringSubmatch(log, -1) {
		// Descriptors are reused, so this counts at least the true writes.
		re := regexp.MustCompile(`(?m)^(?:\d+ +)?(?:write|pwrite64|pwritev|writev)\(` + m[1] + `,`)
		calls = append(calls, re.FindAllString(log, -1)...)
	}
	return calls
}

func TestSyncCallsAreCounted(t *testing.T) {
	log := `12 openat(AT_FDCWD, "db/data.mdb", O_RDWR|O_CREAT|O_CLOEXEC, 0644) = 7
12 openat(AT_FDCWD, "db/data.mdb", O_WRONLY|O_DSYNC|O_CLOEXEC) = 9
12 pwrite64(9, "\0\0\0\0"..., 120, 4096) = 120
13 pwrite64(7, "\0\0\0\0"..., 4096, 4096) = 4096
13 fdatasync(7) = 0
13 sync_file_range(7, 0, 0, SYNC_FILE_RANGE_WRITE) = 0
13 sync_file_range(7, 0, 0, SYNC_FILE_RANGE_WAIT_AFTER) = 0
14 pwritev2(7, [], 1, 0, RWF_DSYNC) = 1
14 msync(0x7f00, 4096, MS_SYNC) = 0
14 fsync(8 <unfinished ...>
15 syncfs(3) = 0
`
	if calls := syncCalls(log); len(calls) != 7 {
		t.Errorf("%d calls counted, want 7: %q", len(calls), calls)
	}
}
