package schema

import (
	"path/filepath"
	"slices"
	"testing"

	"starling/graph"
)

// TestUntypedHasTheSameGraph: without its types a graph has the same vertices, edges, labels and splits, and zeros where
// a type has no features.
func TestUntypedHasTheSameGraph(t *testing.T) {
	dir := folder(t, library)
	d := imported(t, dir, "mag.yaml", nil)
	flat := filepath.Join(dir, "flat")
	if _, err := Untyped(filepath.Join(dir, "out"), Options{}, flat); err != nil {
		t.Fatal(err)
	}
	g, err := graph.OpenWith(flat, graph.OpenOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	paper := d.Meta.Schema.Type("paper")
	d.SetTarget(paper)
	if g.Typed() || !slices.Equal(g.Graph.Indptr, d.Graph.Indptr) || g.Graph.Edges() != d.Graph.Edges() ||
		!slices.Equal(g.Labels.Class, d.Labels.Class) || !slices.Equal(g.Splits.Train, d.Splits.Train) {
		t.Errorf("%+v", g.Meta)
	}
	at := int(d.Meta.Schema.Types[paper].First) * g.Features.Cols
	rows := d.TypeFeatures[paper].F32
	if !slices.Equal(g.Features.F32[at:at+len(rows)], rows) {
		t.Error(g.Features.F32)
	}
	rest := append(slices.Clone(g.Features.F32[:at]), g.Features.F32[at+len(rows):]...)
	if slices.ContainsFunc(rest, func(x float32) bool { return x != 0 }) {
		t.Errorf("types without features have %v", rest)
	}
}
