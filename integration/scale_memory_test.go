//go:build scale

package integration

import (
	"fmt"
	"testing"
)

// The whole of case 38: 100,000 files, ten rounds, 200 MiB for the reader.
func TestScaleMemoryPerFile(t *testing.T) {
	const files = 100_000
	r := newRepo(t)
	for i := range files {
		write(t, r.path(fmt.Sprintf("d%03d", i%200), fmt.Sprint(i)), fmt.Sprint("content ", i))
	}
	r.commit()
	m := r.mount("HEAD")
	checkMemory(t, m, forgetRounds(t, m, files, 10, 200*mib))
	m.umount()
}
