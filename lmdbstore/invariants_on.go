//go:build invariants

package lmdbstore

// invariants is true in builds with the tag of that name: lent bytes are
// copies that are overwritten when they die, and misuse panics.
const invariants = true
