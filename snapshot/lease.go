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

// Lease is a held lease: a file that is locked for as long as its process
// lives, and beside it one that says for what and may be replaced. The kernel
// lets go of it with the process.
type Lease struct {
	f              *os.File
	dir            string
	id, repository string
}

// The files of a lease are its ID and one of these. A listing looks for the
// first, which never gets another file in its place: one that is renamed over
// may be missing from a listing that is under way.
const (
	leaseSuffix  = ".lease"
	leaseSays    = ".json"
	socketSuffix = ".sock"
)

// NewLeaseID makes the name of a lease, and of the files beside it.
func NewLeaseID() string {
	var b [8]byte
	rand.Read(b[:]) // crypto/rand never fails
	return hex.EncodeToString(b[:])
}

// RunDir holds leases, sockets and logs: .bole/run, or the user's runtime
// folder where that cannot be written, as on a read-only disk.
func (r *Repo) RunDir() (string, error) {
	dir := repoRunDir(r.root)
	if unix.Access(dir, unix.W_OK) == nil {
		return dir, nil
	}
	return userRunDir()
}

func repoRunDir(root string) string { return filepath.Join(root, DirName, "run") }

// userRunDir is bole's folder in XDG_RUNTIME_DIR, or in the folder for
// temporary files where there is none that belongs to this user. Nobody else
// may be able to put files into it.
func userRunDir() (string, error) {
	base := os.Getenv("XDG_RUNTIME_DIR")
	if base == "" || !onlyOurs(base) {
		base = filepath.Join(os.TempDir(), fmt.Sprintf("bole-%d", os.Getuid()))
	}
	dir := filepath.Join(base, "bole")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("make runtime folder: %w", err)
	}
	for _, d := range []string{base, dir} {
		if !onlyOurs(d) {
			return "", fmt.Errorf("runtime folder %s: somebody else can write to it", d)
		}
	}
	return dir, nil
}

// onlyOurs says whether a path is a folder that only this user can write to.
func onlyOurs(dir string) bool {
	var st unix.Stat_t
	return unix.Lstat(dir, &st) == nil && st.Mode&unix.S_IFMT == unix.S_IFDIR &&
		int(st.Uid) == os.Getuid() && st.Mode&0o022 == 0
}

// Lease writes and holds a lease. Other processes see it complete or not at all.
func (r *Repo) Lease(info LeaseInfo) (*Lease, error) {
	dir, err := r.RunDir()
	if err != nil {
		return nil, err
	}
	l := &Lease{dir: dir, id: info.ID, repository: r.root}
	if l.id == "" {
		l.id = NewLeaseID()
	}
	if err := l.hold(); err != nil {
		return nil, fmt.Errorf("write lease: %w", err)
	}
	if err := l.Update(info); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// hold makes the locked file. It is locked before it has its name: nobody can
// take it for a stale one.
func (l *Lease) hold() error {
	f, err := os.CreateTemp(l.dir, ".lease-*")
	if err != nil {
		return err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		err = f.Chmod(0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), l.file(leaseSuffix))
	}
	if err != nil {
		return errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	l.f = f
	return nil
}

func (l *Lease) file(suffix string) string { return filepath.Join(l.dir, l.id+suffix) }

// Update replaces what the lease says; its ID and repository stay.
func (l *Lease) Update(info LeaseInfo) error {
	info.ID, info.Repository = l.id, l.repository
	b, err := json.Marshal(info)
	if err != nil {
		return fmt.Errorf("encode lease: %w", err)
	}
	f, err := os.CreateTemp(l.dir, ".lease-*") // not to be flushed: it means nothing after a power cut
	if err != nil {
		return fmt.Errorf("write lease: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), l.file(leaseSays))
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write lease: %w", err), removeIfThere(f.Name()))
	}
	return nil
}

// Close removes the lease.
func (l *Lease) Close() error {
	return errors.Join(removeIfThere(l.file(leaseSays)), removeIfThere(l.file(leaseSuffix)), l.f.Close())
}

// Leases lists what is held, oldest first, and removes what dead processes left.
func (r *Repo) Leases() ([]LeaseInfo, error) { return LeasesOf(r.root) }

// LeasesOf is Leases for whoever needs no open repository: root is the folder
// that holds .bole, absolute, with links resolved.
func LeasesOf(root string) ([]LeaseInfo, error) {
	dirs := []string{repoRunDir(root)}
	if user, err := userRunDir(); err == nil { // otherwise none of ours can lie there
		dirs = append(dirs, user)
	}
	var out []LeaseInfo
	for _, dir := range dirs {
		names, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("list leases: %w", err)
		}
		for _, d := range names {
			id, ok := strings.CutSuffix(d.Name(), leaseSuffix)
			if !ok {
				continue
			}
			info, err := lookAtLease(dir, id)
			if err != nil {
				return nil, err
			}
			if info.Repository == root {
				out = append(out, info)
			}
		}
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Started < out[j].Started })
	return out, nil
}

// lookAtLease reads a lease that somebody holds, and removes one that nobody
// does, with its socket, where that is permitted.
func lookAtLease(dir, id string) (info LeaseInfo, err error) {
	path := filepath.Join(dir, id)
	f, err := os.Open(path + leaseSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil // let go of meanwhile
	}
	if err != nil {
		return info, fmt.Errorf("read lease: %w", err)
	}
	defer f.Close()
	switch err := unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return readLease(path + leaseSays)
	case err != nil:
		return info, fmt.Errorf("lock lease %s: %w", path, err)
	}
	for _, suffix := range []string{socketSuffix, leaseSays, leaseSuffix} {
		err := removeIfThere(path + suffix)
		if err != nil && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, unix.EROFS) {
			return info, fmt.Errorf("remove stale lease: %w", err)
		}
	}
	return info, nil
}

// readLease reads what a lease says; nothing when it is only just being made, or let go of.
func readLease(path string) (info LeaseInfo, err error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return info, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &info)
	}
	if err != nil {
		return info, fmt.Errorf("read lease %s: %w", path, err)
	}
	return info, nil
}
