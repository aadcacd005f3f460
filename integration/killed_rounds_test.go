//go:build !crash

package integration

// killRounds is how often each command is killed; the tag crash asks for more.
const killRounds = 20
