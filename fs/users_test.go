package fs

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asUser runs a shell command as nobody and returns what it prints, and its
// exit code. It is where permissions are tried: root has them all.
func asUser(t testing.TB, uid int, script string) (string, int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	if _, ok := err.(*exec.ExitError); err != nil && !ok {
		t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// reachable makes every folder above a path searchable for other users.
func reachable(t testing.TB, path string) {
	t.Helper()
	for p := path; p != "/"; p = filepath.Dir(p) {
		fi, err := os.Stat(p)
		check(t, err)
		if fi.Mode().Perm()&0o001 == 0 {
			check(t, os.Chmod(p, fi.Mode().Perm()|0o011))
		}
	}
}

// TestOtherUsers see nothing of a mount unless it was made for others, and
// then what the permission bits let them see.
func TestOtherUsers(t *testing.T) {
	b := newBuilder(t)
	for name, perm := range map[string]uint16{"open": 0o644, "closed": 0o600, "none": 0, "run": 0o755} {
		b.file(name, []byte("#!/bin/sh\necho ran\n"))
		b.changes[len(b.changes)-1].Entry.Perm = perm
	}
	b.dirAt("search", 0o711)
	b.file("search/f", []byte("found\n"))
	b.dirAt("private", 0o700)
	b.file("private/f", []byte("x"))
	dir, id := b.build()
	for _, other := range []bool{false, true} {
		m := mount(t, dir, id, func(c *daemonConfig) { c.AllowOther = other })
		reachable(t, filepath.Dir(m.dir))
		for script, want := range map[string]bool{
			"ls %s": other, "cat %s/open": other, "cat %s/closed": false, "cat %s/none": false, "%s/run": other,
			"cat %s/search/f": other, "ls %s/search": false, "ls %s/private": false, "cat %s/private/f": false, "test -w %s/open": false,
			"stat %s/closed": other,
		} {
			out, code := asUser(t, 65534, fmt.Sprintf(script, m.dir))
			if (code == 0) != want {
				t.Errorf("allow_other %v: %s: exit %d, %s", other, script, code, out)
			}
			if code != 0 && out != "" && !strings.Contains(out, "ermission denied") {
				t.Errorf("allow_other %v: %s: %s", other, script, out)
			}
		}
	}
}

// TestMountAsUser mounts, reads and unmounts as somebody else, through
// fusermount3, in a mount namespace whose /dev/fuse anybody may open.
func TestMountAsUser(t *testing.T) {
	needFuse(t)
	if _, err := exec.LookPath("fusermount3"); err != nil {
		t.Skip(err)
	}
	const uid = 65534
	b := newBuilder(t)
	b.file("f", []byte("content"))
	b.root.RootPerm = 0o700
	dir, id := b.build()
	work := t.TempDir()
	check(t, os.Mkdir(work+"/M", 0o755))
	reachable(t, work)
	reachable(t, dir)
	for _, d := range []string{dir, work} {
		check(t, filepath.Walk(d, func(p string, _ os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(p, uid, uid)
		}))
	}
	exe := work + "/test"
	bin, err := os.ReadFile("/proc/self/exe")
	check(t, err)
	check(t, os.WriteFile(exe, bin, 0o755))
	for _, other := range []bool{false, true} {
		config, err := json.Marshal(daemonConfig{Repo: dir, Commit: id.String(), Mountpoint: work + "/M", FSName: "repo@user", AllowOther: other})
		check(t, err)
		script := fmt.Sprintf(`set -e
mknod %[1]s/fuse c 10 229; chmod 666 %[1]s/fuse; mount --bind %[1]s/fuse /dev/fuse
cat > %[1]s/as-user <<'END'
set -e
mkfifo in; exec 3<>in
timeout 60 %[1]s/test < in > out 2> log & daemon=$!
for i in $(seq 300); do test -s out && break; sleep 0.1; done
cat out log
grep -q '"Error":""' out || { wait $daemon || true; exit 3; }
grep " $PWD/M " /proc/self/mountinfo
cat M/f; echo; stat -c '%%u:%%g %%a' M/f
echo unmount >&3
wait $daemon
ls M | wc -l
END
export %[2]s='%[3]s'
cd %[1]s && rm -f in out log && timeout 90 setpriv --reuid %[4]d --regid %[4]d --clear-groups sh as-user`, work, daemonEnv, config, uid)
		cmd := exec.Command("timeout", "100", "unshare", "-m", "sh", "-c", script)
		out, err := cmd.CombinedOutput()
		text := string(out)
		if other && !userAllowOther("/etc/fuse.conf") {
			if err == nil || !strings.Contains(text, "user_allow_other") {
				t.Errorf("allow_other against fuse.conf: %v\n%s", err, text)
			}
		} else if err != nil {
			t.Errorf("as user: %v\n%s", err, text)
		} else {
			for _, want := range []string{"ro,nosuid,nodev", "fuse.bole repo@user ro,", "user_id=65534", "default_permissions", "content\n", "65534:65534 644", "\n0\n", "stateless"} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in\n%s", want, text)
				}
			}
		}
		_ = os.Remove(work + "/fuse")
	}
	_ = unix.Unmount(work+"/M", unix.MNT_DETACH)
}
