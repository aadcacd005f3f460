package fs

import (
	"fmt"
	"io"

	"github.com/sirupsen/logrus"

	"bole/merkle"
)

// IO says how the kernel gets at file contents. See docs/SEMANTICS.md.
type IO uint8

const (
	// IOAuto takes the best mode for the kernel, the user and the tree.
	IOAuto IO = iota
	// IOStateless answers OPEN with ENOSYS once: the kernel then opens files by
	// itself, for ever, and keeps their pages.
	IOStateless
	// IOPassthrough lets the kernel read whole files without the daemon. It
	// needs CAP_SYS_ADMIN and Linux 6.9.
	IOPassthrough
	// IOHandles answers each OPEN and lets the kernel keep pages across opens.
	IOHandles
)

var ioNames = [...]string{IOAuto: "auto", IOStateless: "stateless", IOPassthrough: "passthrough", IOHandles: "handles"}

// String is the name that ParseIO takes.
func (m IO) String() string {
	if int(m) < len(ioNames) {
		return ioNames[m]
	}
	return fmt.Sprintf("IO(%d)", uint8(m))
}

// ParseIO reads a mode by name: auto, stateless, passthrough, handles.
func ParseIO(s string) (IO, error) {
	for m, name := range ioNames {
		if s == name {
			return IO(m), nil
		}
	}
	return IOAuto, fmt.Errorf("io mode %q is none of auto, stateless, passthrough, handles", s)
}

// Options describe a mount.
type Options struct {
	// Mountpoint is an existing directory.
	Mountpoint string
	// Commit is shown; it stays the same for the mount's whole life.
	Commit merkle.Hash
	// Path is the directory of the commit that becomes the mount's root, "" for the commit's own.
	Path string
	// IO is how the kernel gets at contents.
	IO IO
	// AllowOther lets other users in; file permissions are enforced by the kernel either way.
	AllowOther bool
	// Verify reads and hashes a whole file before its first open succeeds.
	Verify bool
	// FSName is what df and mount show as the source, for example REPO@REV.
	FSName string
	// Log takes one line for each damaged node or content; nil for none.
	Log *logrus.Logger
}

func (o *Options) logger() *logrus.Logger {
	if o.Log != nil {
		return o.Log
	}
	l := logrus.New()
	l.SetOutput(io.Discard)
	return l
}
