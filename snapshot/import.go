package snapshot

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"time"

	"bole/lmdbstore"
	"bole/merkle"
)

// ErrInside is returned for the import of a folder that holds the repository or lies in it.
var ErrInside = errors.New("the repository lies in it, or it in the repository")

// ImportOptions say what Import reads and where it goes.
type ImportOptions struct {
	Source   string // folder outside any working directory
	Dest     string // path in the commit; "" is its root
	Branch   string // "" is the branch of HEAD
	Move     bool   // take the files into the store instead of copying them
	Meta     Meta
	Plan     func(Plan)
	Progress func(Progress)
	Skipped  func(Problem)
}

// ImportResult says what was committed.
type ImportResult struct {
	ID                                   merkle.Hash
	Files, Bytes, Linked, Copied, Remain uint64 // Remain: source files that a move left in place
}

// Import commits a tree that lies outside any working directory onto a branch,
// over what is there at Dest; nothing there is deleted. What was read is recorded
// as it goes, so that an import that was killed goes on where it was. With Move
// large files are linked into the store and hashed there, and the sources are
// unlinked only after the commit is durable. One import runs at a time.
// ErrNothing when the branch has it all already; with Move that is no error,
// and the sources go. When something cannot be read there is no commit, and an
// UnreadableError. ErrInside, ErrRefMoved.
func (r *Repo) Import(ctx context.Context, o ImportOptions) (res ImportResult, err error) {
	source, err := r.importSource(o.Source)
	if err != nil {
		return res, err
	}
	if o.Dest, err = cleanRevPath(o.Dest); err != nil {
		return res, fmt.Errorf("import to %q: %w", o.Dest, err)
	}
	for _, name := range strings.Split(o.Dest, "/") {
		if err := merkle.CheckName([]byte(name)); err != nil && o.Dest != "" {
			return res, fmt.Errorf("import to %q: %w", o.Dest, err)
		}
	}
	lock, err := r.lockImport(ctx)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, lock.close()) }()
	gc, err := r.shareGC(ctx)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, gc.close()) }()
	im := &importer{repo: r, o: o, source: source, led: importLedger(source)}
	return im.run(ctx)
}

// importLedger keeps what is known about a source, which is named by its
// absolute path with links resolved.
func importLedger(source string) ledger {
	return ledger{stage: lmdbstore.Cache, stat: lmdbstore.Cache, salt: "import\x00" + source}
}

// importSource resolves the folder and refuses one that overlaps the repository.
func (r *Repo) importSource(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err != nil {
		return "", fmt.Errorf("import: %w", err)
	}
	under := func(a, b string) bool { return a == b || strings.HasPrefix(a, strings.TrimSuffix(b, "/")+"/") }
	if under(abs, r.file("")) || under(r.file(""), abs) || under(r.ContentsDir(), abs) || under(abs, r.ContentsDir()) ||
		!r.Bare() && under(abs, r.root) {
		return "", fmt.Errorf("import %s: %w", dir, ErrInside)
	}
	return abs, nil
}

// importer is one run of Import.
type importer struct {
	repo   *Repo
	o      ImportOptions
	source string
	led    ledger
	head   Head
	a      *adder
}

func (im *importer) run(ctx context.Context) (res ImportResult, err error) {
	// What a killed import meant to commit was laid over another base, perhaps at
	// another place; what it read is what lets this one go on.
	if err := im.forget(false); err != nil {
		return res, err
	}
	if err := im.begin(); err != nil {
		return res, err
	}
	sum, err := im.a.run(ctx)
	if err != nil {
		return res, err
	}
	res.Files, res.Bytes = sum.Added+sum.Modified, sum.Bytes
	res.Linked, res.Copied = im.a.linkedBytes.Load(), sum.Bytes-min(sum.Bytes, im.a.linkedBytes.Load())
	id, _, err := im.commit(ctx)
	if err == nil {
		im.head.Commit = id
	} else if !errors.Is(err, ErrNothing) {
		return res, err
	}
	if res.ID = im.head.Commit; im.o.Move {
		if res.Remain, err = im.unlinkSources(ctx); err != nil {
			return res, err
		}
	}
	return res, errors.Join(err, im.forget(true))
}

// begin looks at the branch and at what stands at the destination.
func (im *importer) begin() error {
	return im.repo.db.View(func(rd *lmdbstore.Reader) error {
		head, err := readHead(rd)
		if err != nil {
			return err
		}
		if im.o.Branch != "" && im.o.Branch != head.Branch {
			head.Branch = im.o.Branch
			if err := CheckRefName(head.Branch); err != nil {
				return err
			}
			if head.Commit, _, err = readRef(rd, headsPrefix+head.Branch); err != nil {
				return err
			}
		}
		im.head = head
		if err := im.wayIsFree(rd); err != nil {
			return err
		}
		wt := worktree{head: head}
		if wt.root, err = commitEntry(rd, head.Commit, im.o.Dest); err != nil {
			return err
		}
		if wt.root != nil && wt.root.Kind != merkle.KindDir {
			return fmt.Errorf("import to %q: %w", im.o.Dest, ErrNotDir)
		}
		wt.index = wt.root
		im.a = &adder{repo: im.repo, led: im.led, top: im.source, wt: wt, link: im.o.Move, keep: true,
			o: AddOptions{Plan: im.o.Plan, Progress: im.o.Progress, Skipped: im.o.Skipped}}
		return nil
	})
}

