package lint

import (
	"slices"
	"strings"
	"testing"
)

// arrows is the list of packages and of what each imports of our own: exactly
// these, no fewer and no more. Everybody may import the helpers in internal,
// which import nothing of ours.
var arrows = map[string][]string{
	"merkle":       {},
	"lmdbstore":    {"merkle"},
	"blobstore":    {"merkle"},
	"snapshot":     {"blobstore", "lmdbstore", "merkle"},
	"fs":           {"merkle", "snapshot"},
	"internal/...": {},
	"cmd/...":      {"..."},
	"integration":  {},
}

// owners names the packages that alone may import something from outside.
var owners = map[string][]string{
	"C":                               {"lmdbstore"},
	"github.com/bmatsuo/lmdb-go/lmdb": {"lmdbstore"},
	"github.com/hanwen/go-fuse/":      {"fs"},
	"github.com/sirupsen/logrus":      {"fs", "cmd/..."},
	"net/http":                        {"cmd/..."},
	"github.com/spf13/":               {"cmd/..."},
	"github.com/schollz/progressbar/": {"cmd/..."},
	"github.com/fatih/color":          {"cmd/..."},
}

// pureForbidden are packages that do I/O: merkle must not even import one
// directly.
var pureForbidden = []string{"os", "io/fs", "io/ioutil", "net", "syscall", "log", "log/slog", "path/filepath", "golang.org/x/sys/", "C", "unsafe"}

// match tells whether a package is meant by a name of the lists above.
func match(name, short string) bool {
	if prefix, ok := strings.CutSuffix(name, "..."); ok {
		return strings.HasPrefix(short, prefix)
	}
	return name == short
}

// allowed finds what a package may import of our own.
func allowed(short string) (list []string, name string, ok bool) {
	for name, list := range arrows {
		if match(name, short) {
			return list, name, true
		}
	}
	return nil, "", false
}

