package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// acceptFile is where connections are accepted.
const acceptFile = "wire/accept.go"

// accepts is what takes a connection from a listener, without an argument.
var accepts = []string{"Accept", "AcceptTCP", "AcceptUnix"}

// TestOneAcceptLoop: every listener accepts by wire.Accept, which waits errors out that pass. A listener that ends when
// the process is out of descriptors for a moment keeps all peers out for the rest of the run.
func TestOneAcceptLoop(t *testing.T) {
	files := token.NewFileSet()
	calls := 0
	sources(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || path == acceptFile {
			return
		}
		f, err := parser.ParseFile(files, "../../"+path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains(accepts, sel.Sel.Name) {
				return true
			}
			if pkg, _ := sel.X.(*ast.Ident); pkg != nil && pkg.Name == "wire" {
				calls++
			}
			if len(call.Args) > 0 {
				return true
			}
			t.Errorf("%v: %s: accept connections by wire.Accept", files.Position(n.Pos()), sel.Sel.Name)
			return true
		})
	})
	if calls < 8 {
		t.Errorf("%d listeners accept by wire.Accept; the test does not see them", calls)
	}
}
