package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// An error of a user's mistake reads "found X, want Y": X and Y are things. A sentence, such as the text of another
// error, is a graph.Sentence, which has no "found" before it.
var (
	clause     = regexp.MustCompile(`(^|\s)(is|are|was|were|can|cannot|must|has|have|does|do|will|needs?|differ)(\s|$)`)
	introduced = regexp.MustCompile(`\w: $`) // a thing, and after it what was said about it
	relative   = regexp.MustCompile(`\b(which|that|whose|who|where|but|as|than)\b`)
)

// TestFoundIsAThing looks at every text that follows "found" in an error.
func TestFoundIsAThing(t *testing.T) {
	checked := 0
	for _, files := range goPackages(t) {
		places := foundParameters(files)
		for _, f := range files {
			ast.Inspect(f.file, func(n ast.Node) bool {
				for _, x := range foundIn(n, places) {
					checked++
					if why := sentence(x); why != "" {
						t.Errorf("%s: %s after \"found\" is no thing; use graph.Sentence", f.set.Position(x.Pos()), why)
					}
				}
				return true
			})
		}
	}
	if checked < 300 {
		t.Errorf("only %d errors were looked at", checked)
	}
}

type sourceFile struct {
	set  *token.FileSet
	file *ast.File
}

// goPackages are the parsed files of every package, without tests.
func goPackages(t *testing.T) map[string][]sourceFile {
	t.Helper()
	out := map[string][]sourceFile{}
	sources(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") {
			return
		}
		set := token.NewFileSet()
		f, err := parser.ParseFile(set, filepath.Join("..", "..", path), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Dir(path)] = append(out[filepath.Dir(path)], sourceFile{set, f})
	})
	return out
}

// foundParameters are the places of parameters called found, by function of a package.
func foundParameters(files []sourceFile) map[string]int {
	out := map[string]int{"Mistake": 1}
	add := func(name string, f *ast.FuncType) {
		at := 0
		for _, p := range f.Params.List {
			for _, n := range p.Names {
				if n.Name == "found" {
					out[name] = at
				}
				at++
			}
		}
	}
	for _, f := range files {
		ast.Inspect(f.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				add(n.Name.Name, n.Type)
			case *ast.AssignStmt:
				if len(n.Lhs) == 1 && len(n.Rhs) == 1 {
					name, ok := n.Lhs[0].(*ast.Ident)
					lit, isFunc := n.Rhs[0].(*ast.FuncLit)
					if ok && isFunc {
						add(name.Name, lit.Type)
					}
				}
			}
			return true
		})
	}
	return out
}

// foundIn are the expressions of a node that an error shows after "found".
func foundIn(n ast.Node, places map[string]int) (out []ast.Expr) {
	switch n := n.(type) {
	case *ast.CompositeLit:
		if !hasName(n.Type, "InputError") {
			return nil
		}
		for _, e := range n.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok && hasName(kv.Key, "Found") {
				out = append(out, kv.Value)
			}
		}
	case *ast.CallExpr:
		for name, at := range places {
			if hasName(n.Fun, name) && at < len(n.Args) && (name != "Mistake" || len(n.Args) == 4) {
				out = append(out, n.Args[at])
			}
		}
	}
	return out
}

// hasName reports whether an expression is an identifier of this name, of any package.
func hasName(x ast.Expr, name string) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == name
	case *ast.SelectorExpr:
		return x.Sel.Name == name
	}
	return false
}

// sentence says why an expression may be one; "": it is not.
func sentence(x ast.Expr) (why string) {
	text, said := "", false
	ast.Inspect(x, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if hasName(n.Fun, "Sentence") {
				return false
			}
			if hasName(n.Fun, "Error") && len(n.Args) == 0 {
				said = !introduced.MatchString(text)
			}
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING {
				text += s
			}
		}
		return true
	})
	text, _, _ = strings.Cut(text, ": ")
	text, _, _ = strings.Cut(text, " (")
	switch m := clause.FindStringIndex(text); {
	case said:
		return "the text of an error"
	case m != nil && !relative.MatchString(text[:m[0]]):
		return strconv.Quote(text)
	}
	return ""
}
