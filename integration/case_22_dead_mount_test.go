package integration

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCase22DeadMount(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("f"), "f")
	id := r.commit()
	want := readTree(t, r.dir)
	for _, how := range []string{"mount", "umount", "umount busy", "mounts deletes the lease"} {
		t.Run(how, func(t *testing.T) {
			r := *r
			r.t = t
			m := r.mount(id)
			if how == "umount busy" {
				// Somebody stands in the dead mount with an open file.
				p := start(t, "sh", "-c", `cd "$1" && exec 3<f && echo in && exec sleep 60`, "sh", m.dir)
				if p.line(t) != "in" {
					t.Fatal(p.stderr.String())
				}
			}
			m.kill()
			// A request that waited when the daemon died is aborted.
			err := error(unix.ECONNABORTED)
			for i := 0; i < 10 && err == unix.ECONNABORTED; i++ {
				err = unix.Statfs(m.dir, new(unix.Statfs_t))
			}
			if err != unix.ENOTCONN {
				t.Fatalf("a dead mount answers %v", err)
			}
			if how == "mounts deletes the lease" {
				_ = listMounts(t)
			}
			switch how {
			case "mount", "mounts deletes the lease":
				again := r.mountAt(m.dir, id)
				sameTree(t, "mounted again", want, readTree(t, again.dir), sameOpts{})
				again.umount()
			default:
				if res := bole(t, "umount", m.dir); res.code != 0 {
					t.Errorf("umount of a dead mount: %v", res)
				}
			}
			if isMount(m.dir) {
				t.Error("the dead mount still stands")
			}
			if got, err := os.ReadDir(m.dir); err != nil || len(got) != 0 {
				t.Errorf("the mount point holds %v, %v", got, err)
			}
			if e := findMount(listMounts(t), m.dir); e != nil {
				t.Errorf("mounts still lists it: %v", e)
			}
			if left := r.leases(); len(left) != 0 {
				t.Errorf("leases left: %v", left)
			}
		})
	}
}

// leases lists the repository's lease files. Sockets and logs have other names.
func (r *repo) leases() []string {
	r.t.Helper()
	list, err := os.ReadDir(r.path(".bole", "run"))
	if os.IsNotExist(err) {
		return nil
	}
	ok(r.t, err)
	var left []string
	for _, e := range list {
		if strings.HasSuffix(e.Name(), ".lease") {
			left = append(left, e.Name())
		}
	}
	return left
}
