package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// strategyRooms are where strategies are described.
var strategyRooms = []string{"train/full", "train/mini"}

// otherMeanings are names of strategies that mean something else in a file: the partitioner of that name.
var otherMeanings = map[string][]string{
	"spec/partition.go":         {"g3", "bytegnn"},
	"cmd/starling/partition.go": {"bytegnn"},
}

// partitionerRooms have partitioners, which may be called as the strategy they are for.
var partitionerRooms = []string{"partition", "dataset"}

// ordinary are names that are also terms of the field. They name a strategy where they are written as on a
// command line: after --strategy, with an option or a suffix, or in quotes.
var ordinary = []string{"halo"}

// nameIn finds the name of a strategy as a word of a text. The papers' own spelling, as SANCUS, is a
// citation, and finds none.
func nameIn(name string) *regexp.Regexp {
	name = regexp.QuoteMeta(name)
	if slices.Contains(ordinary, name) {
		return regexp.MustCompile("^" + name + "$|--strateg(y|ies)[ =][^ ]*\\b" + name + "\\b|\\b" + name +
			"[+:][a-z0-9]|[\"'`]" + name + "[\"'`]")
	}
	return regexp.MustCompile(`(^|[^\w-])` + name + `($|[^\w-])`)
}

// described is what a file says of the strategies in it: their names, and those of their baselines.
func described(f *ast.File) (names, beside []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		c, ok := n.(*ast.CompositeLit)
		if !ok {
			return true
		}
		if t, ok := c.Type.(*ast.SelectorExpr); !ok || t.Sel.Name != "Descriptor" {
			return true
		}
		for _, e := range c.Elts {
			switch kv, ok := e.(*ast.KeyValueExpr); {
			case !ok:
			case keyOf(kv) == "Name":
				names = append(names, textOf(kv.Value))
			case keyOf(kv) == "Baseline" || keyOf(kv) == "Like":
				beside = append(beside, textOf(kv.Value))
			}
		}
		return true
	})
	return names, beside
}

// firstListed is the first strategy of a package's list, the default; "": the file has no list.
func firstListed(f *ast.File) (name string) {
	ast.Inspect(f, func(n ast.Node) bool {
		v, ok := n.(*ast.ValueSpec)
		if !ok || v.Names[0].Name != "strategies" || len(v.Values) == 0 {
			return true
		}
		switch first := v.Values[0].(*ast.CompositeLit).Elts[0].(type) {
		case *ast.Ident:
			name = first.Name
		case *ast.SelectorExpr:
			name = first.X.(*ast.Ident).Name
		}
		return false
	})
	return name
}

// patterns find the names of strategies.
func patterns(strategies []string) map[string]*regexp.Regexp {
	out := map[string]*regexp.Regexp{}
	for _, name := range strategies {
		out[name] = nameIn(name)
	}
	return out
}

// named are the names of strategies that are words of a file: of its string literals, tags and comments.
// What says which rows are kept names none.
func named(f *ast.File, strategies map[string]*regexp.Regexp) (found []string) {
	search := func(text string) {
		for name, pattern := range strategies {
			if strings.Contains(text, name) && pattern.MatchString(text) && !slices.Contains(found, name) {
				found = append(found, name)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.KeyValueExpr:
			return keyOf(n) != "What"
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				search(textOf(n))
			}
		}
		return true
	})
	for _, c := range f.Comments {
		search(c.Text())
	}
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

// parsedSources are the files of the program, by path, with their comments.
func parsedSources(t *testing.T) map[string]*ast.File {
	t.Helper()
	root, _ := filepath.Abs("../..")
	files := map[string]*ast.File{}
	sources(t, func(path string) {
		if strings.HasSuffix(path, "_test.go") || strings.HasPrefix(path, "train/traintest/") {
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil,
			parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files[path] = f
	})
	return files
}

// TestStrategyNames: a strategy's name is written in its own file or folder, in those of strategies that
// are compared with it, and nowhere else in the program: what depends on the strategy is part of its
// descriptor. A strategy is compared with its baseline and with the default of its mode.
func TestStrategyNames(t *testing.T) {
	files := parsedSources(t)
	homes := map[string]string{} // where each is described
	beside := map[string][]string{}
	var all []string
	for path, f := range files {
		if room := roomOf(filepath.ToSlash(filepath.Dir(path))); slices.Contains(strategyRooms, room) {
			names, others := described(f)
			for _, name := range names {
				homes[name], all = path, append(all, name)
				beside[path] = append(others, firstListed(files[room+"/list.go"]))
			}
		}
	}
	if len(all) < 9 {
		t.Fatalf("only %v are described", all)
	}
	find := patterns(all)
	for path, f := range files {
		room := roomOf(filepath.ToSlash(filepath.Dir(path)))
		if slices.Contains(partitionerRooms, room) {
			continue
		}
		known := slices.Clone(otherMeanings[path])
		for home, others := range beside {
			if owns(home, path) {
				known = append(known, others...)
			}
		}
		for _, name := range named(f, find) {
			if !owns(homes[name], path) && !slices.Contains(known, name) {
				t.Errorf("%s names the strategy %q; let what it needs to know be part of the descriptor, in %s", path,
					name, homes[name])
			}
		}
	}
}

func TestNamesOfStrategiesAreFound(t *testing.T) {
	const source = "package p\n" +
		"import \"starling/gull\"\n" +
		"var s = train.Describe(train.Descriptor{Name: \"kite\", Baseline: \"boat\"}, options{}, build)\n" +
		"type o struct { A int `json:\"a\" why:\"tern and others fly\"` }\n" +
		"func f(x string) bool { return x == \"boat:3\" || x == `kites` || x == \"owl-like\" }\n" +
		"var w = key{What: \"crow\"}.is(\"CROW, 2020\") // as ibis does\n"
	f, err := parser.ParseFile(token.NewFileSet(), "", source, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	if names, beside := described(f); strings.Join(append(names, beside...), " ") != "kite boat" {
		t.Error(names, beside)
	}
	got := named(f, patterns([]string{"kite", "boat", "gull", "tern", "kit", "owl", "crow", "ibis"}))
	if slices.Sort(got); !slices.Equal(got, []string{"boat", "ibis", "kite", "tern"}) {
		t.Errorf("%q", got)
	}
	for text, want := range map[string]bool{"halo": true, "rows of the halo, or none": false, "halo+bf16": true,
		"use --strategy halo": true, "--strategies a,halo": true, "beside `halo`": true, "haloes": false} {
		if nameIn("halo").MatchString(text) != want {
			t.Error(text)
		}
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
