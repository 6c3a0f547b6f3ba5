package sample

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/rng"
)

// star is one vertex with d in-edges of weights 1, 2, 3, ... from others.
func star(d int) *graph.CSR {
	g := &graph.CSR{Indptr: make([]int64, d+2)}
	for i := range d {
		g.Indices = append(g.Indices, uint32(i+1))
		g.Weights = append(g.Weights, float32(i%5+1))
	}
	for v := range d + 1 {
		g.Indptr[v+1] = int64(d)
	}
	return g
}

// TestNeighbourInclusion: an edge is drawn as often as the formula says, for short
// and long lists.
func TestNeighbourInclusion(t *testing.T) {
	const draws = 20000
	for _, d := range []int{5, 64, 65, 200} {
		g := star(d)
		for _, k := range []int{1, 4, d - 1} {
			for _, replace := range []bool{false, true} {
				count := make([]float64, d)
				pairs := 0.0
				c := chooser{g: g}
				for i := range draws {
					key := rng.New(uint64(d*k + 1)).Fold(uint64(i))
					var got []int64
					if replace {
						got = c.repeated(nil, key, 0, d, k)
					} else {
						got = c.distinct(nil, key, 0, d, k)
						if slices.Sort(got); len(slices.Compact(slices.Clone(got))) != k {
							t.Fatalf("%d of %d drew %v", k, d, got)
						}
					}
					for _, e := range got {
						count[e]++
					}
					if slices.Contains(got, 0) && slices.Contains(got, int64(d-1)) {
						pairs++
					}
				}
				p := float64(k) / float64(d) // the mean number of times, either way
				for e := range count {
					name := fmt.Sprintf("%d of %d, replace %v, edge %d", k, d, replace, e)
					squares := count[e]
					if replace {
						squares = draws * (p + p*p) // of a number of times, about Poisson's
					}
					within(t, name, count[e], squares, p, draws)
				}
				if !replace {
					both := p * float64(k-1) / float64(d-1)
					within(t, fmt.Sprintf("%d of %d, first and last", k, d), pairs, pairs, both, draws)
				}
			}
		}
	}
}

// TestWeightedInclusion: in proportion to weights with replacement; without it every
// edge counts its weight on average, and heavier ones are there more often.
func TestWeightedInclusion(t *testing.T) {
	const draws = 20000
	g := star(12)
	g.Weights[7] = 0
	total := 0.0
	for _, w := range g.Weights {
		total += float64(w)
	}
	c := chooser{g: g}
	times, counts, squares := make([]float64, 12), make([]float64, 12), make([]float64, 12)
	for i := range draws {
		key := rng.New(9).Fold(uint64(i))
		got, sum := c.repeatedByWeight(nil, key, 0, 12, 3)
		if math.Abs(sum-total) > 1e-9 {
			t.Fatalf("the weights sum to %g, not %g", total, sum)
		}
		for _, e := range got {
			times[e]++
		}
		distinct, weights := c.distinctByWeight(nil, nil, key, 0, 12, 4)
		if slices.Sort(slices.Clone(distinct)); len(distinct) != 4 {
			t.Fatalf("4 of 12 drew %v", distinct)
		}
		for j, e := range distinct {
			counts[e] += float64(weights[j])
			squares[e] += float64(weights[j]) * float64(weights[j])
		}
	}
	for e, w := range g.Weights {
		p := 3 * float64(w) / total
		within(t, fmt.Sprintf("edge %d by weight", e), times[e], draws*(p+p*p), p, draws)
		within(t, fmt.Sprintf("what edge %d counts", e), counts[e], squares[e], float64(w), draws)
	}
}

// TestLayerwiseInclusion: vertices are drawn with the papers' probabilities, here
// computed from the dense matrix.
func TestLayerwiseInclusion(t *testing.T) {
	const t0, draws = 6, 20000
	g := odd(t, 30, 120, true)
	a := dense(g)
	dst := []uint32{0, 3, 6, 12}
	fast, err := NewFastGCN(g, everyThird(30), 4, []int{t0}, 1)
	if err != nil {
		t.Fatal(err)
	}
	ladiesMethod, err := NewLADIES(g, everyThird(30), 4, []int{t0}, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, l := fast.Sampler().(*fastGCN), ladiesMethod.Sampler().(*ladies)
	var all, local [30]float64 // probabilities of one draw, up to a factor
	var sumAll, sumLocal float64
	for u := range 30 {
		for v := range 30 {
			all[u] += a[v][u] * a[v][u]
		}
		// LADIES draws among neighbours; the loop that GCN adds is not sampled.
		for _, v := range dst {
			local[u] += neighbourPart(g, v, uint32(u), a)
		}
		sumAll, sumLocal = sumAll+all[u], sumLocal+local[u]
	}
	var times [2][30]float64
	for i := range draws {
		f.layers.take(rng.New(3).Fold(uint64(i)), f.q, nil, t0)
		for _, u := range f.layers.Vertices {
			times[0][u]++
		}
		l.draw(rng.New(4).Fold(uint64(i)), dst, t0)
		for _, u := range l.layers.Vertices {
			times[1][u]++
		}
	}
	for u := range 30 {
		within(t, fmt.Sprintf("fastgcn %d", u), times[0][u], times[0][u], 1-math.Pow(1-all[u]/sumAll, t0), draws)
		within(t, fmt.Sprintf("ladies %d", u), times[1][u], times[1][u], 1-math.Pow(1-local[u]/sumLocal, t0), draws)
	}
}

// dense is GCN's normalized adjacency, repeated edges' squares kept apart by adding
// them in quadrature.
func dense(g *graph.CSR) [][]float64 {
	n := g.Nodes()
	deg := make([]float64, n)
	for v := range n {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if g.Indices[e] != uint32(v) {
				deg[v] += float64(g.Weights[e])
			}
		}
	}
	a := make([][]float64, n)
	for v := range n {
		a[v] = make([]float64, n)
		a[v][v] = 1 / (deg[v] + 1)
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			if u := g.Indices[e]; u != uint32(v) {
				a[v][u] = math.Hypot(a[v][u], float64(g.Weights[e])/math.Sqrt((deg[v]+1)*(deg[u]+1)))
			}
		}
	}
	return a
}

