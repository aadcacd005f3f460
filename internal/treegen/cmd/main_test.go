package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestRun(t *testing.T) {
	dir := t.TempDir()
	if err := run([]string{"flat", "12", "9", filepath.Join(dir, "flat")}); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(dir, "flat", "*"))
	if err != nil || len(files) != 12 {
		t.Errorf("%d files, want 12 (%v)", len(files), err)
	}
	if info, err := os.Stat(files[0]); err != nil || info.Size() != 9 {
		t.Errorf("a file of %d bytes, want 9 (%v)", info.Size(), err)
	}
	if err := run([]string{"span", "1000", "2000", filepath.Join(dir, "span")}); err != nil {
		t.Fatal(err)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, "span", "part_000", "001", "*")); len(files) != 1000 {
		t.Errorf("%d files in the span, want 1000", len(files))
	}
	for _, args := range [][]string{nil, {"bench"}, {"flat", "1", dir}, {"flat", "x", "1", dir}, {"flat", "-1", "1", dir}, {"tree", dir}, {"odd", dir}, {"bench", "a", "b"}} {
		if err := run(args); err == nil {
			t.Errorf("run(%q) made something", args)
		}
	}
}
