package integration

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestCase31ShorterOverwrite(t *testing.T) {
	t.Parallel()
	r := newRepo(t)
	long := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB: a whole file
	contents := map[string][2]string{"f": {"twenty-one characters", "BB"}, "zero": {"some text", ""}, "big": {long, long[:700_001]}, "shrunk": {long, "tiny"}}
	for name, c := range contents {
		write(t, r.path(name), c[0])
	}
	first := r.commit()
	for name, c := range contents {
		f, err := os.OpenFile(r.path(name), os.O_WRONLY|os.O_TRUNC, 0)
		ok(t, err)
		_, err = f.WriteString(c[1])
		ok(t, err)
		ok(t, f.Close())
	}
	second := r.commit()
	for i, rev := range []string{first, second} {
		r.views(rev, func(t testing.TB, how, dir string) {
			for name, c := range contents {
				st, err := os.Stat(dir + "/" + name)
				ok(t, err)
				if st.Size() != int64(len(c[i])) || read(t, dir+"/"+name) != c[i] {
					t.Errorf("%s of commit %d: %s has %d bytes, want %d", how, i+1, name, st.Size(), len(c[i]))
				}
			}
		})
		r.must("checkout", rev)
		for name, c := range contents {
			if read(t, r.path(name)) != c[i] {
				t.Errorf("checkout in place of commit %d: %s is wrong", i+1, name)
			}
		}
	}
	m := r.mount(first)
	for _, flags := range []int{unix.O_WRONLY, unix.O_RDWR, unix.O_WRONLY | unix.O_CREAT, unix.O_RDONLY} {
		for name := range contents {
			fd, err := unix.Open(m.path(name), flags|unix.O_TRUNC, 0o644)
			if err != unix.EROFS {
				t.Errorf("open with %#x and O_TRUNC: %v, want EROFS", flags, err)
			}
			if err == nil {
				unix.Close(fd)
			}
			if read(t, m.path(name)) != contents[name][0] {
				t.Errorf("%s changed by a refused open", name)
			}
		}
	}
	m.umount()
}
