package blobstore

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// A test binary that finds childEnv set is the child of a crash test and not a test run.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		crashChild(dir)
	}
	goleak.VerifyTestMain(m)
}
