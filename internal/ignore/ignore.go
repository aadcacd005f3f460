// Package ignore decides which untracked names a working directory leaves out,
// with the semantics of git's .gitignore files (gitignore(5)) for files named
// .boleignore.
//
// It owns the parsing of pattern files and the matching of paths against
// them. It never touches a disk: whoever walks the tree reads the files and
// pushes their contents. It never decides about tracked files (they stay
// tracked whatever the patterns say), and it does not walk: "a file cannot be
// included again when a directory above it is left out" is true because the
// walker does not descend into an ignored directory.
//
// A Stack never changes after it was made, so any number of goroutines may use
// one at once without a lock; it lives as long as somebody refers to it and
// keeps its own copy of the patterns.
//
// Names and patterns are bytes: nothing is assumed about their encoding, case
// always matters, and strings are only used because they cannot change.
package ignore

import (
	"bytes"
	"strings"
)

// FileName is the name of the pattern files, one per directory at most.
const FileName = ".boleignore"

// defaults holds the names that desktops and network file systems leave behind
// in every folder they show. They rank below every pattern file, so that a
// line "!Thumbs.db" in a .boleignore takes one back.
const defaults = `.DS_Store
._*
.AppleDouble/
.LSOverride
.Spotlight-V100/
.DocumentRevisions-V100/
.TemporaryItems/
.Trashes/
.fseventsd/
.apdisk
.Trash-*/
.directory
.~lock.*#
.fuse_hidden*
.nfs*
Thumbs.db
desktop.ini
$RECYCLE.BIN/
`

// Stack is the list of patterns that are in force in one directory: those of
// the directory itself, then those of each directory above it, then the
// built-in ones. The zero value and nil ignore nothing.
type Stack struct {
	parent *Stack
	dir    string // relative to the root, "" for the root
	rules  []rule // in the order of the file; the last that matches decides
}

// Defaults returns a stack that holds the built-in list alone: the files that
// macOS, Windows, Linux desktops, office programs, NFS and FUSE leave behind.
func Defaults() *Stack {
	return (*Stack)(nil).Push("", []byte(defaults))
}

// Push returns a stack with the patterns of one more file in front. dir is the
// directory that holds the file, relative to the root without slashes at
// either end ("" is the root); it must lie below the directories pushed
// before. contents is the whole file, of which nothing is kept. Lines that can
// match nothing (blank, comments, an unclosed bracket) are dropped without a
// word, as git does.
func (s *Stack) Push(dir string, contents []byte) *Stack {
	contents = bytes.TrimPrefix(contents, []byte("\xef\xbb\xbf"))
	var rules []rule
	for len(contents) > 0 {
		var line []byte
		line, contents, _ = bytes.Cut(contents, []byte("\n"))
		if r, ok := parseLine(string(line)); ok {
			rules = append(rules, r)
		}
	}
	if rules == nil && s != nil {
		return s
	}
	return &Stack{parent: s, dir: dir, rules: rules}
}

// Ignored reports whether the patterns leave out path, which is relative to
// the root without slashes at either end. isDir is true for a directory only,
// not for a symbolic link to one. The answer is about this name alone: for
// what lies below an ignored directory the caller must not ask. It allocates
// nothing.
func (s *Stack) Ignored(path string, isDir bool) bool {
	name := path[strings.LastIndexByte(path, '/')+1:]
	for ; s != nil; s = s.parent {
		rel, ok := below(s.dir, path)
		if !ok {
			continue
		}
		for i := len(s.rules) - 1; i >= 0; i-- {
			r := &s.rules[i]
			if r.dirOnly && !isDir {
				continue
			}
			if r.match(rel, name) {
				return !r.negated
			}
		}
	}
	return false
}

// below cuts dir from the front of path; ok is false where path does not lie
// below dir.
func below(dir, path string) (rel string, ok bool) {
	if dir == "" {
		return path, true
	}
	if len(path) > len(dir) && path[len(dir)] == '/' && path[:len(dir)] == dir {
		return path[len(dir)+1:], true
	}
	return "", false
}
