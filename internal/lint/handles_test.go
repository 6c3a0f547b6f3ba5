package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestHandlesAreOpaque: no package outside tensor/... makes a buffer or looks into one. What
// does so are the functions of tensor/buffer.go.
func TestHandlesAreOpaque(t *testing.T) {
	root, _ := filepath.Abs("../..")
	forDevices := exportedFunctions(t, filepath.Join(root, "tensor", "buffer.go"))
	if len(forDevices) < 10 {
		t.Fatalf("tensor/buffer.go has only %v", forDevices)
	}
	sources(t, func(path string) {
		if strings.HasPrefix(path, "tensor/") {
			return
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "tensor" && forDevices[s.Sel.Name] {
					t.Errorf("%s calls tensor.%s, which is for devices", path, s.Sel.Name)
				}
			}
			return true
		})
	})
}

// exportedFunctions returns the exported functions of a file, without methods.
func exportedFunctions(t *testing.T, path string) map[string]bool {
	file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && f.Name.IsExported() {
			names[f.Name.Name] = true
		}
	}
	return names
}
