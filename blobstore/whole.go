package blobstore

import (
	"errors"
	"os"

	"bole/merkle"
)

// pendingWhole is a whole file on its way: a finished temporary, or a file that already stands at
// its final name and only has to be made durable (temp is then empty).
type pendingWhole struct {
	hash   merkle.Hash
	size   int64
	temp   string   // its name in tmp/; "" when it has its final one
	f      *os.File // open for fsync, or nil
	synced bool     // fsynced already
	source string   // for messages
	linked bool     // shares its inode with the user's file
	id     fileID   // of a linked file, when it had been hashed
}

// create makes an empty temporary file.
func (o *tempOwner) create(source string) (*pendingWhole, error) {
	path, err := o.path()
	if err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &pendingWhole{temp: path, f: f, source: source}, nil
}

// discard closes and removes the temporary file. A second call does nothing.
func (w *pendingWhole) discard() error {
	err := w.close()
	if w.temp != "" {
		err = errors.Join(err, removeMissing(w.temp))
		w.temp = ""
	}
	return err
}

func (w *pendingWhole) close() error {
	if w.f == nil {
		return nil
	}
	f := w.f
	w.f = nil
	return f.Close()
}

// seal takes the write permission from a finished copy and turns on fs-verity where there is any.
func (s *Store) seal(w *pendingWhole) error {
	if err := w.f.Chmod(s.wholeMode()); err != nil {
		return err
	}
	if s.noVerity.Load() {
		return nil
	}
	// fs-verity wants no writer. The new descriptor is open before the old one goes, so no lost
	// write goes unseen.
	ro, err := os.Open(w.temp)
	if err != nil {
		return err
	}
	if err := w.close(); err != nil {
		return errors.Join(err, ro.Close())
	}
	w.f = ro
	return s.enableVerity(ro)
}

// fsyncEach is how many whole files a barrier flushes one by one; for more it flushes the file
// system once.
const fsyncEach = 64

// keep leaves a finished whole file for the next Sync, or drops it (kept false) when the content is
// stored already. Up to fsyncEach of them stay open, so that their fsync sees every write that was
// lost; for more, syncfs does.
func (b *Batch) keep(h *merkle.Hash, w *pendingWhole) (kept bool, err error) {
	if ok, err := b.known(h); err != nil {
		return false, err
	} else if ok {
		return false, w.discard()
	}
	w.hash = *h
	if !b.claimOpen() {
		if !b.s.trustSyncFS {
			// Old kernels hide lost writes from syncfs: flush now, while the descriptor is open.
			if err := b.s.syncFile(w.f); err != nil {
				return false, b.fail(err)
			}
			w.synced = true
		}
		if err := w.close(); err != nil {
			return false, err
		}
	}
	return b.enlist(w)
}

// claimOpen tells whether one more whole file may stay open until Sync.
func (b *Batch) claimOpen() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.open >= fsyncEach {
		return false
	}
	b.open++
	return true
}

// enlist notes the file as stored, unless another goroutine was faster with the same content.
func (b *Batch) enlist(w *pendingWhole) (kept bool, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.usable(); err != nil {
		return false, err
	}
	if b.knownHere(&w.hash) {
		return false, w.discard()
	}
	b.whole = append(b.whole, *w)
	b.cur.add(Record{w.hash, Location{Length: uint64(w.size)}})
	return true, nil
}

// wholeLooksRight tells whether a content that the index calls a whole file is there, has its size,
// is sealed, and is not known to be wrong. If not, it is stored again: so adding the source again
// heals the store. A linked file that was never sealed, because its import did not come to its
// commit, may have been written to through its other name.
func (s *Store) wholeLooksRight(h *merkle.Hash, size uint64) bool {
	fi, err := os.Lstat(s.wholePath(h))
	return err == nil && fi.Mode().IsRegular() && uint64(fi.Size()) == size && fi.Mode()&0o222 == 0 && !s.isBad(h)
}
