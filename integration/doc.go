// Package integration tests the built program from the outside: it runs the
// binary bole, mounts commits with the real kernel, and compares what comes
// back with what went in. It holds no code that the product uses.
//
// The tests need Linux, /dev/fuse and root (to make mounts, other users and
// memory cgroups). What a machine cannot offer is skipped by name.
//
// Environment: BOLE_BIN names a binary to test in place of a fresh build;
// BOLE_RACE=1 builds with the race detector, and repeats long loops less often.
//
// Build tags: crash (longer kill loops), scale (big trees and files, with the
// limits printed beside the figures), bench (times and ratios).
//
// The package owns every mount and process that it starts. Each test cleans up
// its own; TestMain fails the run when one is left.
package integration
