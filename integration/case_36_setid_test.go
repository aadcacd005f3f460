package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// mountOptions says whether a line of mountinfo holds each option.
func mountOptions(line string, options ...string) bool {
	fields := strings.Fields(line)
	if len(fields) < 6 {
		return false
	}
	have := make(map[string]bool)
	for _, o := range strings.Split(fields[5], ",") {
		have[o] = true
	}
	for _, o := range options {
		if !have[o] {
			return false
		}
	}
	return true
}

// mountLine returns the line of mountinfo about dir.
func mountLine(t testing.TB, dir string) string {
	t.Helper()
	for _, line := range lines(read(t, "/proc/self/mountinfo")) {
		if fields := strings.Fields(line); len(fields) > 5 && fields[4] == dir {
			return line
		}
	}
	t.Fatalf("no line about %s in mountinfo", dir)
	return ""
}

func TestCase36SetIDBits(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	bits := map[string]uint32{"suid": 0o4755, "sgid": 0o2755, "sticky": 0o1644, "all": 0o7777}
	for name, mode := range bits {
		write(t, r.path(name), "#!/bin/sh\nid -u\n")
		ok(t, unix.Chmod(r.path(name), mode))
		mkdir(t, r.path(name+".d"))
		ok(t, unix.Chmod(r.path(name+".d"), mode|0o111))
	}
	id := r.commit()
	// A bit that cannot be recorded must not show as a change for ever.
	r.wantClean()
	r.views(id, func(t testing.TB, how, dir string) {
		for name, mode := range bits {
			for _, p := range []string{name, name + ".d"} {
				var st unix.Stat_t
				ok(t, unix.Stat(filepath.Join(dir, p), &st))
				if want := mode & 0o777; st.Mode&0o7777&^0o111 != want&^0o111 {
					t.Errorf("%s: %s has mode %o, want %o", how, p, st.Mode&0o7777, want)
				}
			}
		}
	})
	for _, io := range []string{"auto", "stateless", "passthrough", "handles"} {
		m := r.mount(id, "--io", io, "--allow-other")
		if line := mountLine(t, m.dir); !mountOptions(line, "ro", "nosuid", "nodev") {
			t.Errorf("--io %s: the mount is not ro, nosuid, nodev: %s", io, line)
		}
		m.umount()
	}
	// Checkout in place over a set-id file leaves no bit on other content.
	write(t, r.path("suid"), "other")
	ok(t, os.Chmod(r.path("suid"), 0o755|os.ModeSetuid))
	r.commit()
	r.must("checkout", "--force", id)
	var st unix.Stat_t
	ok(t, unix.Stat(r.path("suid"), &st))
	if st.Mode&0o7000 != 0 {
		t.Errorf("checkout leaves mode %o", st.Mode&0o7777)
	}
}
