//go:build linux

// Package benchkit measures: alternating runs of several ways to do the same
// work, what "cold" means for each, and one printed line for each figure with
// its limit and whether it was held.
//
// It owns the ext4 images that it mounts, each until Close; it never touches
// page caches, mounts or files that it was not handed, and never kills
// anything. Nothing in it locks; it is meant for one goroutine of a test.
package benchkit

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// Arm is one way to do the work that is measured.
type Arm struct {
	Name    string
	Prepare func() error // before each run, not measured; may be nil
	Run     func() error // measured
}

// Alternate runs every arm n times and returns the median wall time of each.
// The arms take turns, and every second round goes through them backwards, so
// that a machine that slows down or warms up does the same to all of them.
func Alternate(n int, arms ...Arm) ([]time.Duration, error) {
	times := make([][]time.Duration, len(arms))
	for round := range n {
		for i := range arms {
			if round%2 == 1 {
				i = len(arms) - 1 - i
			}
			d, err := arms[i].once()
			if err != nil {
				return nil, fmt.Errorf("%s, round %d: %w", arms[i].Name, round+1, err)
			}
			times[i] = append(times[i], d)
		}
	}
	medians := make([]time.Duration, len(arms))
	for i := range times {
		medians[i] = Median(times[i])
	}
	return medians, nil
}

// once prepares and measures one run.
func (a *Arm) once() (time.Duration, error) {
	if a.Prepare != nil {
		if err := a.Prepare(); err != nil {
			return 0, fmt.Errorf("prepare: %w", err)
		}
	}
	start := time.Now()
	err := a.Run()
	return time.Since(start), err
}

// Median returns the middle of some values, for an even number the mean of the
// two in the middle; 0 for none. The values stay in their order.
func Median[T ~int64 | ~float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(values))
	m := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[m]
	}
	return (sorted[m-1] + sorted[m]) / 2
}

// AtMost prints a figure beside its limit and fails the test when it is larger.
// unit follows both numbers: "s", "x ext4", "MiB".
func AtMost(t testing.TB, name string, measured, limit float64, unit string) {
	t.Helper()
	line(t, name, measured, "at most", limit, unit, measured <= limit)
}

// AtLeast prints a figure beside its limit and fails the test when it is
// smaller.
func AtLeast(t testing.TB, name string, measured, limit float64, unit string) {
	t.Helper()
	line(t, name, measured, "at least", limit, unit, measured >= limit)
}

// line prints one figure. A figure that is no number misses its limit, because
// it compares false with everything.
func line(t testing.TB, name string, measured float64, word string, limit float64, unit string, held bool) {
	t.Helper()
	verdict := "ok"
	if !held {
		verdict = "MISSED"
	}
	text := fmt.Sprintf("%-58s %10.4g %-8s %8s %8.4g %-8s %s", name, measured, unit, word, limit, unit, verdict)
	fmt.Fprintln(t.Output(), text)
	if !held {
		t.Errorf("%s: %.4g %s, limit %s %.4g %s", name, measured, unit, word, limit, unit)
	}
}
