package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
)

// offsets finds where each field of package simd's structs lies, so that the
// assembly follows the Go source when a field moves. Keys are "Map.Dst.Stride".
func offsets(files ...string) map[string]int {
	fset := token.NewFileSet()
	var parsed []*ast.File
	for _, name := range files {
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			panic(err)
		}
		parsed = append(parsed, f)
	}
	// Function bodies are not looked at, so names they take from other files do not matter.
	conf := types.Config{Importer: nothing{}, Error: func(error) {}, IgnoreFuncBodies: true}
	pkg, _ := conf.Check("simd", fset, parsed, nil)
	found := map[string]int{}
	for _, name := range pkg.Scope().Names() {
		if s, ok := pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct); ok {
			flatten(found, name, 0, s)
		}
	}
	return found
}

func flatten(found map[string]int, prefix string, base int, s *types.Struct) {
	var fields []*types.Var
	for i := range s.NumFields() {
		fields = append(fields, s.Field(i))
	}
	for i, off := range types.SizesFor("gc", "amd64").Offsetsof(fields) {
		name := prefix + "." + fields[i].Name()
		found[name] = base + int(off)
		if inner, ok := fields[i].Type().Underlying().(*types.Struct); ok {
			flatten(found, name, base+int(off), inner)
		}
	}
}

// nothing imports only unsafe: the structs need no other package.
type nothing struct{}

func (nothing) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	return nil, fmt.Errorf("%s is not needed", path)
}
