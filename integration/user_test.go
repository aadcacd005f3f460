package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// account is a user that commands run as.
type account struct {
	uid, gid int
	// dev is a device node that opens to this user, bound over /dev/fuse in a
	// mount namespace of the command's own; "": no namespace.
	dev string
	// ns is a running process whose mount namespace the command joins; 0: none.
	ns int
}

// asNobody returns the user nobody, without a mount namespace.
func asNobody(t testing.TB) *account {
	t.Helper()
	needRoot(t)
	needTool(t, "setpriv")
	uid, gid := nobody(t)
	return &account{uid: uid, gid: gid}
}

// wrap makes the command run as the account.
func (a *account) wrap(c command) command {
	args := []string{"setpriv", "--reuid", strconv.Itoa(a.uid), "--regid", strconv.Itoa(a.gid), "--clear-groups"}
	args = append(args, c.args...)
	if a.ns != 0 {
		args = append([]string{"nsenter", "--mount=" + fmt.Sprintf("/proc/%d/ns/mnt", a.ns)}, args...)
	}
	if c.dir == "" {
		c.dir = "/"
	}
	c.args = args
	return c
}

// run runs a command as the account.
func (a *account) run(t testing.TB, args ...string) result {
	t.Helper()
	return run(t, a.wrap(command{args: args}))
}

// own gives a path to the account, for its repositories and mount points.
func (a *account) own(t testing.TB, path string) {
	t.Helper()
	ok(t, os.Chown(path, a.uid, a.gid))
}

// withFuse gives the account a mount namespace in which it may open /dev/fuse:
// a node of its own with mode 0666 is bound over the system's. The namespace
// lives until the test ends.
func (a *account) withFuse(t testing.TB) *account {
	t.Helper()
	needTool(t, "unshare", "nsenter", "mount")
	dev := filepath.Join(scratch(t), "fuse")
	ok(t, unix.Mknod(dev, unix.S_IFCHR|0o666, int(unix.Mkdev(10, 229))))
	ok(t, os.Chmod(dev, 0o666))
	script := `mount --bind "$1" /dev/fuse && echo ready && exec sleep 600`
	keeper := start(t, "unshare", "-m", "--propagation", "private", "sh", "-c", script, "sh", dev)
	if line := keeper.line(t); line != "ready" {
		t.Skipf("cannot bind a node over /dev/fuse: %q", line)
	}
	return &account{uid: a.uid, gid: a.gid, dev: dev, ns: keeper.pid()}
}

// syscalls runs one of the helpers of helper_test.go as the account and
// returns its answers by name. With a nil account it runs as the test's user.
func (a *account) helper(t testing.TB, name string, args ...string) map[string]string {
	t.Helper()
	c := command{args: append([]string{testBin}, args...), env: []string{helperEnv + "=" + name}}
	if a != nil {
		c = a.wrap(c)
	}
	res := run(t, c)
	if res.code != 0 {
		t.Fatalf("helper %s: %v", name, res)
	}
	answers := make(map[string]string)
	if err := json.Unmarshal([]byte(res.stdout), &answers); err != nil {
		t.Fatalf("helper %s: %v in %s", name, err, clip(res.stdout))
	}
	return answers
}

// wantAnswers compares what a helper answered with errno names.
func wantAnswers(t testing.TB, got, want map[string]string) {
	t.Helper()
	for op, w := range want {
		match := false
		for _, alt := range strings.Split(w, "|") {
			match = match || got[op] == alt
		}
		if !match {
			t.Errorf("%s: %q, want %s", op, got[op], w)
		}
	}
	for op := range got {
		if _, there := want[op]; !there {
			t.Errorf("%s was tried but has no wanted answer", op)
		}
	}
}
