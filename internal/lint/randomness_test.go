package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// fromSeeds are the functions of math/rand that draw nothing themselves, but make a source from a seed.
var fromSeeds = []string{"New", "NewSource", "NewPCG", "NewChaCha8", "NewZipf", "Rand", "Source", "PCG", "ChaCha8",
	"Zipf"}

// seedFile is where tests' seeds are drawn.
const seedFile = "internal/testseed/testseed.go"

// ofTests reports whether a file is only built for tests: it is one, or belongs to a package that serves them.
func ofTests(path string) bool {
	dir := filepath.Base(filepath.Dir(path))
	return strings.HasSuffix(path, "_test.go") || strings.HasSuffix(dir, "test") ||
		strings.HasPrefix(dir, "test") && strings.HasPrefix(path, "internal/")
}

// unseeded are the expressions of a test file whose value no seed repeats: draws from the global source, seeds made
// of the time, and seeds in another variable than that of internal/testseed.
func unseeded(f *ast.File) (found []ast.Node) {
	random := map[string]bool{}
	for _, spec := range f.Imports {
		if path, _ := strconv.Unquote(spec.Path.Value); path == "math/rand" || path == "math/rand/v2" {
			random["rand"] = true
			if spec.Name != nil {
				random[spec.Name.Name] = true
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			pkg, _ := n.X.(*ast.Ident)
			if pkg != nil && pkg.Obj == nil && random[pkg.Name] && !slices.Contains(fromSeeds, n.Sel.Name) ||
				strings.HasPrefix(n.Sel.Name, "Unix") && isCall(n.X, "time", "Now") ||
				pkg != nil && pkg.Name == "maphash" && n.Sel.Name == "MakeSeed" {
				found = append(found, n)
			}
		case *ast.CallExpr:
			if len(n.Args) == 1 && (isCall(n, "os", "Getenv") || isCall(n, "os", "LookupEnv")) &&
				strings.HasSuffix(textOf(n.Args[0]), "SEED") {
				found = append(found, n)
			}
		}
		return true
	})
	return found
}

// isCall reports whether an expression calls a function of a package.
func isCall(e ast.Expr, pkg, name string) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || sel.Sel.Name != name {
		return false
	}
	id, ok := sel.X.(*ast.Ident)
	return ok && id.Name == pkg
}

// TestSeeds: whatever a test draws at random can be drawn again with the one variable that internal/testseed reads,
// or is drawn from a fixed seed.
func TestSeeds(t *testing.T) {
	files := token.NewFileSet()
	sources(t, func(path string) {
		if !ofTests(path) || path == seedFile {
			return
		}
		f, err := parser.ParseFile(files, "../../"+path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range unseeded(f) {
			t.Errorf("%v: no seed repeats this: use testseed.New or testseed.Rand", files.Position(n.Pos()))
		}
	})
}

func TestUnseededIsFound(t *testing.T) {
	const source = `package p
import ("math/rand/v2"; r2 "math/rand"; "os"; "time")
var a = rand.IntN(3)
var b = r2.Perm(3)
var c = rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
var d = os.Getenv("OTHER_SEED")
var fixed = rand.New(rand.NewPCG(7, 0)).IntN(3) + len(os.Getenv("HOME"))
func f(rand *rand.Rand) int { return rand.IntN(3) }
`
	f, err := parser.ParseFile(token.NewFileSet(), "", source, 0)
	if err != nil {
		t.Fatal(err)
	}
	if got := unseeded(f); len(got) != 4 {
		t.Errorf("%d of 4 are found", len(got))
	}
	for path, want := range map[string]bool{"wire/wiretest/calls.go": true, "internal/testflood/flood.go": true,
		"nn/gcn_test.go": true, "nn/gcn.go": false, "testing/gcn.go": false} {
		if ofTests(path) != want {
			t.Error(path)
		}
	}
}
