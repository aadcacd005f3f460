//go:build crash

package integration

const killRounds = 200