func listPackages(t *testing.T) []*Package {
	t.Helper()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	list, err := Packages(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < len(arrows) {
		t.Fatalf("go list names %d packages only", len(list))
	}
	return list
}

// ours returns the short names of our own packages among imports, sorted.
func ours(imports []string) []string {
	var list []string
	for _, path := range imports {
		if short, ok := strings.CutPrefix(path, Module+"/"); ok && !slices.Contains(list, short) {
			list = append(list, short)
		}
	}
	slices.Sort(list)
	return list
}

// arrowFaults says what is wrong with one package's imports.
func arrowFaults(p *Package) (faults []string) {
	short := p.Short()
	list, name, ok := allowed(short)
	if !ok {
		return []string{short + " is not on the list of packages"}
	}
	exact := !strings.HasSuffix(name, "...")
	got := ours(p.Imports)
	for _, imp := range got {
		helper := strings.HasPrefix(imp, "internal/") && (!strings.HasPrefix(short, "internal/") || strings.HasPrefix(short, imp+"/"))
		if !helper && !slices.Contains(list, "...") && !slices.Contains(list, imp) {
			faults = append(faults, short+" must not import "+imp)
		}
	}
	for _, want := range list {
		if exact && !slices.Contains(got, want) {
			faults = append(faults, short+" does not import "+want+" any more: take the arrow off the list")
		}
	}
	return append(faults, testFaults(p, list)...)
}

// reaches tells whether arrows lead from one of the packages in list to name.
func reaches(list []string, name string) bool {
	return slices.Contains(list, name) || slices.ContainsFunc(list, func(next string) bool { return reaches(arrows[next], name) })
}

// testFaults says what tests of a package import against the rules: whatever
// the arrows lead to is fine, because a test may have to damage what lies below.
func testFaults(p *Package, list []string) (faults []string) {
	short := p.Short()
	for _, imp := range ours(append(slices.Clone(p.TestImports), p.XTestImports...)) {
		fine := imp == short || strings.HasPrefix(imp, "internal/") || slices.Contains(list, "...") || reaches(list, imp)
		// The black box makes hostile and huge repositories by hand, and measures
		// the library beside the mount. What it mounts is always the program.
		fine = fine || short == "integration" && reaches([]string{"snapshot"}, imp)
		if !fine {
			faults = append(faults, "tests of "+short+" must not import "+imp)
		}
	}
	return faults
}

// ownerFaults says which packages from outside are imported by somebody who may
// not, directly or, for libraries, by way of others.
func ownerFaults(p *Package) (faults []string) {
	short := p.Short()
	imports := slices.Clone(p.Imports)
	if len(p.CgoFiles) > 0 {
		imports = append(imports, "C")
	}
	for what, who := range owners {
		if slices.ContainsFunc(who, func(name string) bool { return match(name, short) }) {
			continue
		}
		if slices.ContainsFunc(imports, func(imp string) bool {
			return imp == what || strings.HasSuffix(what, "/") && strings.HasPrefix(imp, what)
		}) {
			faults = append(faults, short+" must not import "+what)
		}
	}
	return faults
}

func TestArrows(t *testing.T) {
	seen := map[string]bool{}
	for _, p := range listPackages(t) {
		for _, fault := range append(arrowFaults(p), ownerFaults(p)...) {
			t.Error(fault)
		}
		if _, name, ok := allowed(p.Short()); ok {
			seen[name] = true
		}
	}
	for name := range arrows {
		if !seen[name] {
			t.Errorf("%s is on the list of packages and does not exist", name)
		}
	}
}

// TestPure holds package merkle to memory and arithmetic, and the libraries to
// what they may reach by way of others.
func TestPure(t *testing.T) {
	for _, p := range listPackages(t) {
		short := p.Short()
		if short == "merkle" {
			for _, bad := range pureForbidden {
				if slices.ContainsFunc(p.Imports, func(imp string) bool { return imp == bad || strings.HasSuffix(bad, "/") && strings.HasPrefix(imp, bad) }) {
					t.Errorf("merkle must not import %s", bad)
				}
			}
		}
		if strings.HasPrefix(short, "cmd/") || short == "integration" {
			continue
		}
		for _, bad := range []string{"net/http", "github.com/sirupsen/logrus"} {
			if slices.Contains(p.Deps, bad) && (short != "fs" || bad == "net/http") {
				t.Errorf("%s reaches %s by way of what it imports", short, bad)
			}
		}
		if noCgo := short != "lmdbstore" && short != "snapshot" && short != "fs"; noCgo && slices.Contains(p.Deps, "github.com/bmatsuo/lmdb-go/lmdb") {
			t.Errorf("%s reaches cgo by way of what it imports", short)
		}
	}
}

// TestArrowFaultsAreFound shows each rule a package that breaks it.
func TestArrowFaultsAreFound(t *testing.T) {
	for _, c := range []struct {
		want string
		p    Package
	}{
		{"merkle must not import blobstore", Package{ImportPath: "bole/merkle", Imports: []string{"bole/blobstore"}}},
		{"lmdbstore does not import merkle any more: take the arrow off the list", Package{ImportPath: "bole/lmdbstore"}},
		{"internal/x must not import merkle", Package{ImportPath: "bole/internal/x", Imports: []string{"bole/merkle"}}},
		{"internal/x must not import internal/y", Package{ImportPath: "bole/internal/x", Imports: []string{"bole/internal/y"}}},
		{"attic is not on the list of packages", Package{ImportPath: "bole/attic"}},
		{"tests of merkle must not import fs", Package{ImportPath: "bole/merkle", TestImports: []string{"bole/fs"}}},
		{"tests of integration must not import fs", Package{ImportPath: "bole/integration", XTestImports: []string{"bole/snapshot", "bole/fs"}}},
		{"merkle must not import C", Package{ImportPath: "bole/merkle", CgoFiles: []string{"x.go"}}},
		{"internal/x must not import net/http", Package{ImportPath: "bole/internal/x", Imports: []string{"net/http"}}},
		{"internal/x must not import github.com/hanwen/go-fuse/", Package{ImportPath: "bole/internal/x", Imports: []string{"github.com/hanwen/go-fuse/v2/fuse"}}},
	} {
		if got := append(arrowFaults(&c.p), ownerFaults(&c.p)...); !slices.Equal(got, []string{c.want}) {
			t.Errorf("%s: found %q, want %q", c.p.ImportPath, got, c.want)
		}
	}
	for _, p := range []Package{
		{ImportPath: "bole/fs", Imports: []string{"bole/merkle", "bole/snapshot"}, TestImports: []string{"bole/lmdbstore", "bole/internal/x"}},
		{ImportPath: "bole/internal/a/cmd", Imports: []string{"os", "bole/internal/a"}},
		{ImportPath: "bole/merkle", Imports: []string{"bole/internal/x"}},
		{ImportPath: "bole/cmd/bole", Imports: []string{"bole/fs", "bole/merkle", "net/http"}},
		{ImportPath: "bole/merkle", XTestImports: []string{"bole/merkle", "bole/internal/treegen"}},
	} {
		if got := append(arrowFaults(&p), ownerFaults(&p)...); got != nil {
			t.Errorf("%s: found %q, want nothing", p.ImportPath, got)
		}
	}
}
