package integration

import (
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCase10Df(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	write(t, r.path("big"), strings.Repeat("0123456789abcdef", 1<<16)) // 1 MiB
	write(t, r.path("d", "small"), "s")
	r.commit()
	for _, rev := range []string{"HEAD", "HEAD:d"} {
		m := r.mount(rev)
		var st unix.Statfs_t
		ok(t, unix.Statfs(m.dir, &st))
		if st.Bsize == 0 || st.Frsize == 0 || st.Blocks == 0 || st.Files == 0 {
			t.Errorf("%s: zeros in statfs: %+v", rev, st)
		}
		if st.Namelen != 255 {
			t.Errorf("%s: name length %d, want 255", rev, st.Namelen)
		}
		if st.Flags&unix.ST_RDONLY == 0 {
			t.Errorf("%s: not flagged read-only", rev)
		}
		if rev == "HEAD" && int64(st.Blocks)*int64(st.Frsize) < 1<<20 {
			t.Errorf("total of %d bytes is less than the tree's 1 MiB", int64(st.Blocks)*int64(st.Frsize))
		}
		if int64(st.Blocks) < int64(st.Bfree) || st.Bfree < st.Bavail {
			t.Errorf("%s: more free than there is: %+v", rev, st)
		}
		for _, line := range lines(tool(t, "df", "-B1", "--output=size,itotal,source", m.dir))[1:] {
			fields := strings.Fields(line)
			if len(fields) != 3 || fields[0] == "0" || fields[1] == "0" || fields[1] == "-" {
				t.Errorf("%s: df prints %q", rev, line)
			}
			if strings.Contains(fields[len(fields)-1], ":") {
				t.Errorf("%s: the source %q looks like a remote", rev, line)
			}
		}
		tool(t, "stat", "-f", m.dir)
		// The same figures from any place inside.
		var inner unix.Statfs_t
		ok(t, unix.Statfs(m.path("."), &inner))
		if inner.Blocks != st.Blocks || inner.Files != st.Files {
			t.Errorf("%s: other figures inside: %+v, %+v", rev, st, inner)
		}
		m.umount()
	}
}
