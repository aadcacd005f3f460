package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// undocumented lists what one file exports without saying what it is. In a
// group one comment above it or behind each name is enough; a method counts
// when its type is exported.
func undocumented(f *ast.File) (names []string) {
	for _, decl := range f.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || ast.IsExported(receiver(d))) {
				names = append(names, FuncName(d))
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				names = append(names, undocumentedSpec(d, spec)...)
			}
		}
	}
	return names
}

// undocumentedSpec looks at one type, constant or variable of a declaration.
func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) (names []string) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && s.Doc == nil && s.Comment == nil && (d.Doc == nil || d.Lparen.IsValid()) {
			names = append(names, s.Name.Name)
		}
	case *ast.ValueSpec:
		for _, n := range s.Names {
			if n.IsExported() && s.Doc == nil && s.Comment == nil && d.Doc == nil {
				names = append(names, n.Name)
			}
		}
	}
	return names
}

func TestEverythingExportedIsDocumented(t *testing.T) {
	count := 0
	for _, p := range listPackages(t) {
		sources, err := p.Parse(token.NewFileSet())
		if err != nil {
			t.Fatal(err)
		}
		described := 0
		for _, s := range sources {
			if s.Test {
				continue
			}
			count++
			if s.File.Doc != nil {
				described++
				if text := s.File.Doc.Text(); !strings.HasPrefix(text, "Package "+p.Name+" ") && !strings.HasPrefix(text, "Command ") {
					t.Errorf("%s: the package comment begins with %q", p.Short(), strings.SplitN(text, "\n", 2)[0])
				}
			}
			for _, name := range undocumented(s.File) {
				t.Errorf("%s: %s has no comment", p.Short(), name)
			}
		}
		if described != 1 {
			t.Errorf("%s has %d package comments, want 1", p.Short(), described)
		}
	}
	if count < 20 {
		t.Errorf("only %d files were looked at", count)
	}
}

func TestUndocumentedIsFound(t *testing.T) {
	const source = `package x
func Bare() {}
// Said is said.
func Said() {}
func small() {}
type T struct{}
func (T) M() {}
func (*T) m() {}
type u struct{}
func (*u) Hidden() {}
const (
	A = 1 // one
	B = 2
)
// Both are said.
var (
	C int
	D int
)
type (
	// E is said.
	E int
	F int
)
`
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := undocumented(f), []string{"Bare", "T", "T.M", "B", "F"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
