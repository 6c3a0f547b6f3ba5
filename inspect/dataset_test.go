package inspect

import (
	"context"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"starling/graph"
)

// The twin walks from every vertex that was not reached.
func TestComponents(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for range 50 {
		n := 1 + r.IntN(40)
		var src, dst []uint32
		near := make([][]uint32, n)
		for range r.IntN(40) {
			u, v := uint32(r.IntN(n)), uint32(r.IntN(n))
			src, dst = append(src, u), append(dst, v)
			near[u], near[v] = append(near[u], v), append(near[v], u)
		}
		g, err := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var count, largest int64
		seen := make([]bool, n)
		for v := range n {
			if seen[v] {
				continue
			}
			count++
			size, todo := int64(0), []uint32{uint32(v)}
			seen[v] = true
			for len(todo) > 0 {
				u := todo[len(todo)-1]
				todo = todo[:len(todo)-1]
				size++
				for _, w := range near[u] {
					if !seen[w] {
						seen[w] = true
						todo = append(todo, w)
					}
				}
			}
			largest = max(largest, size)
		}
		var i Info
		if i.components(g); i.Components != count || i.LargestComponent != largest {
			t.Fatalf("%d components, the largest %d; want %d and %d", i.Components, i.LargestComponent, count, largest)
		}
	}
}

func TestInfoOfSeveralLabels(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	g, _ := graph.FromEdges(4, []uint32{0, 1, 2}, []uint32{1, 2, 3}, nil, graph.BuildOptions{Symmetrize: true})
	d := &graph.Dataset{Graph: g, Features: &graph.Features{Rows: 4, Cols: 2, F32: []float32{1, 0, 0, 1, 1, 1, 0, 0}},
		Labels: &graph.Labels{Classes: 3, Multi: []uint8{1, 0, 1, 1, 1, 0, 0, 1, 0, 255, 255, 255}}, Splits: graph.Splits{Train: []uint32{0, 1}, Test: []uint32{2}}}
	if err := graph.Save(dir, d, graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	i, err := Describe(context.Background(), dir, true, true)
	if err != nil {
		t.Fatal(err)
	}
	if i.Task != graph.MultiLabel || i.Classes != 3 || i.Unlabelled != 1 || i.ClassSizes[0] != 2 || i.LabelsPerVertex != 5.0/3 || i.Homophily != 1 || i.Components != 1 {
		t.Errorf("%+v", i)
	}
	if e := i.Estimate; e == nil || e.Memory <= 0 || !(e.EpochSeconds > 0) {
		t.Errorf("%+v", i.Estimate)
	}
	for _, want := range []string{"1.67 per vertex", "share a class", "components", "estimates for gcn"} {
		if !strings.Contains(i.String(), want) {
			t.Errorf("no %q in\n%s", want, i)
		}
	}
}

func TestThinnedKeepsDegrees(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	const n, m = 20_000, 2_000_000
	src, dst := make([]uint32, m), make([]uint32, m)
	for i := range src {
		src[i], dst[i] = uint32(r.IntN(n)), uint32(r.IntN(n))
	}
	g, _ := graph.FromEdges(n, src, dst, nil, graph.BuildOptions{})
	d := &graph.Dataset{Graph: g, Features: &graph.Features{Rows: n, Cols: 1, F32: make([]float32, n)}, Labels: &graph.Labels{Classes: 2, Class: make([]int32, n)}, Splits: graph.Splits{Train: []uint32{0}}}
	part, share := thinned(d)
	mean := float64(part.Graph.Edges()) / float64(part.Graph.Nodes())
	if share > 0.3 || mean < 95 || mean > 105 || part.Graph.Validate() != nil || part.Splits.Validate(part.Graph.Nodes(), part.Labels) != nil {
		t.Errorf("%g of the graph, mean degree %g", share, mean)
	}
}

// TestInfoOfOneVertex: what there is none of is not told, and one is said in the singular.
func TestInfoOfOneVertex(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	g, _ := graph.FromEdges(1, nil, nil, nil, graph.BuildOptions{})
	d := &graph.Dataset{Graph: g, Features: &graph.Features{Rows: 1, Cols: 1, F32: []float32{1}},
		Labels: &graph.Labels{Classes: 2, Class: []int32{1}}, Splits: graph.Splits{Train: []uint32{0}}}
	if err := graph.Save(dir, d, graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	i, err := Describe(context.Background(), dir, true, false)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"NaN": false, "homophily": false, "1 vertices": false, "the largest of 1 vertex": true} {
		if strings.Contains(i.String(), text) != want {
			t.Errorf("%q: want %v in\n%s", text, want, i)
		}
	}
}
