package snapshot

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"golang.org/x/sys/unix"
)

// LeaseInfo says who uses what of a repository, for mounts, umount and gc.
type LeaseInfo struct {
	ID         string   `json:"id"`
	Kind       string   `json:"kind"` // "mount"
	PID        int      `json:"pid"`
	Started    int64    `json:"started_ns"`
	Repository string   `json:"repository"`
	Mountpoint string   `json:"mountpoint,omitempty"`
	Revision   string   `json:"revision,omitempty"` // as the user gave it
	Path       string   `json:"path,omitempty"`     // sub-folder of the commit
	IO         string   `json:"io,omitempty"`
	Socket     string   `json:"socket,omitempty"`
	Log        string   `json:"log,omitempty"`
	Commits    []string `json:"commits"` // served now
}

// Lease is a held lease. The kernel lets go of it with the process.
type Lease struct {
	f    *os.File
	path string
}

const leaseSuffix = ".lease"

// NewLeaseID makes the name of a lease, and of the files beside it.
func NewLeaseID() string {
	var b [8]byte
	rand.Read(b[:]) // crypto/rand never fails
	return hex.EncodeToString(b[:])
}

// RunDir holds leases, sockets and logs: .bole/run, or the user's runtime
// folder when the repository's disk is read-only.
func (r *Repo) RunDir() (string, error) { return runDir(r.root) }

func runDir(root string) (string, error) {
	dir := filepath.Join(root, DirName, "run")
	if err := unix.Access(dir, unix.W_OK); err == nil {
		return dir, nil
	}
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("bole-%d", os.Getuid()))
	}
	dir = filepath.Join(base, "bole")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make runtime folder: %w", err)
	}
	return dir, nil
}

// Lease writes and holds a lease. Other processes see it complete or not at all.
func (r *Repo) Lease(info LeaseInfo) (*Lease, error) {
	dir, err := r.RunDir()
	if err != nil {
		return nil, err
	}
	if info.ID == "" {
		info.ID = NewLeaseID()
	}
	info.Repository = r.root
	l := &Lease{path: filepath.Join(dir, info.ID+leaseSuffix)}
	if err := l.Update(info); err != nil {
		return nil, err
	}
	return l, nil
}

// Update replaces what the lease says.
func (l *Lease) Update(info LeaseInfo) error {
	b, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("encode lease: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(l.path), ".lease-*")
	if err != nil {
		return fmt.Errorf("write lease: %w", err)
	}
	// Locked before it has its name: nobody can take it for a stale one.
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		_, err = f.Write(append(b, '\n'))
	}
	if err == nil {
		err = os.Rename(f.Name(), l.path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write lease: %w", err), f.Close(), os.Remove(f.Name()))
	}
	old := l.f
	l.f = f
	if old != nil {
		return old.Close()
	}
	return nil
}

// Close removes the lease.
func (l *Lease) Close() error {
	err := os.Remove(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, l.f.Close())
}

// Leases lists what is held, oldest first, and removes what dead processes left.
func (r *Repo) Leases() ([]LeaseInfo, error) { return LeasesOf(r.root) }

// LeasesOf is Leases for whoever needs no open repository: root is the folder
// that holds .bole, absolute, with links resolved.
func LeasesOf(root string) ([]LeaseInfo, error) {
	dir, err := runDir(root)
	if err != nil {
		return nil, err
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list leases: %w", err)
	}
	var out []LeaseInfo
	for _, d := range names {
		id, ok := strings.CutSuffix(d.Name(), leaseSuffix)
		if !ok {
			continue
		}
		info, live, err := readLease(filepath.Join(dir, d.Name()))
		if err != nil {
			return nil, err
		}
		if live && info.Repository == root {
			out = append(out, info)
		}
		if !live {
			for _, suffix := range []string{".sock", leaseSuffix} {
				if err := os.Remove(filepath.Join(dir, id+suffix)); err != nil && !errors.Is(err, fs.ErrNotExist) {
					return nil, fmt.Errorf("remove stale lease: %w", err)
				}
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Started < out[j].Started })
	return out, nil
}

func readLease(path string) (info LeaseInfo, live bool, err error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return info, true, nil // went away by itself; nothing to clean
	}
	if err != nil {
		return info, false, fmt.Errorf("read lease: %w", err)
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if err == nil {
		return info, false, nil
	}
	if !errors.Is(err, unix.EWOULDBLOCK) {
		return info, false, fmt.Errorf("lock lease %s: %w", path, err)
	}
	if err := json.NewDecoder(f).Decode(&info); err != nil {
		return info, true, fmt.Errorf("read lease %s: %w", path, err)
	}
	return info, true, nil
}
