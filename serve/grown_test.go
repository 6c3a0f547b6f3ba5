package serve

import (
	"slices"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
	"starling/nn"
	"starling/tensor/cpu"
)

// grown takes the last vertices of each type out of a typed dataset, with their edges, and adds them to what is left.
func grown(t testing.TB, d *graph.Dataset, left []int) *graph.Grown {
	t.Helper()
	s := d.Meta.Schema
	piece := func(name string, keep func(k, v int) bool) (*graph.Dataset, map[uint32]uint32) {
		p := &graph.Schema{Types: slices.Clone(s.Types), Relations: slices.Clone(s.Relations)}
		at, next := map[uint32]uint32{}, uint32(0)
		features := make([]*graph.Features, len(s.Types))
		for k := range s.Types {
			typ := &p.Types[k]
			typ.First = int64(next)
			var rows []uint32
			for v := range int(s.Types[k].Count) {
				if keep(k, v) {
					at[uint32(int(s.Types[k].First)+v)] = next
					rows, next = append(rows, uint32(v)), next+1
				}
			}
			if typ.Count = int64(next) - typ.First; d.TypeFeatures[k] != nil {
				features[k] = d.TypeFeatures[k].Picked(rows)
			}
		}
		m := d.Meta
		m.Name, m.Nodes, m.Schema = name, int64(next), p
		out := graph.Described(name, m, 0, nil, graph.Splits{})
		out.TypeFeatures = features
		return out, at
	}
	base, old := piece("base", func(k, v int) bool { return v < left[k] })
	added, fresh := piece("added", func(k, v int) bool { return v >= left[k] })
	id := func(v uint32) (uint32, bool) {
		if u, ok := old[v]; ok {
			return u, true
		}
		return uint32(base.Meta.Nodes) + fresh[v], false
	}
	var src, dst []uint32
	var kind []uint16
	var edges []graph.AddedEdge
	for v := range uint32(d.Meta.Nodes) {
		for e := d.Graph.Indptr[v]; e < d.Graph.Indptr[v+1]; e++ {
			from, a := id(d.Graph.Indices[e])
			to, b := id(v)
			if a && b {
				src, dst, kind = append(src, from), append(dst, to), append(kind, d.Graph.Relations[e])
			} else {
				edges = append(edges, graph.AddedEdge{Source: from, Target: to, Relation: d.Graph.Relations[e]})
			}
		}
	}
	testseed.Rand(t).Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
	var err error
	if base.Graph, err = graph.FromTypedEdges(int(base.Meta.Nodes), src, dst, kind); err != nil {
		t.Fatal(err)
	}
	return graph.Grow(base, added, edges)
}

// TestAddedEqualsFromTheStart: predictions for added vertices equal, to the bit, those in a graph that had them from the
// start, whose learnt rows of them are the mean of the others.
func TestAddedEqualsFromTheStart(t *testing.T) {
	whole := typedBlock(t)
	for _, left := range [][]int{{50, 37, 7}, {59, authors, fields}, {1, 1, 1}} {
		for _, model := range []string{"rgcn", "hsage", "rgat", "hgt", "simplehgn"} {
			r := typedRun(t, model, "", whole)
			g := grown(t, whole, left)
			known, row := r.Learnt["author"].Data, r.Config.Model.Hidden
			start := *r
			all := *r.Learnt["author"]
			base := all
			base.Shape, base.Data = []int{left[1], row}, known[:left[1]*row]
			r.Learnt = map[string]*nn.Tensor{"author": &base}
			all.Data = slices.Concat(base.Data, slices.Repeat(meanRow(base.Data, row), authors-left[1]))
			start.Learnt = map[string]*nn.Tensor{"author": &all}
			for _, what := range []string{Probabilities, Embeddings} {
				for _, kind := range []string{"paper", "author", "field"} {
					if what == Probabilities && kind != "paper" {
						continue
					}
					sameAsFromTheStart(t, g, r, &start, whole, what, kind)
				}
			}
		}
	}
}

func sameAsFromTheStart(t *testing.T, g *graph.Grown, r, start *Trained, whole *graph.Dataset, what, kind string) {
	t.Helper()
	dev := cpu.New(2)
	defer dev.Close()
	if g.Added.Meta.Schema.Types[g.Added.Meta.Schema.Type(kind)].Count == 0 {
		return
	}
	if kind != "paper" {
		for _, x := range []*Trained{r, start} {
			if err := x.ForType(kind); err != nil {
				t.Fatal(err)
			}
		}
		defer func() { r.of, start.of = "", "" }()
	}
	got, err := r.PredictAdded(dev, g, what)
	if err != nil {
		t.Fatal(err)
	}
	want, err := start.Predict(dev, whole, what)
	if err != nil {
		t.Fatal(err)
	}
	last := want.Values[len(want.Values)-len(got.Values):]
	if len(got.Values) != got.Vertices*got.Width || got.Width != want.Width || !slices.Equal(got.Values, last) {
		t.Fatalf("%s, %s of %s: %v, want %v", r.Config.Model.Model, what, kind, got.Values[:got.Width], last[:want.Width])
	}
}

// TestAddedReadsTheNeighbourhood: vertices that no layer looks at are not in it.
func TestAddedReadsTheNeighbourhood(t *testing.T) {
	whole := typedBlock(t)
	g := grown(t, whole, []int{56, authors, fields}) // of the added papers one has edges
	near := func(layers int) int { return g.Around(0, layers).Graph.Nodes() }
	if n := near(1); n >= near(2) || near(2) >= whole.Graph.Nodes() || near(0) != 4+3 {
		t.Fatalf("%d, %d, %d vertices", near(0), n, near(2))
	}
}
