// Package lint holds the house rules that no common tool knows, as tests: which
// package may import which, that everything exported is documented, that every
// decoder has a fuzz target, that files and functions stay short, and that no
// file names a place on somebody's machine.
//
// It owns the reading of this module's own sources and nothing else; no
// program imports it. It starts no goroutine and keeps nothing between calls.
package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// Tags are the build tags of the module's own files: with them, the rules see
// what an ordinary build leaves out.
const Tags = "invariants,crash,scale,bench"

// Package is what `go list -json` says about one package, cut to what the rules
// look at. All file names are relative to Dir.
type Package struct {
	ImportPath                       string
	Name                             string
	Dir                              string // absolute
	GoFiles, CgoFiles                []string
	TestGoFiles, XTestGoFiles        []string
	Imports, TestImports             []string
	XTestImports                     []string
	Deps                             []string // all that Imports lead to, the standard library included
	IgnoredGoFiles, IgnoredOtherFile []string
}

// Short returns the import path without the module's name: "merkle",
// "internal/lint".
func (p *Package) Short() string { return strings.TrimPrefix(p.ImportPath, Module+"/") }

// Module is the name of the module whose rules these are.
const Module = "bole"

// Packages lists all packages of the module that dir belongs to.
func Packages(dir string) ([]*Package, error) {
	cmd := exec.Command("go", "list", "-json", "-tags", Tags, Module+"/...")
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, bytes.TrimSpace(stderr.Bytes()))
	}
	var list []*Package
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(Package)
		if err := dec.Decode(p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		list = append(list, p)
	}
}

// Root returns the directory that holds go.mod, above the working directory.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	mod := strings.TrimSpace(string(out))
	if filepath.Base(mod) != "go.mod" {
		return "", fmt.Errorf("not inside a module: %q", mod)
	}
	return filepath.Dir(mod), nil
}
