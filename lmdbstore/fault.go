package lmdbstore

// #include "fault.h"
import "C"

import (
	"errors"
	"runtime"
	"runtime/debug"
	"unsafe"

	"github.com/bmatsuo/lmdb-go/lmdb"
)

// envPointer returns the MDB_env behind env. It is the first and only field
// of lmdb.Env (lmdb-go v1.8.0), which exports no way to reach it.
func envPointer(env *lmdb.Env) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(env))
}

// watch makes LMDB's failed assertions end the process with one sentence
// instead of an abort with a trace. Called once for a new environment.
func watch(env *lmdb.Env) { C.bole_watch_env(envPointer(env)) }

// lmdbMagic stands 16 bytes (the page header) into the first page of a
// database file (mdb.c, MDB_MAGIC).
const lmdbMagic = 0xBEEFC0DE

// errUnknownLMDB means that mappedAt did not find what it looked for.
var errUnknownLMDB = errors.New("cannot find the database's memory map: the LMDB library is not the one this program was written for")

// mappedAt returns where LMDB has mapped data.mdb (0) or lock.mdb (1), or nil.
func mappedAt(env *lmdb.Env, which int) unsafe.Pointer {
	return C.bole_map_address(envPointer(env), C.int(which))
}

// mapAddress returns where the environment's map begins.
func mapAddress(env *lmdb.Env, pageSize int) (unsafe.Pointer, error) {
	base := mappedAt(env, 0)
	if base == nil || uintptr(base)%uintptr(pageSize) != 0 || *(*uint32)(unsafe.Add(base, pageHeader)) != lmdbMagic {
		return nil, errUnknownLMDB
	}
	return base, nil
}

// addressed is what the runtime panics with when Go code touched memory that
// could not be read while debug.SetPanicOnFault was on.
type addressed interface{ Addr() uintptr }

// guard turns on SetPanicOnFault for this goroutine and returns what release
// needs to put it back. Between the two a page of the map that the disk cannot
// give is a panic that release turns into ErrPageUnreadable.
func guard() bool { return debug.SetPanicOnFault(true) }

// release ends what guard began. Given a recovered panic value it returns
// ErrPageUnreadable when that was a fault inside the map; every other panic
// goes on.
func (s *Store) release(old bool, panicked any) error {
	debug.SetPanicOnFault(old)
	if panicked == nil {
		return nil
	}
	if e, ok := panicked.(runtime.Error); ok {
		if a, ok := e.(addressed); ok && a.Addr()-uintptr(s.base) < s.mapSize {
			return s.unreadable("reading lent bytes")
		}
	}
	panic(panicked)
}
