//go:build !invariants

package lmdbstore

// invariants is false in normal builds: lent bytes lie in the map itself.
const invariants = false
