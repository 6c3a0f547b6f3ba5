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

// strategyRooms are where strategies are described.
var strategyRooms = []string{"train/full", "train/mini"}

// otherMeanings are literals that are the name of a strategy, and mean something else.
var otherMeanings = map[string][]string{
	"spec/partition.go": {"g3", "bytegnn"}, // the partitioners
}

// describedIn are the names of the strategies that a file describes.
func describedIn(f *ast.File) (names []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if t, ok := c.Type.(*ast.SelectorExpr); !ok || t.Sel.Name != "Descriptor" {
			return true
		}
		for _, e := range c.Elts {
			if kv, ok := e.(*ast.KeyValueExpr); ok && keyOf(kv) == "Name" {
				names = append(names, textOf(kv.Value))
			}
		}
		return true
	})
	return names
}

// named are the string literals of a file that name one of some strategies, with its
// setting or without. What says whose paper's baseline a strategy is, or which rows are
// kept, names none.
func named(f *ast.File, strategies []string) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.KeyValueExpr:
			return keyOf(n) != "Baseline" && keyOf(n) != "What"
		case *ast.BasicLit:
			name, _, _ := strings.Cut(textOf(n), ":")
			if n.Kind == token.STRING && slices.Contains(strategies, name) {
				found = append(found, textOf(n))
			}
		}
		return true
	})
	return found
}

func keyOf(kv *ast.KeyValueExpr) string {
	if id, ok := kv.Key.(*ast.Ident); ok {
		return id.Name
	}
	return ""
}

func textOf(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	text, _ := strconv.Unquote(lit.Value)
	return text
}

// owns reports whether a file is a strategy's own: that in which it is described or, where
// it has a folder, one of that.
func owns(home, path string) bool {
	dir := filepath.ToSlash(filepath.Dir(home))
	return path == home || !slices.Contains(strategyRooms, dir) && strings.HasPrefix(path, dir+"/")
}

// TestStrategyNames: a strategy's name is written in its own file or folder, and nowhere
// else in the program: what depends on the strategy is part of its descriptor.
func TestStrategyNames(t *testing.T) {
	root, _ := filepath.Abs("../..")
	files := map[string]*ast.File{}
	sources(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "train/traintest/") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = f
	})
	homes := map[string]string{} // where each is described
	var all []string
	for path, f := range files {
		if slices.Contains(strategyRooms, roomOf(filepath.ToSlash(filepath.Dir(path)))) {
			for _, name := range describedIn(f) {
				homes[name], all = path, append(all, name)
			}
		}
	}
	if len(all) < 9 {
		t.Fatalf("only %v are described", all)
	}
	for path, f := range files {
		if room := roomOf(filepath.ToSlash(filepath.Dir(path))); room == "partition" || room == "dataset" {
			continue // a partitioner may be called as the strategy it is for
		}
		for _, text := range named(f, all) {
			name, _, _ := strings.Cut(text, ":")
			if !owns(homes[name], path) && !slices.Contains(otherMeanings[path], text) {
				t.Errorf("%s names the strategy %q; let what it needs to know be part of the descriptor, in %s", path,
					text, homes[name])
			}
		}
	}
}

func TestNamesOfStrategiesAreFound(t *testing.T) {
	const source = "package p\n" +
		"var s = train.Describe(train.Descriptor{Name: \"kite\", Baseline: \"boat\"}, options{}, build)\n" +
		"func f(x string) bool { return x == \"boat:3\" || x == `kite` || x == \"kites\" }\n" +
		"var w = key{What: \"boat\"}.is(\"a boat\")\n"
	f, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	if got := describedIn(f); !slices.Equal(got, []string{"kite"}) {
		t.Error(got)
	}
	if got := named(f, []string{"kite", "boat"}); !slices.Equal(got, []string{"kite", "boat:3", "kite"}) {
		t.Errorf("%q", got)
	}
	for path, want := range map[string]bool{"train/full/kite.go": true, "train/full/other.go": false,
		"run/kite.go": false} {
		if owns("train/full/kite.go", path) != want {
			t.Error(path)
		}
	}
	if !owns("train/full/kite/kite.go", "train/full/kite/tail.go") ||
		owns("train/full/kite/kite.go", "train/full/boat/kite.go") {
		t.Error("folders")
	}
}
