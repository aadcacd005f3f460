package integration

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

func TestCase20KilledReaders(t *testing.T) {
	t.Parallel()
	r := newFastRepo(t)
	for i := range 100 {
		write(t, r.path(fmt.Sprint(i)), fmt.Sprint(i))
		if i%10 == 0 {
			r.commit()
		}
	}
	r.commit()
	killed := 0
	for i := range often(150) {
		p := start(t, boleBin, "-C", r.dir, "log")
		time.Sleep(time.Duration(rand.IntN(25)) * time.Millisecond)
		if !p.ended() {
			killed++
		}
		p.kill()
		<-p.waited
		if i == 20 { // a mount that dies keeps its slots as well
			m := r.mount("HEAD")
			_ = readTree(t, m.dir)
			m.kill()
			if res := bole(t, "umount", m.dir); res.code != 0 {
				t.Errorf("umount of a dead mount: %v", res)
			}
		}
	}
	t.Logf("%d of %d were killed before they ended", killed, often(150))
	r.wantClean()
	r.fsck()
}

func TestCase20ManyReadersAtOnce(t *testing.T) {
	r := newFastRepo(t)
	write(t, r.path("f"), "f")
	id := r.commit()
	var wg sync.WaitGroup
	results := make([]result, 160)
	for i := range results {
		wg.Go(func() { results[i] = run(t, command{args: []string{boleBin, "-C", r.dir, "log"}}) })
	}
	wg.Wait()
	for i, res := range results {
		if res.code != 0 || commitLine.FindStringSubmatch(res.stdout)[1] != id {
			t.Fatalf("log %d of 160: %v", i, res)
		}
	}
}

func TestCase20TwentyMountsAtOnce(t *testing.T) {
	r := newFastRepo(t)
	for i := range 200 {
		write(t, r.path(fmt.Sprint("d", i%10), fmt.Sprint(i)), fmt.Sprint(i))
	}
	r.commit()
	want := readTree(t, r.dir)
	mounts := make([]*mnt, 20)
	for i := range mounts {
		mounts[i] = r.mount("HEAD")
	}
	var wg sync.WaitGroup
	for _, m := range mounts {
		wg.Go(func() { sameTree(t, m.dir, want, readTree(t, m.dir), sameOpts{}) })
	}
	wg.Wait()
	list := listMounts(t)
	for _, m := range mounts {
		if findMount(list, m.dir) == nil {
			t.Errorf("mounts does not list %s", m.dir)
		}
		m.umount()
	}
	r.wantClean()
}
