package integration

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
)

// churn commits n times a new content of one small file and returns how many
// bytes the database grew by.
func (r *repo) churn(n int) int64 {
	r.t.Helper()
	before := r.dbSize()
	buf := make([]byte, 1000)
	for range n {
		for i := range buf {
			buf[i] = byte(rand.IntN(256))
		}
		ok(r.t, os.WriteFile(r.path("d0", "0"), buf, 0o644))
		r.must("add", "d0/0")
		r.must("commit", "-m", "x")
	}
	return r.dbSize() - before
}

func (r *repo) dbSize() int64 {
	r.t.Helper()
	st, err := os.Stat(r.path(".bole", "db", "data.mdb"))
	ok(r.t, err)
	return st.Size()
}

func TestCase21OldReaderMakesTheFileGrow(t *testing.T) {
	t.Parallel()
	commits := often(200)
	r := newFastRepo(t)
	for i := range 5000 {
		write(t, r.path(fmt.Sprint("d", i%100), fmt.Sprint(i)), fmt.Sprint(i))
	}
	c1 := r.commit()
	// Two copies, made alike, so that both databases begin with the same free pages.
	without := r.elsewhere(c1).churn(commits)
	r = r.elsewhere(c1)
	m := r.mount(c1)
	want := readTree(t, m.dir)
	with := r.churn(commits)
	t.Logf("growth over %d commits: %d KiB without a mount, %d KiB with one", commits, without/kib, with/kib)
	// Short transactions: one tenth and 256 KiB are room for chance.
	if with > without+without/10+256*kib {
		t.Errorf("the mount makes the database grow: %d bytes against %d", with, without)
	}
	sameTree(t, "the mount after all that", want, readTree(t, m.dir), sameOpts{})

	m.kill()
	killed := r.churn(commits / 4)
	if limit := without/4 + without/20 + 512*kib; killed > limit {
		t.Errorf("a killed mount makes the database grow: %d bytes in %d commits, limit %d", killed, commits/4, limit)
	}
	if res := bole(t, "umount", m.dir); res.code != 0 {
		t.Errorf("umount of a dead mount: %v", res)
	}
	r.fsck()
}
