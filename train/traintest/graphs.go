package traintest

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"starling/dataset"
	"starling/graph"
	"starling/rng"
)

// Communities is a small graph of four communities with noisy class features.
func Communities(t testing.TB, n int, sparse bool) *graph.Dataset {
	t.Helper()
	key := rng.New(77)
	const classes, width = 4, 12
	class := make([]int32, n)
	for v := range class {
		class[v] = int32(key.IntN(uint64(v), classes))
	}
	var src, dst []uint32
	for i := range uint64(5 * n) {
		u, v := key.Fold(1).IntN(i, n), key.Fold(2).IntN(i, n)
		if class[u] == class[v] || key.Fold(3).Float64(i) < 0.1 {
			src, dst = append(src, uint32(u)), append(dst, uint32(v))
		}
	}
	g := FromEdges(t, n, src, dst, nil, graph.BuildOptions{Symmetrize: true, DropDuplicates: true})
	d := &graph.Dataset{Graph: g, Labels: &graph.Labels{Classes: classes, Class: class}}
	d.Meta.Name = "communities"
	f := &graph.Features{Rows: n, Cols: width, F32: make([]float32, n*width)}
	for i := range f.F32 {
		f.F32[i] = float32(key.Fold(4).Normal(uint64(i)))
		if i%width == int(class[i/width]) {
			f.F32[i] += 2
		}
	}
	d.Features = f
	if sparse {
		d.Features = sparsened(f)
	}
	d.Meta.Nodes, d.Meta.Edges, d.Meta.Symmetric = int64(n), g.Edges(), true
	d.Meta.Features = &graph.FeatureMeta{Kind: d.Features.Kind(), Dim: width}
	d.Meta.Task, d.Meta.Classes = graph.SingleLabel, classes
	for v := range uint32(n) {
		switch {
		case v%4 == 0:
			d.Splits.Train = append(d.Splits.Train, v)
		case v%4 == 1:
			d.Splits.Val = append(d.Splits.Val, v)
		default:
			d.Splits.Test = append(d.Splits.Test, v)
		}
	}
	return d
}

// sparsened keeps the positive features, as sparse rows.
func sparsened(f *graph.Features) *graph.Features {
	s := &graph.Features{Rows: f.Rows, Cols: f.Cols, Indptr: []int64{0}}
	for v := range f.Rows {
		for c := range f.Cols {
			if x := f.F32[v*f.Cols+c]; x > 0 {
				s.Indices, s.Values = append(s.Indices, uint32(c)), append(s.Values, x)
			}
		}
		s.Indptr = append(s.Indptr, int64(len(s.Indices)))
	}
	return s
}

