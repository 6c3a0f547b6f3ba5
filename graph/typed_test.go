package graph

import (
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// typedExample has two authors, three papers and one venue; 0 and 1 write, 2 cites and extends.
func typedExample() (*Schema, *CSR) {
	s := &Schema{
		Types: []VertexType{{Name: "author", First: 0, Count: 2}, {Name: "paper", First: 2, Count: 3}, {Name: "a venue <=", First: 5, Count: 1}},
		Relations: []Relation{{Source: 1, Name: "in", Target: 2}, {Source: 1, Name: "extends", Target: 1}, {Source: 0, Name: "writes", Target: 1},
			{Source: 1, Name: "cites", Target: 1}},
	}
	s.SortRelations() // writes, cites, extends, in
	g, err := FromTypedEdges(6,
		[]uint32{4, 3, 1, 0, 3, 2, 4, 0},
		[]uint32{2, 2, 2, 2, 2, 5, 5, 3},
		[]uint16{1, 2, 0, 0, 1, 3, 3, 0})
	if err != nil {
		panic(err)
	}
	return s, g
}

func TestTypedRowsAreInTheOrderOfRelations(t *testing.T) {
	s, g := typedExample()
	if got := []string{s.RelationName(0), s.RelationName(1), s.RelationName(2), s.RelationName(3)}; !slices.Equal(got,
		[]string{"author writes paper", "paper cites paper", "paper extends paper", "paper in a venue <="}) {
		t.Fatal(got)
	}
	if got := g.Neighbors(2); !slices.Equal(got, []uint32{0, 1, 3, 4, 3}) {
		t.Fatal(got)
	}
	if lo, hi := g.Relation(2, 1); lo != 2 || hi != 4 {
		t.Fatal(lo, hi)
	}
	if lo, hi := g.Relation(3, 2); lo != hi {
		t.Fatal(lo, hi)
	}
	if err := g.CheckRelations(s); err != nil {
		t.Fatal(err)
	}
	if got := s.Runs([]uint32{2, 4, 0, 1, 5, 3}); !slices.Equal(got, []Run{{1, 0, 2}, {0, 2, 4}, {2, 4, 5}, {1, 5, 6}}) {
		t.Fatal(got)
	}
	for v, want := range []int{0, 0, 1, 1, 1, 2} {
		if got := s.TypeOf(uint32(v)); got != want {
			t.Fatalf("vertex %d is of type %d", v, got)
		}
	}
}

// TestTypedDatasetComesBack writes a typed dataset, with the sorter, and reads it.
func TestTypedDatasetComesBack(t *testing.T) {
	s, g := typedExample()
	dir := filepath.Join(t.TempDir(), "d")
	w, err := Create(dir, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	sorter := w.Sorter(6, 8, false, BuildOptions{})
	sorter.Typed()
	for r, ends := range [][2][]uint32{{{1, 0, 0}, {2, 2, 3}}, {{4, 3}, {2, 2}}, {{3}, {2}}, {{2, 4}, {5, 5}}} {
		if err := sorter.AddRelation(int64(r), ends[0], ends[1], r); err != nil {
			t.Fatal(err)
		}
	}
	if err := sorter.Finish(); err != nil {
		t.Fatal(err)
	}
	w.Meta.Schema = s
	features := &Features{Rows: 3, Cols: 2, F32: []float32{1, 2, 3, 4, 5, 6}}
	labels := &Labels{Classes: 2, Class: []int32{1, -1, 0}}
	for _, err := range []error{w.Type(1, features, labels, Splits{Train: []uint32{2}, Test: []uint32{4}}),
		w.Type(2, nil, &Labels{Classes: 1, Values: []float32{7}}, Splits{}), w.TypeIDs(1, []int64{70, 80, 90}, nil),
		w.TypeIDs(0, nil, []string{"Ada", "Bob"}), w.Commit()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	d, err := OpenWith(dir, OpenOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !slices.Equal(d.Graph.Indices, g.Indices) || !slices.Equal(d.Graph.Relations, g.Relations) {
		t.Fatal(d.Graph.Indices, d.Graph.Relations)
	}
	if !slices.Equal(d.TypeFeatures[1].F32, features.F32) || d.TypeFeatures[0] != nil || d.Features != nil {
		t.Fatal("features")
	}
	if got := []string{d.ID(1), d.ID(3), d.ID(5)}; !slices.Equal(got, []string{"Bob", "80", "0"}) {
		t.Fatal(got)
	}
	if got := d.Targets(); !slices.Equal(got, []int{1}) {
		t.Fatal(got)
	}
	d.SetTarget(1)
	if !slices.Equal(d.Labels.Class, []int32{-1, -1, 1, -1, 0, -1}) || d.Meta.Classes != 2 || !slices.Equal(d.Splits.Test, []uint32{4}) {
		t.Fatal(d.Labels, d.Splits)
	}
	d.SetTarget(2)
	if v := d.Labels.Values; !math.IsNaN(float64(v[0])) || v[5] != 7 {
		t.Fatal(v)
	}
}

// TestTypedMistakesAreNamed refuses schemas and edges that do not fit.
func TestTypedMistakesAreNamed(t *testing.T) {
	for want, change := range map[string]func(*Schema, *CSR){
		"a second time":                func(s *Schema, _ *CSR) { s.Types[2].Name = "paper" },
		"control characters":           func(s *Schema, _ *CSR) { s.Types[0].Name = "a\n" },
		"a range from 2 on":            func(s *Schema, _ *CSR) { s.Types[1].First = 3 },
		"types 1 and 9":                func(s *Schema, _ *CSR) { s.Relations[3].Target = 9 },
		"before its place":             func(s *Schema, _ *CSR) { s.Relations[0], s.Relations[1] = s.Relations[1], s.Relations[0] },
		"6, as nodes says":             func(s *Schema, _ *CSR) { s.Types[2].Count = 0 },
		"a source that is a author":    func(_ *Schema, g *CSR) { g.Indices[0] = 5 },
		"one that leads to paper":      func(_ *Schema, g *CSR) { g.Relations[0] = 3 },
		"one per edge":                 func(_ *Schema, g *CSR) { g.Relations = g.Relations[1:] },
		"in ascending order":           func(_ *Schema, g *CSR) { g.Relations[2], g.Relations[4] = 2, 1 },
		`schema.types[1].features.dim`: func(s *Schema, _ *CSR) { s.Types[1].Features = &FeatureMeta{} },
	} {
		s, g := typedExample()
		change(s, g)
		err := s.Validate(6)
		if err == nil {
			err = g.CheckRelations(s)
		}
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}
