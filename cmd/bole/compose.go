package main

import (
	"fmt"
	"io"
	"os"
	"sort"
	"strings"

	"bole/merkle"
	"bole/snapshot"
)

// compose makes one list of changes from several that follow one another: the
// old side of a path is that of its first change, the new side that of its last.
// A path that ends as it began is left out, and so is what lies below a folder
// that the last lists say is gone, because it stands for everything in it. hash
// names the content of a file in the working directory: the last list does not
// hold it where the size alone told that the file differs.
func compose(hash func(path string) (merkle.Hash, error), lists ...[]snapshot.PathChange) ([]snapshot.PathChange, error) {
	all := map[string]snapshot.PathChange{}
	gone := map[string]bool{}
	for _, list := range lists {
		for _, c := range list {
			if before, ok := all[c.Path]; ok {
				c.Old = before.Old
			}
			all[c.Path] = c
			gone[c.Path] = c.New == nil || c.New.Kind != merkle.KindDir
		}
	}
	var out []snapshot.PathChange
	for path, c := range all {
		if belowGone(gone, path) {
			continue
		}
		if unread(c) {
			h, err := hash(path)
			if err != nil {
				return nil, err
			}
			now := *c.New // the caller's stays as it is
			now.Hash = h
			c.New = &now
		}
		if sameSide(c.Old, c.New) {
			continue
		}
		c.Kind = kindOf(c.Old, c.New)
		out = append(out, c)
	}
	sort.Slice(out, func(i, j int) bool { return merkle.ComparePaths([]byte(out[i].Path), []byte(out[j].Path)) < 0 })
	return out, nil
}

// unread says whether only the content can tell that a file is not what it was.
func unread(c snapshot.PathChange) bool {
	a, b := c.Old, c.New
	return a != nil && b != nil && a.Kind == merkle.KindFile && b.Kind == merkle.KindFile &&
		b.Hash.IsZero() && a.Size == b.Size && a.Perm == b.Perm
}

// belowGone says whether a folder above path is no folder any more.
func belowGone(gone map[string]bool, path string) bool {
	for i := strings.LastIndexByte(path, '/'); i > 0; i = strings.LastIndexByte(path[:i], '/') {
		if gone[path[:i]] {
			return true
		}
	}
	return false
}

// sameSide compares what counts in a working directory.
func sameSide(a, b *merkle.Entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.Kind != b.Kind || a.Perm != b.Perm || a.Attrs != b.Attrs {
		return false
	}
	switch a.Kind {
	case merkle.KindDir:
		return true
	case merkle.KindFile:
		return a.Hash == b.Hash && !a.Hash.IsZero()
	}
	return a.Hash == b.Hash && string(a.Target) == string(b.Target)
}

func kindOf(old, now *merkle.Entry) snapshot.ChangeKind {
	switch {
	case old == nil:
		return snapshot.Added
	case now == nil:
		return snapshot.Deleted
	case old.Kind != now.Kind:
		return snapshot.TypeChanged
	}
	return snapshot.Modified
}

// workHash returns a function that names the content of a file below root. No
// link leads it out of there.
func workHash(root *os.Root) func(path string) (merkle.Hash, error) {
	return func(path string) (merkle.Hash, error) {
		f, err := root.Open(path)
		if err != nil {
			return merkle.Hash{}, fmt.Errorf("compare: %w", err)
		}
		defer f.Close()
		h := merkle.NewContentHasher()
		if _, err := io.Copy(h, f); err != nil {
			return merkle.Hash{}, fmt.Errorf("compare: %w", err)
		}
		return h.Sum(), nil
	}
}