// neighbourPart is LADIES' share of v in u's probability.
func neighbourPart(g *graph.CSR, v, u uint32, a [][]float64) float64 {
	if u != v {
		return a[v][u] * a[v][u]
	}
	sum := 0.0
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		if g.Indices[e] == v {
			sum += math.Pow(float64(g.Weights[e])*a[v][v], 2)
		}
	}
	return sum
}

// TestSAINTProbabilities: vertices and edges are in batches as often as the closed
// forms, or the counts, say.
func TestSAINTProbabilities(t *testing.T) {
	const draws = 20000
	g := odd(t, 25, 90, false)
	node, err := NewSAINTNodes(g, nil, 6, 1)
	if err != nil {
		t.Fatal(err)
	}
	edge, err := NewSAINTEdges(g, nil, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range map[string]*SAINT{"node": node, "edge": edge} {
		seen, together := make([]float64, 25), make([]float64, g.Edges())
		s := m.Sampler().(*saint)
		var b Batch
		for i := range draws {
			s.Sample(&b, 0, i)
			for _, v := range b.Vertices {
				seen[v]++
				for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
					if _, ok := s.table.find(g.Indices[e]); ok {
						together[e]++
					}
				}
			}
		}
		for v := range uint32(25) {
			within(t, fmt.Sprintf("%s: vertex %d", name, v), seen[v], seen[v], m.draw.Vertex(v), draws)
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				if u := g.Indices[e]; u != v {
					within(t, fmt.Sprintf("%s: edge %d-%d", name, u, v), together[e], together[e],
						m.draw.Edge(u, v, e), draws)
				}
			}
		}
	}
	walk, err := NewSAINTWalks(g, nil, 3, 2, 1)
	if err != nil {
		t.Fatal(err)
	}
	w := walk.draw.(*saintWalks)
	again, _ := NewSAINTWalks(g, nil, 3, 2, 1)
	if o := again.draw.(*saintWalks); !slices.Equal(o.again, w.again) || !slices.Equal(o.apart, w.apart) {
		t.Error("counts of walks depend on who counts")
	}
}

// TestEstimatesAreUnbiased: the mean over batches of a vertex's weighted sum is the
// sum over all its in-edges; and that of the loss is the mean over training vertices.
func TestEstimatesAreUnbiased(t *testing.T) {
	const draws = 4000
	for _, weighted := range []bool{false, true} {
		g := odd(t, 60, 400, weighted)
		for name, m := range methods(t, g, 12) {
			if name == "ladies" || name == "cluster" || name == "pinsage" {
				continue // their papers promise no such thing
			}
			if name == "saint-walk" {
				w := m.(*SAINT).draw.(*saintWalks)
				clear(w.again)
				clear(w.apart)
				w.count(rng.New(1), 40000) // the method's own estimate is from fewer
			}
			estimate(t, fmt.Sprintf("%s, weights %v", name, weighted), g, m, draws)
		}
	}
}

func estimate(t *testing.T, name string, g *graph.CSR, m Method, draws int) {
	t.Helper()
	x := func(v uint32) float64 { return float64(v%7) + 1 }
	n := g.Nodes()
	sum, squares, times := make([]float64, n), make([]float64, n), make([]int, n)
	var loss, lossSquares float64
	s := m.Sampler()
	var b Batch
	for i := range draws {
		s.Sample(&b, i/m.Batches(), i%m.Batches())
		last := &b.Blocks[len(b.Blocks)-1]
		for k, v := range b.Vertices[:last.Dst] {
			got := 0.0
			for e := last.Indptr[k]; e < last.Indptr[k+1]; e++ {
				w := 1.0
				if len(last.Weights) > 0 {
					w = float64(last.Weights[e])
				}
				got += w * x(b.Vertices[last.Indices[e]])
			}
			if len(last.RowWeights) > 0 {
				got *= float64(last.RowWeights[k])
			}
			sum[v], squares[v], times[v] = sum[v]+got, squares[v]+got*got, times[v]+1
		}
		l := 0.0
		for k, row := range b.Seeds {
			w := 1.0
			if len(b.SeedWeights) > 0 {
				w = float64(b.SeedWeights[k])
			}
			l += b.Scale * w * x(b.Vertices[row])
		}
		loss, lossSquares = loss+l, lossSquares+l*l
	}
	for v := range uint32(n) {
		want := 0.0
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			want += weight(g, e) * x(g.Indices[e])
		}
		if times[v] > 300 {
			slack := 0.0
			if strings.HasPrefix(name, "saint-walk") {
				slack = 0.02 * want * float64(times[v]) // walks' probabilities are themselves counted
			}
			within(t, fmt.Sprintf("%s: vertex %d", name, v), sum[v], squares[v]+slack*slack, want, times[v])
		}
	}
	if _, ok := m.(*SAINT); ok {
		want, seeds := 0.0, everyThird(n)
		for _, v := range seeds {
			want += x(v) / float64(len(seeds))
		}
		within(t, name+": loss", loss, lossSquares, want, draws)
	}
}
