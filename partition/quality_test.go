package partition

import (
	"math"
	"math/rand/v2"
	"testing"

	"starling/graph"
)

// recount measures with sets and nothing else.
func recount(g *graph.CSR, parts []uint32, k int, symmetric bool) (cut int64, need []map[uint32]bool) {
	need = make([]map[uint32]bool, k)
	for p := range need {
		need[p] = map[uint32]bool{}
	}
	for v := range g.Nodes() {
		for _, u := range g.Neighbors(uint32(v)) {
			if parts[u] != parts[v] {
				cut++
				need[parts[v]][u] = true
			}
		}
	}
	if symmetric {
		cut /= 2
	}
	return cut, need
}

func TestMetricsEqualASlowRecount(t *testing.T) {
	seeds(t, 60, func(t *testing.T, r *rand.Rand) {
		g := randomGraph(t, r, 1+r.IntN(80))
		k := 1 + r.IntN(min(9, g.Nodes()))
		parts := make([]uint32, g.Nodes())
		for v := range parts {
			parts[v] = uint32(r.IntN(k))
		}
		cons := []Constraint{{Name: "vertices"}, {Name: "edges", Weight: degreeWeights(g)}}
		q := Measure(g, parts, k, cons, g.Symmetric(), 1+r.IntN(3))
		cut, need := recount(g, parts, k, g.Symmetric())
		var volume int64
		for p := range k {
			volume += int64(len(need[p]))
			if q.Remote[p] != int64(len(need[p])) {
				t.Fatalf("part %d: %d remote, counted %d", p, q.Remote[p], len(need[p]))
			}
			from := make([]int64, k)
			var core, edges int64
			for u := range need[p] {
				from[parts[u]]++
			}
			for v := range parts {
				if int(parts[v]) == p {
					core++
					edges += int64(g.Degree(uint32(v)))
				}
			}
			if q.Core[p] != core || q.Edges[p] != edges {
				t.Fatalf("part %d: %d vertices, %d edges, counted %d, %d", p, q.Core[p], q.Edges[p], core, edges)
			}
			for from, rows := range from {
				if q.Traffic[p][from] != rows {
					t.Fatalf("traffic %d ← %d: %d, counted %d", p, from, q.Traffic[p][from], rows)
				}
			}
		}
		if q.EdgeCut != cut || q.CommVolume != volume {
			t.Fatalf("cut %d volume %d, counted %d %d", q.EdgeCut, q.CommVolume, cut, volume)
		}
		for name, total := range map[string]int64{"vertices": int64(g.Nodes()), "edges": g.Edges()} {
			heaviest := 0.0
			for p := range k {
				w := map[string]int64{"vertices": q.Core[p], "edges": q.Edges[p]}[name]
				heaviest = max(heaviest, float64(w))
			}
			want := 1.0
			if total > 0 {
				want = heaviest / (float64(total) / float64(k))
			}
			if math.Abs(q.Balance[name]-want) > 1e-12 {
				t.Fatalf("balance of %s: %g, counted %g", name, q.Balance[name], want)
			}
		}
	})
}

// A layer's rows, by hand: 3-layer SAGE 100 → 64 → 64 → 10 sends nothing for the
// first layer, 64 wide for the second, and 10 wide for the third.
func TestPlanOfSAGE(t *testing.T) {
	q := &Quality{CommVolume: 1000, Core: []int64{10, 10}, Remote: []int64{500, 500}, Edges: []int64{50, 50}}
	p := q.PlanFor(Model{Name: "sage", Layers: 3, Hidden: 64, Heads: 1, In: 100, Out: 10, FeatureLen: 400})
	params := int64(2*100*64 + 64 + 2*64*64 + 64 + 2*64*10 + 10)
	want := 4*1000*2*int64(64+10) + 2*4*params
	if p.EpochBytes != want || p.FeatureBytes != 400_000 || p.GradientBytes != 2*4*params {
		t.Fatalf("%+v, want %d", p, want)
	}
	sparse := q.PlanFor(Model{Name: "gcn", Layers: 2, Hidden: 16, Heads: 1, In: 1433, Out: 7, SparseIn: true,
		FeatureLen: 72})
	if l := sparse.Layers; l[0].Forward != 16 || l[0].Backward != 16 || l[1].Forward != 7 || sparse.FeatureBytes != 0 {
		t.Fatalf("%+v", sparse)
	}
	if deep := q.PlanFor(Model{Name: "resgcn+", Layers: 28, Hidden: 32, Heads: 1, In: 9,
		Out: 3}); len(deep.Layers) != 28 || deep.Layers[0].Forward != 32 || deep.FeatureBytes != 0 {
		t.Fatalf("%+v", deep)
	}
	if mlp := q.PlanFor(Model{Name: "mlp", Layers: 2, Hidden: 8, Heads: 1, In: 4, Out: 2}); len(mlp.Layers) != 0 {
		t.Fatalf("%+v", mlp)
	}
}

// With all neighbours taken, what sampling pulls is the remote part of the roots'
// whole neighbourhoods.
func TestSampledPlanTakesWholeNeighbourhoods(t *testing.T) {
	seeds(t, 20, func(t *testing.T, r *rand.Rand) {
		g := randomGraph(t, r, 2+r.IntN(60))
		n, k := g.Nodes(), 2
		parts, train := make([]uint32, n), []uint32{}
		for v := range parts {
			parts[v] = uint32(r.IntN(k))
			train = append(train, uint32(v))
		}
		m := Model{BatchSize: n, Fanout: []int{n * 10, n * 10}, FeatureLen: 4}
		p := &Plan{}
		p.AddSampled(g, parts, train, m, k, 1)
		var want int64
		for part := range k {
			reach := map[uint32]bool{}
			for v := range parts {
				if int(parts[v]) == part {
					reach[uint32(v)] = true
				}
			}
			for range 2 {
				wider := map[uint32]bool{}
				for v := range reach {
					wider[v] = true
					for _, u := range g.Neighbors(v) {
						wider[u] = true
					}
				}
				reach = wider
			}
			for v := range reach {
				if int(parts[v]) != part {
					want++
				}
			}
		}
		if p.Sampled.RemoteRows != want || p.Sampled.Batches != 1 || p.Sampled.EpochBytes != 4*want {
			t.Fatalf("%+v, want %d", p.Sampled, want)
		}
	})
}
