package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"bole/blobstore"
	"bole/merkle"
)

// Below these a chunk's files are read one after the other: starting workers
// for a folder of ten small files costs more than it gives.
const (
	parallelFiles = 64
	parallelBytes = 4 << 20
)

// items reads and records the names of one directory that are not proved unchanged.
func (a *adder) items(t *dirTask, items []item) error {
	var size uint64
	for i := range items {
		size += items[i].st.size
	}
	if len(items) < parallelFiles && size < parallelBytes {
		for i := range items {
			if err := a.item(t, &items[i]); err != nil {
				return err
			}
		}
		return nil
	}
	g, ctx := errgroup.WithContext(a.s.ctx)
	var next atomic.Int64
	for range a.s.queue.workers {
		g.Go(func() error {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(items) {
					return nil
				}
				if err := a.item(t, &items[i]); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	}
	return g.Wait()
}

func (a *adder) item(t *dirTask, it *item) error {
	if err := a.s.ctx.Err(); err != nil {
		return err
	}
	path := joinPath(t.path, it.name)
	if !it.present {
		a.remove(t, it, path)
		return a.rec.stored(0)
	}
	e, ok, err := a.read(t, it, path)
	if err != nil || !ok {
		return err
	}
	a.record(t, it, path, &e)
	a.progress(it.st.size)
	return a.rec.stored(it.st.size)
}

// remove records that a path is gone.
func (a *adder) remove(t *dirTask, it *item, path string) {
	if a.keep {
		return
	}
	wasDir := it.indexKind() == merkle.KindDir
	if it.base != nil {
		a.mark(t)
		a.rec.replaceStage(path, &stageRecord{op: stageRemoved}, wasDir)
	} else {
		a.rec.replaceStage(path, nil, wasDir)
	}
	a.rec.removeStat(path)
	t.touch()
	a.changed(path, it.index, nil)
}

// record compares what was read with the index and stages a difference.
func (a *adder) record(t *dirTask, it *item, path string, e *merkle.Entry) {
	if it.index != nil && sameData(it.index, e) {
		a.same.Add(1)
		return
	}
	wasDir := it.indexKind() == merkle.KindDir
	if it.base != nil && sameData(it.base, e) {
		a.rec.replaceStage(path, nil, wasDir)
	} else {
		a.mark(t)
		a.rec.replaceStage(path, &stageRecord{op: stageEntry, entry: *e}, wasDir)
	}
	t.touch()
	a.changed(path, it.index, e)
}

// sameData compares two files or symlinks by all but their mtime, which alone is no change.
func sameData(a, b *merkle.Entry) bool {
	return a.Kind == b.Kind && a.Perm == b.Perm && a.Size == b.Size && a.Hash == b.Hash && a.Attrs == b.Attrs &&
		bytes.Equal(a.Target, b.Target)
}

// read stores a file or symlink and returns its entry; false when it could not
// be read (which is noted) or went away.
func (a *adder) read(t *dirTask, it *item, path string) (merkle.Entry, bool, error) {
	if it.st.kind == merkle.KindSymlink {
		e, err := a.link2entry(it)
		return e, err == nil, err
	}
	if e, ok, err := a.known(it); ok || err != nil {
		return e, ok, err
	}
	f, err := openFileAt(t.fd, it.name, path)
	if err != nil {
		if !errors.Is(err, unix.ENOENT) { // gone since it was listed: the next scan sees that
			a.failed(path, err)
		}
		return merkle.Entry{}, false, nil
	}
	defer f.Close()
	e, err := a.readFile(f, path)
	switch {
	case errors.Is(err, blobstore.ErrChanged), errors.Is(err, blobstore.ErrNotRegular), errors.Is(err, errAttrs),
		isReadFault(err, path):
		a.failed(path, err)
		return e, false, nil
	case err != nil:
		return e, false, err
	}
	return e, true, nil
}

// known is the entry of a file that the stat table proves to hold a content
// which is stored, although the index has something else.
func (a *adder) known(it *item) (merkle.Entry, bool, error) {
	if it.rec == nil || !it.rec.proves(&it.st) {
		return merkle.Entry{}, false, nil
	}
	_, ok, err := a.repo.blobIndex(it.rec.hash)
	return merkle.Entry{Kind: merkle.KindFile, Perm: it.st.perm, Size: it.st.size, Mtime: it.st.mtime,
		Hash: it.rec.hash, Attrs: it.rec.attrs}, ok, err
}

var errAttrs = errors.New("its attributes could not be read")

// isReadFault tells a source that cannot be read from a store that cannot be written.
func isReadFault(err error, path string) bool {
	var pe *fs.PathError
	return errors.As(err, &pe) && pe.Op == "read" && pe.Path == path
}

// readFile stores an open file with its attributes and notes what it looked
// like. The clock is read before the content: a change after that shows.
func (a *adder) readFile(f *os.File, path string) (e merkle.Entry, err error) {
	fd := int(f.Fd())
	now := coarseNow()
	var before, after fileStat
	if err := lstatAt(fd, "", &before); err != nil {
		return e, fmt.Errorf("stat %s: %w", path, err)
	}
	var linked bool
	switch {
	case a.o.DryRun:
		e.Hash, err = hashOpen(a.s.ctx, f)
	case a.link:
		e.Hash, _, linked, err = a.rec.batch.LinkFile(f, path)
	default:
		e.Hash, _, err = a.rec.batch.PutFile(f, path)
	}
	if err != nil {
		return e, err
	}
	h, b, err := encodeFileAttrs(fd)
	if err != nil {
		return e, fmt.Errorf("%s: %w: %w", path, errAttrs, err)
	}
	if !h.IsZero() {
		a.rec.putNode(h, b)
	}
	if err := lstatAt(fd, "", &after); err != nil {
		return e, fmt.Errorf("stat %s: %w", path, err)
	}
	e = merkle.Entry{Kind: merkle.KindFile, Perm: after.perm, Size: after.size, Mtime: after.mtime, Hash: e.Hash, Attrs: h}
	if linked {
		after.ctime, before.ctime = 0, 0 // the link moved it, and so will the store's rename
		a.linkedBytes.Add(after.size)
	}
	if after == before || linked && after.mtime == before.mtime && after.size == before.size {
		a.rec.putStat(path, newStatRecord(&after, e.Hash, h, now, a.s.slack))
	} else if after.size != before.size || after.mtime != before.mtime {
		return e, fmt.Errorf("store %s: %w", path, blobstore.ErrChanged)
	}
	return e, nil
}

// link2entry is the entry of a symlink; a long target is a content.
func (a *adder) link2entry(it *item) (merkle.Entry, error) {
	e := merkle.Entry{Kind: merkle.KindSymlink, Perm: 0o777, Size: uint64(len(it.target)), Mtime: it.st.mtime}
	if len(it.target) <= merkle.InlineTarget {
		e.Target = it.target
		return e, nil
	}
	if a.o.DryRun {
		e.Hash = merkle.ContentHash(it.target)
		return e, nil
	}
	var err error
	e.Hash, err = a.rec.batch.PutBytes(it.target)
	return e, err
}

func (a *adder) progress(size uint64) {
	files, bytes := a.files.Add(1), a.bytes.Add(size)
	if a.o.Progress == nil {
		return
	}
	a.mu.Lock()
	a.o.Progress(Progress{Phase: "add", Files: files, TotalFiles: a.plan.Files, Bytes: bytes, TotalBytes: a.toRead})
	a.mu.Unlock()
}

// planner is the pass before: it counts what will be read and what of it
// written, reading nothing.
type planner struct {
	a                  *adder
	contents           unix.Stat_t // of the store's folder
	work               atomic.Bool
	files, read, write atomic.Uint64
}

// makePlan says whether there is anything to record, and how much to read and write.
func (a *adder) makePlan(ctx context.Context) (bool, error) {
	p := &planner{a: a}
	if err := unix.Stat(a.repo.ContentsDir(), &p.contents); err != nil {
		return false, fmt.Errorf("stat %s: %w", a.repo.ContentsDir(), err)
	}
	want := newWanted(a.o.Paths)
	if err := a.scan(ctx, p, want); err != nil {
		return false, err
	}
	a.plan.Files, a.plan.Bytes, a.toRead = p.files.Load(), p.write.Load(), p.read.Load()
	if a.missing(want) != "" || len(a.ignored) > 0 || !p.work.Load() {
		return false, a.complaint(want)
	}
	var err error
	a.plan.Free, err = free(a.repo.ContentsDir())
	return true, err
}

func (p *planner) begin(t *dirTask) (bool, error) {
	if t.self.indexKind() != merkle.KindDir {
		p.work.Store(true)
	}
	return true, nil
}

func (p *planner) items(t *dirTask, items []item) error {
	for i := range items {
		it := &items[i]
		if it.present && it.st.kind == merkle.KindFile && (it.rec == nil || !it.rec.proves(&it.st)) {
			p.files.Add(1)
			p.read.Add(it.st.size)
			p.write.Add(p.toWrite(t, it))
		}
	}
	p.work.Store(true)
	return nil
}

// toWrite is how many bytes of a file must be written: none of one that will be
// linked, as far as that can be told before, and of a large one none of its
// holes, which the store keeps. A pack has every byte. A file that went away
// counts for nothing.
func (p *planner) toWrite(t *dirTask, it *item) uint64 {
	if it.st.size <= blobstore.DefaultLimit {
		return it.st.size
	}
	var st unix.Stat_t
	if err := unix.Fstatat(t.fd, it.name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return 0
	}
	if p.a.link && st.Nlink == 1 && st.Dev == p.contents.Dev {
		return 0
	}
	return min(it.st.size, uint64(st.Blocks)*512)
}

func (p *planner) unchanged(n int) { p.a.same.Add(uint64(n)) }

func (p *planner) done(t *dirTask) error {
	rec, old, st := t.self.rec, t.self.index, &t.self.st
	if t.want.all && (rec == nil || !rec.proves(st) || old == nil || old.Perm != st.perm || old.Attrs != rec.attrs) {
		p.work.Store(true)
	}
	return nil
}

func (p *planner) ignoredName(path string, isDir bool) { p.a.ignoredName(path, isDir) }
