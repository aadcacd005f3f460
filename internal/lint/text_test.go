package lint

import (
	"bytes"
	"go/ast"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Limits of size, in lines: what is longer is hard to read and to change.
const (
	maxFileLines     = 450
	maxTestFileLines = 600
	maxFuncLines     = 60
	maxTestFuncLines = 90
)

// foreign matches places that only one machine has. It is put together from
// pieces so that this file does not match itself.
var foreign = regexp.MustCompile(`(?m)(^|[\s"'=(:` + "`" + `])/(` + strings.Join([]string{"work", "tmp/bole", "root", "home/[a-z]+"}, "|") + `)/[A-Za-z0-9_.]`)

// foreignPlaces returns the lines of a text that name such a place.
func foreignPlaces(text []byte) (lines []string) {
	for line := range bytes.Lines(text) {
		if foreign.Match(line) {
			lines = append(lines, strings.TrimSpace(string(line)))
		}
	}
	return lines
}

// trackedFiles lists the files that the module's repository holds, or all files
// where there is no repository.
func trackedFiles(t *testing.T, root string) []string {
	t.Helper()
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Skip("the sources are no git repository: ", err)
	}
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == 0 })
}

func TestNoFileNamesAMachine(t *testing.T) {
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, name := range trackedFiles(t, root) {
		if strings.Contains(name, "testdata/fuzz/") {
			continue // made of random bytes
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed and not yet committed
		}
		if err != nil {
			t.Error(err)
			continue
		}
		checked++
		for _, line := range foreignPlaces(data) {
			t.Errorf("%s names a place on one machine: %s", name, line)
		}
	}
	if checked < 20 {
		t.Errorf("only %d files were looked at", checked)
	}
}

func TestForeignPlacesAreFound(t *testing.T) {
	bad := []string{"/wo" + "rk/main/x", `"/tm` + `p/bole/x"`, "cd /ro" + "ot/x", "/ho" + "me/ann/x", "a:/wo" + "rk/x"}
	for _, line := range bad {
		if len(foreignPlaces([]byte("fine\n"+line+"\n"))) != 1 {
			t.Errorf("%q was not found", line)
		}
	}
	for _, line := range []string{"/tmp/view", "the work/tree", "$work/view", "/workshop/x", "/home"} {
		if found := foreignPlaces([]byte(line)); found != nil {
			t.Errorf("%q was found: %q", line, found)
		}
	}
}

// tooLong lists the file and the functions of a source that pass the limits.
func tooLong(fset *token.FileSet, s Source) (faults []string) {
	fileLimit, funcLimit := maxFileLines, maxFuncLines
	if s.Test {
		fileLimit, funcLimit = maxTestFileLines, maxTestFuncLines
	}
	name := filepath.Base(s.Path)
	if n := fset.File(s.File.Pos()).LineCount(); n > fileLimit {
		faults = append(faults, name)
	}
	for _, decl := range s.File.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		if n := fset.Position(f.End()).Line - fset.Position(f.Pos()).Line + 1; n > funcLimit && !isTable(f) {
			faults = append(faults, name+": "+FuncName(f))
		}
	}
	return faults
}

// isTable tells whether most of a function is one composite literal: a table
// of cases is long without being complicated.
func isTable(f *ast.FuncDecl) bool {
	var longest token.Pos
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.CompositeLit); ok {
			longest = max(longest, lit.End()-lit.Pos())
		}
		return true
	})
	return 2*longest > f.End()-f.Pos()
}

func TestFilesAndFunctionsAreShort(t *testing.T) {
	for _, p := range listPackages(t) {
		fset := token.NewFileSet()
		sources, err := p.Parse(fset)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sources {
			for _, fault := range tooLong(fset, s) {
				t.Errorf("%s/%s is too long", p.Short(), fault)
			}
		}
	}
}

func TestTooLongIsFound(t *testing.T) {
	dir := t.TempDir()
	body := strings.Repeat("\tprintln()\n", maxFuncLines)
	table := "func table() {\n\t_ = []int{\n" + strings.Repeat("\t\t1,\n", maxFuncLines) + "\t}\n}\n"
	source := "package x\n\nfunc short() {}\n\nfunc long() {\n" + body + "}\n\n" + table + strings.Repeat("\n", maxFileLines)
	if err := os.WriteFile(filepath.Join(dir, "x.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	sources, err := (&Package{Dir: dir, GoFiles: []string{"x.go"}}).Parse(fset)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tooLong(fset, sources[0]), []string{"x.go", "x.go: long"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}
