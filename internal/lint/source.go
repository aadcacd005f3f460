package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
)

// Source is one parsed Go file.
type Source struct {
	Path string // absolute
	Test bool   // a _test.go file
	File *ast.File
}

// Parse reads all Go files of a package, tests included. Positions belong to
// fset.
func (p *Package) Parse(fset *token.FileSet) ([]Source, error) {
	var list []Source
	add := func(names []string, test bool) error {
		for _, name := range names {
			path := filepath.Join(p.Dir, name)
			f, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return fmt.Errorf("parse: %w", err)
			}
			list = append(list, Source{Path: path, Test: test, File: f})
		}
		return nil
	}
	for _, group := range [][]string{p.GoFiles, p.CgoFiles} {
		if err := add(group, false); err != nil {
			return nil, err
		}
	}
	for _, group := range [][]string{p.TestGoFiles, p.XTestGoFiles} {
		if err := add(group, true); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// FuncName returns the name by which a function is listed: "Name" or
// "Type.Name".
func FuncName(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	return receiver(f) + "." + f.Name.Name
}

// receiver returns the name of the type that a method belongs to.
func receiver(f *ast.FuncDecl) string {
	t := f.Recv.List[0].Type
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return "?"
		}
	}
}
