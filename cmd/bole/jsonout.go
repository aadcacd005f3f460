package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"bole/merkle"
)

// encodeJSON writes v without escaping HTML and without a final newline.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encode output: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// printJSON writes one document.
func (a *app) printJSON(v any) error {
	b, err := encodeJSON(v)
	if err != nil {
		return err
	}
	_, err = a.out.Write(append(b, '\n'))
	return err
}

// jsonList writes one document that ends in a list, one element at a time, so
// that its length costs no memory: {…head, "key": [ … ], …tail}.
type jsonList struct {
	w     io.Writer
	count int
}

// newJSONList begins the document; head is a struct or map.
func (a *app) newJSONList(head any, key string) (*jsonList, error) {
	b, err := encodeJSON(head)
	if err != nil {
		return nil, err
	}
	b = bytes.TrimSuffix(b, []byte("}"))
	if len(b) > 1 {
		b = append(b, ',')
	}
	_, err = fmt.Fprintf(a.out, "%s%q:[", b, key)
	return &jsonList{w: a.out}, err
}

// add writes one element.
func (l *jsonList) add(v any) error {
	b, err := encodeJSON(v)
	if err != nil {
		return err
	}
	sep := ",\n"
	if l.count == 0 {
		sep = "\n"
	}
	l.count++
	_, err = fmt.Fprintf(l.w, "%s%s", sep, b)
	return err
}

// end closes the list and the document; tail is nil, a struct or a map.
func (l *jsonList) end(tail any) error {
	more := ""
	if tail != nil {
		b, err := encodeJSON(tail)
		if err != nil {
			return err
		}
		if b = bytes.Trim(b, "{}"); len(b) > 0 {
			more = "," + string(b)
		}
	}
	_, err := fmt.Fprintf(l.w, "]%s}\n", more)
	return err
}

// pathJSON is a path in JSON: path when it is UTF-8, else path_b64.
type pathJSON struct {
	Path    *string `json:"path,omitempty"`
	PathB64 []byte  `json:"path_b64,omitempty"`
}

func newPathJSON(p string) pathJSON {
	if utf8.ValidString(p) {
		return pathJSON{Path: &p}
	}
	return pathJSON{PathB64: []byte(p)}
}

// entryJSON is one entry of a commit.
type entryJSON struct {
	pathJSON
	Kind      string  `json:"kind"` // file, dir, symlink
	Mode      string  `json:"mode"` // octal permission bits
	Size      uint64  `json:"size"` // bytes; of a directory: all files below
	MtimeNS   int64   `json:"mtime_ns"`
	Hash      string  `json:"hash,omitempty"`
	Target    *string `json:"target,omitempty"`
	TargetB64 []byte  `json:"target_b64,omitempty"`
	Files     *uint64 `json:"files,omitempty"` // directories: all below
	Dirs      *uint64 `json:"dirs,omitempty"`
}

// newEntryJSON copies what it keeps of a lent entry; target is that of a symlink.
func newEntryJSON(path string, e *merkle.Entry, target []byte) entryJSON {
	j := entryJSON{pathJSON: newPathJSON(path), Kind: kindText(e.Kind), Mode: fmt.Sprintf("%04o", e.Perm),
		Size: e.Size, MtimeNS: e.Mtime}
	if !e.Hash.IsZero() {
		j.Hash = e.Hash.String()
	}
	switch e.Kind {
	case merkle.KindDir:
		files, dirs := e.Files, e.Dirs
		j.Files, j.Dirs = &files, &dirs
	case merkle.KindSymlink:
		if t := string(target); utf8.ValidString(t) {
			j.Target = &t
		} else {
			j.TargetB64 = []byte(t)
		}
	}
	return j
}

func kindText(k merkle.Kind) string {
	switch k {
	case merkle.KindFile:
		return "file"
	case merkle.KindDir:
		return "dir"
	case merkle.KindSymlink:
		return "symlink"
	}
	return fmt.Sprintf("kind %d", k)
}

// signatureJSON is who and when.
type signatureJSON struct {
	Name  string `json:"name"`
	Email string `json:"email"`
	Time  string `json:"time"` // RFC 3339 with nanoseconds
}

func newSignatureJSON(s merkle.Signature) signatureJSON {
	return signatureJSON{s.Name, s.Email, signatureTime(s).Format(time.RFC3339Nano)}
}

// commitJSON is one commit of a log.
type commitJSON struct {
	ID        string        `json:"commit"`
	Tree      string        `json:"tree"`
	Parents   []string      `json:"parents"`
	Author    signatureJSON `json:"author"`
	Committer signatureJSON `json:"committer"`
	Message   string        `json:"message"`
	Files     uint64        `json:"files"`
	Dirs      uint64        `json:"dirs"`
	Bytes     uint64        `json:"bytes"`
}

func newCommitJSON(id merkle.Hash, c *merkle.Commit) commitJSON {
	parents := []string{}
	for _, p := range c.Parents {
		parents = append(parents, p.String())
	}
	return commitJSON{ID: id.String(), Tree: c.Tree.String(), Parents: parents,
		Author: newSignatureJSON(c.Author), Committer: newSignatureJSON(c.Committer), Message: c.Message,
		Files: c.Totals.Files, Dirs: c.Totals.Dirs, Bytes: c.Totals.Bytes}
}
