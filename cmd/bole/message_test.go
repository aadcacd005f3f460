package main

import (
	"errors"
	"testing"
	"time"

	"bole/merkle"
	"bole/snapshot"
)

func TestCleanMessage(t *testing.T) {
	for in, want := range map[string]string{
		"":                             "",
		" \n\t\n":                      "",
		"one":                          "one",
		"one \t\r\n":                   "one",
		"\n\none\n\n\n\ntwo\n  three ": "one\n\ntwo\n  three",
	} {
		if got := cleanMessage(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestMessageSources(t *testing.T) {
	var wrong *usageError
	if _, err := (commitFlags{messages: []string{"a"}, file: "b"}).message(); !errors.As(err, &wrong) {
		t.Errorf("two messages: %v", err)
	}
	if _, err := (commitFlags{messages: []string{" "}}).message(); !errors.Is(err, errEmptyMessage) {
		t.Errorf("an empty message: %v", err)
	}
	if m, err := (commitFlags{messages: []string{"a", "b\n", ""}}).message(); m != "a\n\nb" || err != nil {
		t.Errorf("paragraphs: %q, %v", m, err)
	}
}

func TestParseDate(t *testing.T) {
	zone := time.Local
	time.Local = time.FixedZone("", -3600)
	defer func() { time.Local = zone }()
	for in, want := range map[string]string{
		"@0":                            "1970-01-01T00:00:00Z",
		"@-1":                           "1969-12-31T23:59:59Z",
		"@99999999999":                  "5138-11-16T09:46:39Z",
		"2001-02-03T04:05:06Z":          "2001-02-03T04:05:06Z",
		"2001-02-03T04:05:06.7+02:00":   "2001-02-03T02:05:06.7Z",
		"2001-02-03 04:05:06.7+02:00":   "2001-02-03T02:05:06.7Z",
		"2001-02-03 04:05:06 +0130":     "2001-02-03T02:35:06Z",
		"2001-02-03T04:05:06":           "2001-02-03T05:05:06Z",
		"2001-02-03 04:05:06":           "2001-02-03T05:05:06Z",
		"2001-02-03":                    "2001-02-03T01:00:00Z",
		"2001-02-03T04:05:06.123456789": "2001-02-03T05:05:06.123456789Z",
	} {
		got, err := parseDate(in)
		if err != nil || got.UTC().Format(time.RFC3339Nano) != want {
			t.Errorf("%q is %v (%v), want %s", in, got.UTC().Format(time.RFC3339Nano), err, want)
		}
	}
	for _, in := range []string{"", "yesterday", "@", "@1x", "@ 1", "@+1", "1", "2001-13-01"} {
		var wrong *usageError
		if got, err := parseDate(in); !errors.As(err, &wrong) {
			t.Errorf("%q is %v, %v", in, got, err)
		}
	}
}

func file(content string, perm uint16) *merkle.Entry {
	return &merkle.Entry{Kind: merkle.KindFile, Perm: perm, Size: uint64(len(content)), Hash: merkle.ContentHash([]byte(content))}
}

func TestCompose(t *testing.T) {
	dir := &merkle.Entry{Kind: merkle.KindDir, Perm: 0o755}
	unread := &merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Size: 3}
	between := []snapshot.PathChange{
		{Path: "back", Old: file("one", 0o644), New: file("longer", 0o644)},
		{Path: "d/x", Old: file("x", 0o644), New: file("y", 0o644)},
		{Path: "new/f", New: file("f", 0o644)},
		{Path: "twice", Old: file("1", 0o644), New: file("2", 0o644)},
		{Path: "was/dir", Old: file("w", 0o644)},
	}
	staged := []snapshot.PathChange{
		{Path: "added", New: file("a", 0o644)},
		{Path: "mode", Old: file("m", 0o644), New: file("m", 0o755)},
		{Path: "twice", Old: file("2", 0o644), New: file("3", 0o644)},
	}
	unstaged := []snapshot.PathChange{
		{Path: "added", Old: file("a", 0o644)},
		{Path: "back", Old: file("longer", 0o644), New: unread},
		{Path: "d", Old: dir},
		{Path: "link", Old: file("l", 0o644), New: &merkle.Entry{Kind: merkle.KindSymlink, Perm: 0o777, Target: []byte("t")}},
		{Path: "new", Old: dir},
		{Path: "same", Old: file("old", 0o644), New: &merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Size: 3}},
	}
	asked := map[string]bool{}
	hash := func(path string) (merkle.Hash, error) {
		asked[path] = true
		return merkle.ContentHash([]byte("one")), nil
	}
	got, err := compose(hash, between, staged, unstaged)
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for _, c := range got {
		text += c.Kind.String() + " " + c.Path + "\n"
	}
	// "back" is again what the commit had; what lies in a folder that is gone is not listed.
	want := "D d\nT link\nM mode\nD new\nM same\nM twice\nD was/dir\n"
	if text != want {
		t.Errorf("got\n%swant\n%s", text, want)
	}
	if len(asked) != 2 || !asked["back"] || !asked["same"] {
		t.Errorf("hashed %v, want back and same", asked)
	}
	fail := errors.New("gone")
	if _, err := compose(func(string) (merkle.Hash, error) { return merkle.Hash{}, fail }, unstaged); !errors.Is(err, fail) {
		t.Errorf("an unreadable file: %v", err)
	}
}

func TestCounts(t *testing.T) {
	dir := func(mtime int64, perm uint16) *merkle.Entry {
		return &merkle.Entry{Kind: merkle.KindDir, Perm: perm, Mtime: mtime}
	}
	var n counts
	for _, c := range []snapshot.PathChange{
		{Kind: snapshot.Added, New: file("a", 0)}, {Kind: snapshot.Deleted, Old: file("a", 0)},
		{Kind: snapshot.TypeChanged, Old: dir(1, 0o755), New: file("a", 0)},
		{Kind: snapshot.Modified, Old: dir(1, 0o755), New: dir(2, 0o755)}, // only its time
		{Kind: snapshot.Modified, Old: dir(1, 0o755), New: dir(1, 0o700)},
		{Kind: snapshot.Modified, Old: file("a", 0), New: file("b", 0)},
	} {
		if err := n.add(c); err != nil {
			t.Fatal(err)
		}
	}
	if want := (countsJSON{1, 2, 1, 1}); n.json() != want {
		t.Errorf("%+v, want %+v", n.json(), want)
	}
	if n.String() != "1 added, 2 modified, 1 deleted, 1 changed type" || (counts{}).String() != "no changes" {
		t.Errorf("%s; %s", n, counts{})
	}
}
