package fs

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// release is a kernel's version: major, minor, patch. patch is -1 where a
// distribution's kernel does not say which stable release it contains.
type release struct{ major, minor, patch int }

func (r release) before(major, minor int) bool {
	return r.major < major || r.major == major && r.minor < minor
}

var (
	releaseForm = regexp.MustCompile(`^(\d+)\.(\d+)(?:\.(\d+))?(.*)$`)
	debianForm  = regexp.MustCompile(`\bDebian (\d+)\.(\d+)\.(\d+)-`)
)

// parseRelease reads uname's release and version. A kernel named 6.1.0-41-amd64
// has a patch level only where the version text tells it, as Debian's does.
func parseRelease(name, version string) (release, error) {
	m := debianForm.FindStringSubmatch(version)
	if m == nil {
		m = releaseForm.FindStringSubmatch(name)
	}
	if m == nil {
		return release{}, fmt.Errorf("kernel release %q is not understood", name)
	}
	var r release
	for i, p := range []*int{&r.major, &r.minor, &r.patch} {
		if m[i+1] != "" {
			*p, _ = strconv.Atoi(m[i+1]) // digits only
		}
	}
	if len(m) > 4 && r.patch == 0 && strings.HasPrefix(m[4], "-") && !strings.HasPrefix(m[4], "-rc") {
		r.patch = -1
	}
	return r, nil
}

func runningKernel() (release, error) {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return release{}, fmt.Errorf("uname: %w", err)
	}
	return parseRelease(unix.ByteSliceToString(u.Release[:]), unix.ByteSliceToString(u.Version[:]))
}

// openFix is the state of a stable line of kernels with regard to two upstream
// changes. e26ee4efbc79 "fuse: allocate ff->release_args only if release is
// needed" (6.9, brought to older lines in October 2025) let reclaim of memory
// wait for itself where OPEN is answered with ENOSYS; bd5603eaae0a "fuse: fix
// readahead reclaim deadlock" (6.19, brought back in January 2026) ended it.
// Both columns are from the change logs of the stable releases.
type openFix struct {
	major, minor int
	broken       int // first patch level with the fault; 0: all
	fixed        int // first patch level without it; 0: none is known
}

var openFixes = []openFix{
	{5, 10, 246, 0},
	{5, 15, 196, 198},
	{6, 1, 158, 0},
	{6, 6, 114, 120},
	{6, 12, 0, 64},
	{6, 18, 0, 3},
}

// statelessSafe says whether OPEN may be answered with ENOSYS.
func (r release) statelessSafe() bool {
	if !r.before(6, 19) {
		return true
	}
	for _, l := range openFixes {
		if l.major == r.major && l.minor == r.minor {
			return r.patch >= 0 && (r.patch < l.broken || l.fixed > 0 && r.patch >= l.fixed)
		}
	}
	return r.before(6, 9) && r.patch >= 0
}

// passthroughCapable says whether the kernel may take backing files at all.
func (r release) passthroughCapable() bool { return !r.before(6, 9) }

const capSysAdmin = 21

// mayPassthrough says whether this process has CAP_SYS_ADMIN where the kernel
// asks for it: in the first user namespace.
func mayPassthrough() bool {
	uidMap, err := os.ReadFile("/proc/self/uid_map")
	if err != nil || strings.Join(strings.Fields(string(uidMap)), " ") != "0 0 4294967295" {
		return false
	}
	h := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var d [2]unix.CapUserData
	if unix.Capget(&h, &d[0]) != nil {
		return false
	}
	return d[0].Effective&(1<<capSysAdmin) != 0
}
