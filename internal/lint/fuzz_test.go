package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// decoderName is how functions are called that make sense of bytes from a disk,
// a remote or a user.
var decoderName = regexp.MustCompile(`^(?i:decode|parse|unmarshal)`)

// otherDecoders are decoders that go by another name.
var otherDecoders = map[string][]string{
	"merkle":          {"Check", "Children", "KindOf", "AttrValue", "OpenDir", "CheckName"},
	"internal/ignore": {"Stack.Push"},
}

// trusted are functions that look like decoders and read what the user or the
// kernel of this machine says.
var trusted = map[string][]string{
	"fs":       {"ParseIO", "parseRelease"},
	"snapshot": {"listing.parse"},
}

// noDecoders are packages that read nothing that somebody else wrote: the
// command line is its user's own.
var noDecoders = []string{"cmd/...", "integration", "internal/lint", "internal/treegen", "internal/treegen/cmd", "internal/benchkit"}

// funcs are the functions of a package by name ("Decode", "Dir.Lookup"), and
// what each mentions.
type funcs struct {
	product  map[string]*ast.FuncDecl
	mentions map[string][]string // by the last part of the name
	fuzz     []string
}

func readFuncs(sources []Source) funcs {
	fs := funcs{product: map[string]*ast.FuncDecl{}, mentions: map[string][]string{}}
	for _, s := range sources {
		for _, decl := range s.File.Decls {
			f, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			if !s.Test {
				fs.product[FuncName(f)] = f
			}
			if s.Test && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
				fs.fuzz = append(fs.fuzz, f.Name.Name)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok && id != f.Name {
					fs.mentions[f.Name.Name] = append(fs.mentions[f.Name.Name], id.Name)
				}
				return true
			})
		}
	}
	return fs
}

// fuzzed returns every name that fuzz targets reach, by way of any function of
// the package. Names are compared without their types, so it may say too much,
// never too little.
func (fs funcs) fuzzed() map[string]bool {
	reached := map[string]bool{}
	todo := slices.Clone(fs.fuzz)
	for len(todo) > 0 {
		name := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !reached[name] {
			reached[name] = true
			todo = append(todo, fs.mentions[name]...)
		}
	}
	return reached
}

// decoders lists the functions that need a fuzz target.
func (fs funcs) decoders() []string {
	var list []string
	for name, f := range fs.product {
		if decoderName.MatchString(f.Name.Name) && takesBytes(f) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// takesBytes tells whether one parameter is a []byte, a string or a reader.
func takesBytes(f *ast.FuncDecl) bool {
	for _, p := range f.Type.Params.List {
		switch x := p.Type.(type) {
		case *ast.ArrayType:
			if id, ok := x.Elt.(*ast.Ident); ok && id.Name == "byte" {
				return true
			}
		case *ast.Ident:
			if x.Name == "string" {
				return true
			}
		case *ast.SelectorExpr:
			if strings.HasPrefix(x.Sel.Name, "Reader") {
				return true
			}
		}
	}
	return false
}

func TestEveryDecoderIsFuzzed(t *testing.T) {
	checked := 0
	for _, p := range listPackages(t) {
		short := p.Short()
		if slices.ContainsFunc(noDecoders, func(name string) bool { return match(name, short) }) {
			continue
		}
		sources, err := p.Parse(token.NewFileSet())
		if err != nil {
			t.Fatal(err)
		}
		fs := readFuncs(sources)
		reached := fs.fuzzed()
		list := slices.DeleteFunc(fs.decoders(), func(name string) bool { return slices.Contains(trusted[short], name) })
		for _, name := range otherDecoders[short] {
			if fs.product[name] == nil {
				t.Errorf("%s has no function %s any more: take it off the list", short, name)
			}
			list = append(list, name)
		}
		for _, name := range list {
			checked++
			if last := name[strings.LastIndexByte(name, '.')+1:]; !reached[last] {
				t.Errorf("%s: no fuzz target reaches %s", short, name)
			}
		}
	}
	if checked < 8 {
		t.Errorf("only %d decoders were found", checked)
	}
}

func TestUnfuzzedIsFound(t *testing.T) {
	parse := func(name, source string) Source {
		f, err := parser.ParseFile(token.NewFileSet(), name, "package x\n"+source, 0)
		if err != nil {
			t.Fatal(err)
		}
		return Source{Path: name, Test: strings.HasSuffix(name, "_test.go"), File: f}
	}
	fs := readFuncs([]Source{
		parse("x.go", `
func DecodeA(b []byte) {}
func DecodeB(b []byte) { decodeC(b) }
func decodeC(b []byte) {}
func (t T) ParseD(s string) {}
func ParseE(r io.Reader) {}
func decodeNumber(n int) {}
func Other(b []byte) {}`),
		parse("x_test.go", `
func FuzzB(f *testing.F) { helper() }
func helper() { DecodeB(nil) }
func TestA(t *testing.T) { DecodeA(nil) }`),
	})
	reached := fs.fuzzed()
	maps.DeleteFunc(reached, func(name string, _ bool) bool { return fs.product[name] == nil })
	if got, want := fs.decoders(), []string{"DecodeA", "DecodeB", "ParseE", "T.ParseD", "decodeC"}; !slices.Equal(got, want) {
		t.Errorf("decoders %q, want %q", got, want)
	}
	if got, want := slices.Sorted(maps.Keys(reached)), []string{"DecodeB", "decodeC"}; !slices.Equal(got, want) {
		t.Errorf("fuzzed %q, want %q", got, want)
	}
}
