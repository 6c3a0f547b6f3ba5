package generate

import (
	"slices"
	"testing"
)

// Edge features are equal in both directions and larger inside a class.
func TestEdgeFeatures(t *testing.T) {
	p := DefaultParams()
	p.Nodes, p.Edges, p.Features, p.Classes, p.EdgeFeatures = 500, 6000, 4, 3, 2
	d := generate(t, "sbm", p)
	g := d.Graph
	row := map[[2]uint32][]float32{}
	var sum, count [2]float64
	for v := range uint32(g.Nodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u, f := g.Indices[e], g.EdgeRows(e, e+1)
			if back, ok := row[[2]uint32{v, u}]; ok && !slices.Equal(back, f) {
				t.Fatalf("the edge between %d and %d has %v and %v", u, v, f, back)
			}
			row[[2]uint32{u, v}] = f
			same := 0
			if d.Labels.Class[u] == d.Labels.Class[v] {
				same = 1
			}
			sum[same] += float64(f[0])
			count[same]++
		}
	}
	if between, inside := sum[0]/count[0], sum[1]/count[1]; g.EdgeDim != 2 || inside < between+1 {
		t.Errorf("%d features per edge, means %.2f between classes and %.2f inside", g.EdgeDim, between, inside)
	}
}
