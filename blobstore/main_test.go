package blobstore

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// A test binary that finds one of these set is the child of a test and not a test run.
func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		crashChild(dir)
	}
	if dir := os.Getenv(orderEnv); dir != "" {
		orderChild(dir)
	}
	goleak.VerifyTestMain(m)
}
