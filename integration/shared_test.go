package integration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Another user's repository: a clear word, and no lock or file left behind.
func TestRepositoryOfAnotherUser(t *testing.T) {
	t.Parallel()
	r := smallRepo(t)
	other := *r
	other.as = asNobody(t)
	for _, args := range [][]string{{"log"}, {"status"}, {"add", "."}, {"commit", "-m", "x"}} {
		res := other.run(args...)
		checkRefused(t, res)
		if !containsFold(res.stderr, "permission") {
			t.Errorf("the message does not speak of permission: %v", res)
		}
	}
	r.wantClean()
	r.fsck()
}

// init --shared: members of the group read and write.
func TestSharedRepository(t *testing.T) {
	t.Parallel()
	user := asNobody(t)
	dir := filepath.Join(scratch(t), "R")
	r := initRepo(t, dir, "--shared")
	tool(t, "chgrp", "-R", "nogroup", dir)
	ok(t, os.Chmod(dir, 0o2775))
	write(t, r.path("by root"), "root")
	r.commit()
	other := &repo{t: t, dir: dir, as: user}
	other.must("log")
	other.must("status")
	write(t, r.path("by nobody"), "nobody")
	user.own(t, r.path("by nobody"))
	for round := range 3 {
		write(t, r.path("turns"), strings.Repeat("x", round+1))
		who := other
		if round%2 == 1 {
			who = r
		}
		who.must("add", ".")
		who.must("commit", "-m", "in turns")
	}
	r.wantClean()
	r.fsck()
	if got := len(r.log()); got != 4 {
		t.Errorf("%d commits, want 4", got)
	}
}
