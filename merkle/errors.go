package merkle

import (
	"errors"
	"fmt"
)

var (
	// ErrCorrupt is matched by every CorruptError: bytes that are not the
	// canonical encoding of a node, or nodes that contradict each other.
	ErrCorrupt = errors.New("corrupt node")

	// ErrMissing is matched by every MissingError: a node that is referred
	// to is not in the store.
	ErrMissing = errors.New("missing node")

	// ErrNotFound means that a directory has no entry of that name, or none
	// at that ordinal.
	ErrNotFound = errors.New("no such entry")

	// ErrUnsorted means that changes were not given in path order, or two
	// for one path.
	ErrUnsorted = errors.New("changes out of path order")

	// ErrNoParent means that a change lies below a directory that does not
	// exist.
	ErrNoParent = errors.New("no such directory")

	// ErrBadName means that a name cannot stand in a tree; see CheckName.
	ErrBadName = errors.New("invalid name")

	// ErrBadEntry means that the fields of an entry contradict each other
	// or are out of range.
	ErrBadEntry = errors.New("invalid entry")

	// ErrBadCommit means that a commit cannot be encoded: a field is out of
	// range, or one is missing.
	ErrBadCommit = errors.New("invalid commit")

	// ErrBadAttr means that an extended attribute cannot be recorded, by its
	// name, its size, or because there are two of one name.
	ErrBadAttr = errors.New("invalid extended attribute")

	// ErrTooDeep means that directories are nested more than MaxDepth deep.
	ErrTooDeep = errors.New("directories nested too deep")

	// ErrTooLarge means that a total of sizes or counts exceeds 64 bits, or
	// that a node would exceed MaxNode.
	ErrTooLarge = errors.New("too large")
)

// CorruptError says which node is corrupt, and how. It matches ErrCorrupt.
type CorruptError struct {
	Node   Hash   // the name under which the bytes were found
	Reason string // what is wrong with them
}

// Error holds the name of the node in hexadecimal.
func (e *CorruptError) Error() string {
	return "node " + e.Node.String() + " is corrupt: " + e.Reason
}

// Is makes a CorruptError match ErrCorrupt.
func (e *CorruptError) Is(target error) bool { return target == ErrCorrupt }

// MissingError says which node is missing. It matches ErrMissing.
type MissingError struct {
	Node Hash // the name that was asked for
}

// Error holds the name of the node in hexadecimal.
func (e *MissingError) Error() string { return "node " + e.Node.String() + " is missing" }

// Is makes a MissingError match ErrMissing.
func (e *MissingError) Is(target error) bool { return target == ErrMissing }

// faultError turns what sum found in records made by Apply into an error.
func faultError(fault string) error { return fmt.Errorf("%w: %s", ErrTooLarge, fault) }

func corrupt(h *Hash, reason string) error {
	e := &CorruptError{Reason: reason}
	if h != nil {
		e.Node = *h
	}
	return e
}