// FromEdges is graph.FromEdges of edges that make a graph.
func FromEdges(t testing.TB, n int, src, dst []uint32, weights []float32, o graph.BuildOptions) *graph.CSR {
	t.Helper()
	g, err := graph.FromEdges(n, src, dst, weights, o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// Oddities is a graph with loops, one-way and repeated edges, and perhaps weights.
func Oddities(t testing.TB, n int, weighted bool) *graph.Dataset {
	t.Helper()
	d := Communities(t, n, false)
	key := rng.New(5)
	var src, dst []uint32
	var weights []float32
	for i := range uint64(4 * n) {
		src, dst = append(src, uint32(key.Fold(1).IntN(i, n))), append(dst, uint32(key.Fold(2).IntN(i, n)))
		if i%5 == 0 {
			dst[i] = src[i]
		}
		weights = append(weights, float32(0.5+key.Fold(3).Float64(i)))
	}
	if !weighted {
		weights = nil
	}
	d.Graph = FromEdges(t, n, src, dst, weights, graph.BuildOptions{})
	d.Meta.Edges, d.Meta.Symmetric = d.Graph.Edges(), false
	return d
}

// WithLoops adds weights, loops and a repeated edge.
func WithLoops(t testing.TB, d *graph.Dataset, weighted bool) *graph.Dataset {
	t.Helper()
	var src, dst []uint32
	var weights []float32
	put := func(u, v uint32) {
		src, dst = append(src, u), append(dst, v)
		if weighted {
			weights = append(weights, 0.25+float32((u*7+v*3)%5))
		}
	}
	for v := range uint32(d.Graph.Nodes()) {
		for _, u := range d.Graph.Neighbors(v) {
			put(u, v)
		}
		if v%3 == 0 {
			put(v, v)
		}
		if v%7 == 0 {
			put((v+1)%uint32(d.Graph.Nodes()), v)
		}
	}
	d.Graph = FromEdges(t, d.Graph.Nodes(), src, dst, weights, graph.BuildOptions{})
	d.Meta.Symmetric, d.Meta.Edges = false, d.Graph.Edges()
	return d
}

// EdgeDim is the numbers an edge has.
const EdgeDim = 3

// WithEdgeFeatures gives the edges of d features.
func WithEdgeFeatures(d *graph.Dataset) *graph.Dataset {
	key, g := rng.New(5), d.Graph
	g.EdgeDim, g.EdgeFeatures = EdgeDim, nil
	for i := range uint64(g.Edges()) * EdgeDim {
		g.EdgeFeatures = append(g.EdgeFeatures, float32(key.Normal(i)))
	}
	d.Meta.EdgeDim = EdgeDim
	return d
}

// BlockGraph is a graph of eight communities, most edges inside them, whose features tell
// them apart as well as signal says.
func BlockGraph(t testing.TB, n int, signal float64) *graph.Dataset {
	t.Helper()
	const classes, width, degree = 8, 12, 8
	key := rng.New(21)
	d := Communities(t, n, false)
	d.Labels.Classes = classes
	var src, dst []uint32
	for v := range n {
		class := v % classes
		d.Labels.Class[v] = int32(class)
		for i := range uint64(degree / 2) {
			at := uint64(v)*degree + i
			u := key.IntN(at, n)
			if key.Fold(1).Float64(at) < 0.9 {
				u = u/classes*classes + class
			}
			if u < n {
				src, dst = append(src, uint32(u)), append(dst, uint32(v))
			}
		}
		for c := range width {
			d.Features.F32[v*width+c] = float32(key.Fold(2).Normal(uint64(v*width + c)))
		}
		d.Features.F32[v*width+class] += float32(signal)
	}
	d.Splits = graph.Splits{}
	for v := range uint32(n) {
		split := [3]*[]uint32{&d.Splits.Train, &d.Splits.Val, &d.Splits.Test}[(v/classes)%3]
		*split = append(*split, v)
	}
	d.Graph = FromEdges(t, n, src, dst, nil, graph.BuildOptions{Symmetrize: true, DropDuplicates: true})
	return d
}

// Tasks are the kinds of labels that WithTask knows.
var Tasks = []string{graph.MultiLabel, graph.Regression}

// WithTask has the communities' labels made into those of another task. A vertex in no
// split has none.
func WithTask(t testing.TB, kind string) *graph.Dataset {
	t.Helper()
	d := Communities(t, 240, false)
	n, class := d.Graph.Nodes(), d.Labels.Class
	d.Splits.Test = d.Splits.Test[1:]
	unknown := 2
	l := &graph.Labels{Classes: 4}
	if kind == graph.MultiLabel {
		for v := range n {
			for c := range int32(4) {
				mark := uint8(0)
				if c == class[v] || c == (class[v]+1)%4 && class[v] < 2 {
					mark = 1
				}
				if v == unknown {
					mark = graph.NoLabel
				}
				l.Multi = append(l.Multi, mark)
			}
		}
	} else {
		l.Classes = 2
		for v := range n {
			y := float32(class[v]) + 0.1*float32(rng.New(8).Normal(uint64(v)))
			z := 1 - y/2
			if v == unknown {
				y, z = float32(math.NaN()), float32(math.NaN())
			}
			l.Values = append(l.Values, y, z)
		}
	}
	d.Labels, d.Meta.Task, d.Meta.Classes = l, kind, l.Classes
	return d
}

// Cora is the real graph; a test without it is skipped.
func Cora(t testing.TB) *graph.Dataset {
	t.Helper()
	dir := os.Getenv("STARLING_DATA")
	if dir == "" {
		dir = filepath.Join(Root(t), "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(dir, "planetoid")); err != nil {
		t.Skipf("no real data: %v; set STARLING_DATA to a folder with planetoid/ind.cora.*", err)
	}
	out := filepath.Join(t.TempDir(), "cora")
	if _, err := dataset.Import("planetoid", filepath.Join(dir, "planetoid"), dataset.ImportOptions{Name: "cora"},
		out); err != nil {
		t.Fatal(err)
	}
	d, err := graph.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Root is the folder of the module.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, none := os.Stat(filepath.Join(dir, "go.mod")); none == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod in any folder above")
		}
		dir = filepath.Dir(dir)
	}
	t.Fatal(err)
	return ""
}

// Saved is a dataset that was written to a folder, and is mapped from there.
func Saved(t testing.TB, d *graph.Dataset) *graph.Dataset {
	t.Helper()
	w, err := graph.Create(filepath.Join(t.TempDir(), "graph"), graph.WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	if err := errors.Join(w.Graph(d.Graph), w.Features(d.Features), w.Labels(d.Labels), w.Splits(d.Splits),
		w.Commit()); err != nil {
		t.Fatal(err)
	}
	out, err := graph.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { out.Close() })
	return out
}
