package integration

import (
	"fmt"
	"sort"
	"strings"
	"testing"
)

// counters are a mount's requests by kind since it began.
type counters map[string]uint64

// mountEntry is one element of `bole mounts --json`.
type mountEntry map[string]any

// listMounts returns `bole mounts --json`.
func listMounts(t testing.TB) []mountEntry {
	t.Helper()
	res := bole(t, "mounts", "--json")
	if res.code != 0 {
		t.Fatalf("%v", res)
	}
	return parseJSON[struct{ Mounts []mountEntry }](t, res.stdout).Mounts
}

// find returns the entry of a mount point.
func findMount(list []mountEntry, dir string) mountEntry {
	for _, e := range list {
		if e["mountpoint"] == dir {
			return e
		}
	}
	return nil
}

// requests returns the counters of the mount.
func (m *mnt) requests() counters {
	m.t.Helper()
	e := findMount(listMounts(m.t), m.dir)
	if e == nil {
		m.t.Fatalf("mounts --json does not list %s", m.dir)
	}
	reqs, isObj := e["requests"].(map[string]any)
	if !isObj {
		m.t.Fatalf("no object requests in %v", e)
	}
	c := make(counters)
	for k := range reqs {
		c[strings.ToUpper(k)] = numberAt(m.t, map[string]any(e), "requests", k)
	}
	return c
}

// since returns what was counted after before, without the kinds that say
// nothing about a reader: FORGET (the kernel drops memory), and what asking
// for the counters costs.
func (c counters) since(before counters) counters {
	d := make(counters)
	for k, n := range c {
		switch k {
		case "FORGET", "BATCH_FORGET", "INTERRUPT":
			continue
		}
		if n > before[k] {
			d[k] = n - before[k]
		}
	}
	return d
}

func (c counters) total() (n uint64) {
	for _, v := range c {
		n += v
	}
	return n
}

func (c counters) String() string {
	keys := make([]string, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%s %d", k, c[k]))
	}
	return strings.Join(parts, ", ")
}

// during counts the requests that fn causes.
func (m *mnt) during(fn func()) counters {
	m.t.Helper()
	before := m.requests()
	fn()
	return m.requests().since(before)
}

// quietest runs fn n times and returns the fewest requests of one run.
func (m *mnt) quietest(n int, fn func()) counters {
	m.t.Helper()
	var best counters
	for i := range n {
		if c := m.during(fn); i == 0 || c.total() < best.total() {
			best = c
		}
	}
	return best
}
