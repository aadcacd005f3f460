//go:build bench

package integration

import (
	"os"
	"testing"

	"bole/internal/benchkit"
)

// TestBenchCommands times the commands of the working directory on the
// benchmark tree of 5,220 directories and 52,200 files.
func TestBenchCommands(t *testing.T) {
	r := benchRepo(t)
	fresh := func() error {
		if err := os.RemoveAll(r.path(".bole")); err != nil {
			return err
		}
		return program(boleBin, "init", r.dir)()
	}
	added := func() error {
		if err := fresh(); err != nil {
			return err
		}
		return r.ofBole("add", ".")()
	}
	first := alternate(t, 3,
		benchkit.Arm{Name: "add", Prepare: fresh, Run: r.ofBole("add", ".")},
		benchkit.Arm{Name: "commit", Prepare: added, Run: r.ofBole("commit", "-m", "first")})
	benchkit.AtMost(t, "add of the benchmark tree", first[0], 3, "s")
	benchkit.AtMost(t, "commit of the benchmark tree", first[1], 0.15, "s")

	again := alternate(t, 2*rounds+1,
		benchkit.Arm{Name: "find -newer", Run: program("find", r.dir, "-newer", r.path(".bole", "config.toml"))},
		benchkit.Arm{Name: "add, nothing changed", Run: r.ofBole("add", ".")},
		benchkit.Arm{Name: "status, nothing changed", Run: r.ofBole("status")})
	benchkit.AtMost(t, "add, nothing changed", again[1]/again[0], 2, "x find")
	benchkit.AtMost(t, "status, nothing changed", again[2]/again[0], 2, "x find")
}
