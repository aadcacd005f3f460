//go:build !linux

package blobstore

import "os"

// Without the calls of Linux the store works by plain copies and fsync.

func fdatasync(f *os.File) error { return f.Sync() }

func (s *Store) syncFS(f *os.File) error { return s.syncFile(f) }

func syncFSReports() bool { return false }

func fineTimes(*os.File) bool { return true } // APFS counts nanoseconds

func adviseSequential(*os.File) {}

func clone(_, _ *os.File) (bool, error) { return false, nil }

func nextData(_ *os.File, off, size int64) (start, end int64) { return off, size }

func (s *Store) enableVerity(*os.File) error { return nil }

func linkOpen(*os.File, string) (bool, error) { return false, nil }

func takeLease(*os.File) lease { return leaseNone }

func leaseHeld(*os.File) bool { return false }

func dropLease(*os.File) {}
