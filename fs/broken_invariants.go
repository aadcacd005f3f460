//go:build invariants

package fs

func broken(what string) { panic("fs: " + what) }

// invariants says whether broken panics.
const invariants = true
