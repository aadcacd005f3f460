//go:build scale

package integration

import (
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"bole/internal/benchkit"
	"bole/lmdbstore"
	"bole/merkle"
	"bole/snapshot"
)

// TestScaleTree grows a tree to 10,000,000 files with empty contents, a
// million a commit, in a process of its own whose memory is measured.
func TestScaleTree(t *testing.T) {
	if dir := os.Getenv("BOLE_GROW"); dir != "" {
		grow(t, dir)
		return
	}
	r := newRepo(t)
	self, err := os.Executable()
	ok(t, err)
	cmd := exec.Command(self, "-test.run=^TestScaleTree$", "-test.v", "-test.timeout=1h")
	cmd.Env = append(os.Environ(), "BOLE_GROW="+r.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("grow: %v\n%s", err, out)
	}
	var rates []float64
	for line := range strings.Lines(string(out)) {
		if text, found := strings.CutPrefix(strings.TrimSpace(line), "grew: "); found {
			seconds, err := strconv.ParseFloat(text, 64)
			ok(t, err)
			rates = append(rates, million/seconds)
			t.Logf("million %d: %.0f entries/s", len(rates), rates[len(rates)-1])
		}
	}
	if len(rates) != 10 {
		t.Fatalf("%d of 10 steps:\n%s", len(rates), out)
	}
	benchkit.AtLeast(t, "rate of the last million of 10,000,000", rates[9]/rates[0], 0.5, "x first")
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	benchkit.AtMost(t, "memory while growing to 10,000,000", float64(usage.Maxrss)/1024, 300, "MiB")
	v := r.view("HEAD")
	ok(t, v.fresh(true))
	start := time.Now()
	entries := entriesOf(t, v.dir+"/000/000")
	if len(entries) != 1000 {
		t.Errorf("%d entries where 1000 were put", len(entries))
	}
	t.Logf("first listing: %v", time.Since(start))
	rss, err := benchkit.RssAnon(v.m.pid)
	ok(t, err)
	benchkit.AtMost(t, "daemon's RssAnon on 10,000,000 entries", float64(rss)/(1<<20), 128, "MiB")
}

// grow adds ten times a million files, spread over all directories so that
// every step touches old ones too.
func grow(t *testing.T, dir string) {
	r, err := snapshot.Open(dir, snapshot.OpenOptions{})
	ok(t, err)
	defer func() { ok(t, r.Close()) }()
	empty := merkle.ContentHash(nil)
	var parent merkle.Hash
	for step := range 10 {
		start := time.Now()
		parent, _, err = r.Commit(context.Background(), snapshot.Request{Branch: "main", Parent: parent,
			Changes: growth(step, empty), Pages: 100_000, Meta: snapshot.Meta{Message: fmt.Sprint("million ", step+1)}})
		ok(t, err)
		fmt.Printf("grew: %.3f\n", time.Since(start).Seconds())
	}
}

// growth is a million files in 10 new directories of 100 directories of 1,000
// files each.
func growth(step int, content merkle.Hash) func(*lmdbstore.Reader) iter.Seq2[merkle.Change, error] {
	file := merkle.Entry{Kind: merkle.KindFile, Perm: 0o644, Mtime: 1, Hash: content}
	folder := merkle.Entry{Kind: merkle.KindDir, Perm: 0o755, Mtime: 1}
	return func(*lmdbstore.Reader) iter.Seq2[merkle.Change, error] {
		return func(yield func(merkle.Change, error) bool) {
			var path []byte
			put := func(op merkle.Op, e merkle.Entry, format string, args ...any) bool {
				path = fmt.Appendf(path[:0], format, args...)
				return yield(merkle.Change{Path: path, Op: op, Entry: e}, nil)
			}
			for a := range 10 {
				if !put(merkle.OpMeta, folder, "%03d", a) {
					return
				}
				for b := range 100 {
					if !put(merkle.OpMeta, folder, "%03d/%03d", a, step*100+b) {
						return
					}
					for c := range 1000 {
						if !put(merkle.OpSet, file, "%03d/%03d/%06d", a, step*100+b, c) {
							return
						}
					}
				}
			}
		}
	}
}