// wayIsFree refuses a destination below what is no folder, before anything is read.
func (im *importer) wayIsFree(rd merkle.Reader) error {
	for i, c := range im.o.Dest {
		if c != '/' {
			continue
		}
		e, err := commitEntry(rd, im.head.Commit, im.o.Dest[:i])
		if err != nil {
			return err
		}
		if e != nil && e.Kind != merkle.KindDir {
			return fmt.Errorf("import to %q: %q: %w", im.o.Dest, im.o.Dest[:i], ErrNotDir)
		}
	}
	return nil
}

// stagedRoot is the folder at the destination with what the import makes of it;
// nil when it makes nothing of it.
func (im *importer) stagedRoot(t tableReader) (*merkle.Entry, error) {
	b, err := t.Get(im.led.stage, im.led.stageKey(""))
	if errors.Is(err, lmdbstore.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the record of the import: %w", err)
	}
	rec, err := decodeStage(b)
	if err != nil {
		return nil, err
	}
	e, _ := rec.over(im.a.wt.root)
	e = e.Clone()
	return &e, nil
}

func (im *importer) commit(ctx context.Context) (merkle.Hash, *merkle.Commit, error) {
	q := Request{Branch: im.head.Branch, Parent: im.head.Commit, Meta: im.o.Meta, Changes: im.changes}
	if im.o.Dest == "" {
		err := im.repo.db.View(func(rd *lmdbstore.Reader) error {
			e, err := im.stagedRoot(rd)
			if err == nil && e != nil {
				q.Root = &RootMeta{Perm: e.Perm, Mtime: e.Mtime, Attrs: e.Attrs}
			}
			return err
		})
		if err != nil {
			return merkle.Hash{}, nil, err
		}
	}
	return im.repo.Commit(ctx, q)
}

// changes leads to the destination, making folders on the way that are not
// there, and goes on with what was read.
func (im *importer) changes(rd *lmdbstore.Reader) iter.Seq2[merkle.Change, error] {
	return func(yield func(merkle.Change, error) bool) {
		for i, c := range im.o.Dest + "/" {
			if c != '/' || im.o.Dest == "" {
				continue
			}
			change, ok, err := im.step(rd, im.o.Dest[:i])
			if (ok || err != nil) && !yield(change, err) {
				return
			}
		}
		for c, err := range im.led.changes(rd, "", im.o.Dest) {
			if !yield(c, err) {
				return
			}
		}
	}
}

// step is the change that a folder on the way to the destination needs, if any.
func (im *importer) step(rd *lmdbstore.Reader, path string) (c merkle.Change, ok bool, err error) {
	c = merkle.Change{Path: []byte(path), Op: merkle.OpMeta}
	if path == im.o.Dest {
		e, err := im.stagedRoot(rd)
		if err != nil || e == nil {
			return c, false, err
		}
		c.Entry = merkle.Entry{Kind: merkle.KindDir, Perm: e.Perm, Mtime: e.Mtime, Attrs: e.Attrs}
		return c, true, nil
	}
	e, err := commitEntry(rd, im.head.Commit, path)
	if err != nil || e != nil && e.Kind == merkle.KindDir {
		return c, false, err
	}
	if e != nil {
		return c, false, fmt.Errorf("import to %q: %q: %w", im.o.Dest, path, ErrNotDir)
	}
	c.Entry = merkle.Entry{Kind: merkle.KindDir, Perm: 0o755, Mtime: time.Now().UnixNano()}
	return c, true, nil
}

// forget clears what is to be committed and, with all, also what was read.
func (im *importer) forget(all bool) (err error) {
	rec := &recorder{repo: im.repo, led: im.led}
	rec.reset()
	if err := rec.sweep([]string{""}, all); err != nil {
		return fmt.Errorf("clear the record of the import: %w", err)
	}
	roots := [][]byte{im.led.stageKey("")}
	if all {
		roots = append(roots, im.led.statKey(""))
	}
	err = im.repo.db.Update(func(w *lmdbstore.Writer) error {
		for _, k := range roots {
			if _, err := w.Get(im.led.stage, k); errors.Is(err, lmdbstore.ErrNotFound) {
				continue // a transaction that changes nothing writes nothing
			}
			if err := w.Delete(im.led.stage, k); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("clear the record of the import: %w", err)
	}
	return nil
}
