package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fatih/color"

	"bole/merkle"
	"bole/snapshot"
)

func TestPlanIsSaid(t *testing.T) {
	const mib = 1 << 20
	for name, c := range map[string]struct {
		plan snapshot.Plan
		want string // "" when there is nothing to say to a program
	}{
		"nothing":         {snapshot.Plan{Free: mib}, ""},
		"little":          {snapshot.Plan{Files: 3, Bytes: mib, Free: 2 * mib}, ""},
		"much":            {snapshot.Plan{Files: 2000, Bytes: 2048 * mib, Free: 4096 * mib}, "bole: 2,000 files, 2.0 GiB to do; 4.0 GiB free\n"},
		"does not fit":    {snapshot.Plan{Files: 1, Bytes: 2 * mib, Free: mib}, "bole: warning: 1 file, 2.0 MiB to do, but only 1.0 MiB free: it may not fit\n"},
		"just fits":       {snapshot.Plan{Files: 1, Bytes: mib, Free: mib}, ""},
		"nothing is free": {snapshot.Plan{}, ""},
	} {
		a, _, errOut := testApp()
		a.sayPlan("do")(c.plan)
		if errOut.String() != c.want {
			t.Errorf("%s: %q, want %q", name, errOut, c.want)
		}
	}
}

func TestPaint(t *testing.T) {
	plain := color.NoColor
	defer func() { color.NoColor = plain }()
	for want, e := range map[string]merkle.Entry{
		"n":                     {Kind: merkle.KindFile, Perm: 0o644},
		"\x1b[34;1mn\x1b[0;22m": {Kind: merkle.KindDir, Perm: 0o755},
		"\x1b[36mn\x1b[0m":      {Kind: merkle.KindSymlink, Perm: 0o777},
		"\x1b[32;1mn\x1b[0;22m": {Kind: merkle.KindFile, Perm: 0o755},
	} {
		color.NoColor = false
		if got := paint(&e, "n"); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		color.NoColor = true
		if got := paint(&e, "n"); got != "n" {
			t.Errorf("without colour: %q", got)
		}
	}
}

// A bar is replaced when the work enters another phase, and a message never
// lands in the middle of one.
func TestProgress(t *testing.T) {
	a, _, errOut := testApp()
	a.showProgress(snapshot.Progress{Phase: "look", Files: 3, Bytes: 2048})
	if got := errOut.String(); !strings.Contains(got, "look: 3 files, 2.0 KiB") {
		t.Errorf("without totals: %q", got)
	}
	first := a.bar
	a.showProgress(snapshot.Progress{Phase: "store", Files: 1, TotalFiles: 4})
	if a.bar == first || !strings.Contains(errOut.String(), "25%") {
		t.Errorf("by files: %q", errOut)
	}
	a.showProgress(snapshot.Progress{Phase: "store", Bytes: 1 << 20, TotalBytes: 2 << 20})
	if got := errOut.String(); !strings.Contains(got, "50%") || !strings.Contains(got, "MiB") {
		t.Errorf("by bytes: %q", got)
	}
	a.showProgress(snapshot.Progress{Phase: "store", Bytes: 1 << 20, TotalBytes: 4 << 20})
	if a.bar.GetMax64() != 4<<20 {
		t.Errorf("the total stays %d", a.bar.GetMax64())
	}
	errOut.Reset()
	a.warnf("a word")
	if got := errOut.String(); !strings.HasSuffix(got, "\rbole: a word\n") || a.bar != nil {
		t.Errorf("beside a bar: %q", got)
	}
	a.stopProgress() // nothing is shown: nothing happens
	if a.progress() != nil {
		t.Error("a bar without a terminal")
	}
}

func TestKindOfRepository(t *testing.T) {
	for want, i := range map[string]snapshot.Info{
		"": {}, " (bare)": {Bare: true}, " (shared)": {Shared: true}, " (bare, shared)": {Bare: true, Shared: true},
	} {
		if got := kindOfRepository(&i); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestHeadLine(t *testing.T) {
	id := merkle.ContentHash(nil)
	for want, h := range map[string]snapshot.Head{
		"on branch main, no commit yet":                      {Branch: "main"},
		fmt.Sprintf("on branch a/b at %s", shortID(id)):      {Branch: "a/b", Commit: id},
		fmt.Sprintf("on no branch, at %s", id.String()[:12]): {Commit: id},
	} {
		if got := headLine(h); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
