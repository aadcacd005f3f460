//go:build !invariants

package blobstore

// invariant reports a broken promise inside the package. It panics only under the build tag
// `invariants`.
func invariant(string) {}
