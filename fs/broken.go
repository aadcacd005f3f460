//go:build !invariants

package fs

// broken is told of a state that cannot be; it panics under the build tag invariants.
func broken(string) {}

// invariants says whether broken panics.
const invariants = false
