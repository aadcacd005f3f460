//go:build invariants

package blobstore

// invariant reports a broken promise inside the package. With the build tag `invariants` it panics.
func invariant(what string) { panic("blobstore: broken invariant: " + what) }
