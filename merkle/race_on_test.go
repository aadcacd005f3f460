//go:build race

package merkle

// raceEnabled: under the race detector sync.Pool gives things up at random, so
// what is allocated cannot be counted.
const raceEnabled = true
