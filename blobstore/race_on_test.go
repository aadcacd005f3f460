//go:build race

package blobstore

const raceEnabled = true
