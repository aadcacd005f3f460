//go:build race

package lmdbstore

// raceEnabled: the race detector makes each child process many times as slow.
const raceEnabled = true
