package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/schollz/progressbar/v3"

	"bole/snapshot"
)

// bar is the one progress bar on standard error.
type bar struct {
	*progressbar.ProgressBar
	phase string
	bytes bool
}

// progress returns a callback that shows a bar, nil unless a person looks at
// standard error.
func (a *app) progress() func(snapshot.Progress) {
	if !isTerminal(os.Stderr) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	start := time.Now()
	return func(p snapshot.Progress) {
		if time.Since(start) >= barDelay {
			a.showProgress(p)
		}
	}
}

// barDelay keeps what is quick from flickering.
const barDelay = 300 * time.Millisecond

func (a *app) showProgress(p snapshot.Progress) {
	a.barMu.Lock()
	defer a.barMu.Unlock()
	total, done := int64(p.TotalBytes), int64(p.Bytes)
	if total == 0 {
		total, done = int64(p.TotalFiles), int64(p.Files)
	}
	if a.bar == nil || a.bar.phase != p.Phase || a.bar.bytes != (p.TotalBytes > 0) {
		if a.bar != nil {
			_ = a.bar.Clear() // a bar that cannot be drawn is no failure of the command
		}
		a.bar = newBar(a.err, p.Phase, total, p.TotalBytes > 0)
	}
	if total > 0 && a.bar.GetMax64() != total {
		a.bar.ChangeMax64(total)
	}
	if total == 0 {
		a.bar.Describe(fmt.Sprintf("%s: %s, %s", p.Phase, count(p.Files, "file"), humanize.IBytes(p.Bytes)))
	}
	_ = a.bar.Set64(done)
}

func newBar(w io.Writer, phase string, total int64, bytes bool) *bar {
	if total == 0 {
		total = -1 // unknown: a spinner
	}
	return &bar{phase: phase, bytes: bytes, ProgressBar: progressbar.NewOptions64(total,
		progressbar.OptionSetWriter(w),
		progressbar.OptionSetDescription(phase),
		progressbar.OptionShowBytes(bytes),
		progressbar.OptionUseIECUnits(true),
		progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond),
		progressbar.OptionClearOnFinish(),
		progressbar.OptionSetWidth(30),
	)}
}

// stopProgress takes the bar off the screen; the next callback draws a new one.
func (a *app) stopProgress() {
	a.barMu.Lock()
	defer a.barMu.Unlock()
	if a.bar != nil {
		_ = a.bar.Clear()
		a.bar = nil
	}
}
