package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"testing"

	"bole/merkle"
)

// testApp is an app whose output can be read.
func testApp() (a *app, out, errOut *bytes.Buffer) {
	out, errOut = &bytes.Buffer{}, &bytes.Buffer{}
	return &app{out: bufio.NewWriter(out), err: errOut}, out, errOut
}

func TestJSONListIsOneDocument(t *testing.T) {
	for _, n := range []int{0, 1, 3} {
		for _, head := range []any{struct{}{}, map[string]int{"a": 1}} {
			for _, tail := range []any{nil, struct{}{}, map[string]string{"z": "}{"}} {
				a, out, _ := testApp()
				l, err := a.newJSONList(head, "list")
				if err != nil {
					t.Fatal(err)
				}
				for i := range n {
					if err := l.add(map[string]int{"i": i}); err != nil {
						t.Fatal(err)
					}
				}
				if err := l.end(tail); err != nil {
					t.Fatal(err)
				}
				a.out.Flush()
				checkList(t, out.Bytes(), n, head, tail)
			}
		}
	}
}

func checkList(t *testing.T, doc []byte, n int, head, tail any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(doc))
	var v map[string]any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, doc)
	}
	if err := d.Decode(new(any)); err != io.EOF {
		t.Errorf("more than one document: %s", doc)
	}
	if list, ok := v["list"].([]any); !ok || len(list) != n {
		t.Errorf("%d elements wanted: %s", n, doc)
	}
	if _, isMap := head.(map[string]int); isMap && v["a"] != 1.0 {
		t.Errorf("the head is lost: %s", doc)
	}
	if m, isMap := tail.(map[string]string); isMap && v["z"] != m["z"] {
		t.Errorf("the tail is lost: %s", doc)
	}
}

func TestEntryJSON(t *testing.T) {
	h := merkle.ContentHash([]byte("x"))
	for name, c := range map[string]struct {
		path   string
		e      merkle.Entry
		target string
		want   string
	}{
		"file": {"a&b", merkle.Entry{Kind: merkle.KindFile, Perm: 0o7, Size: 1, Mtime: -5, Hash: h}, "",
			`{"path":"a&b","kind":"file","mode":"0007","size":1,"mtime_ns":-5,"hash":"` + h.String() + `"}`},
		"name that is not UTF-8": {"\xff", merkle.Entry{Kind: merkle.KindFile}, "",
			`{"path_b64":"/w==","kind":"file","mode":"0000","size":0,"mtime_ns":0}`},
		"folder": {"", merkle.Entry{Kind: merkle.KindDir, Perm: 0o755, Size: 9, Files: 2}, "",
			`{"path":"","kind":"dir","mode":"0755","size":9,"mtime_ns":0,"files":2,"dirs":0}`},
		"link": {"l", merkle.Entry{Kind: merkle.KindSymlink, Perm: 0o777, Size: 1}, "t",
			`{"path":"l","kind":"symlink","mode":"0777","size":1,"mtime_ns":0,"target":"t"}`},
		"link to bytes": {"l", merkle.Entry{Kind: merkle.KindSymlink, Perm: 0o777, Size: 1}, "\x80",
			`{"path":"l","kind":"symlink","mode":"0777","size":1,"mtime_ns":0,"target_b64":"gA=="}`},
	} {
		got, err := encodeJSON(newEntryJSON(c.path, &c.e, []byte(c.target)))
		if err != nil || string(got) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s (%v)", name, got, c.want, err)
		}
	}
	if got := kindText(9); got != "kind 9" {
		t.Errorf("%s", got)
	}
}

func TestPrintJSONKeepsTheError(t *testing.T) {
	a, _, _ := testApp()
	if err := a.printJSON(func() {}); err == nil {
		t.Error("a function has no JSON")
	}
	if _, err := a.newJSONList(make(chan int), "x"); err == nil {
		t.Error("a channel has no JSON")
	}
	a.out = bufio.NewWriterSize(brokenWriter{}, 16)
	if err := a.printJSON(map[string]string{"long": "enough to pass the buffer"}); err == nil {
		t.Error("a failed write went unseen")
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, fmt.Errorf("broken") }
