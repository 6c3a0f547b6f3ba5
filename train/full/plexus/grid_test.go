package plexus

import (
	"math"
	"slices"
	"testing"

	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/train"
	"starling/train/site"
	"starling/train/traintest"
	"starling/wire"
)

// TestGroups: every rank is in one group per axis, at its place, and axes meet in it alone.
func TestGroups(t *testing.T) {
	for _, g := range []grid{{1, 1, 1}, {2, 3, 4}, {4, 1, 2}} {
		for rank := range g.workers() {
			seen := map[int]int{}
			for axis := range 3 {
				group := g.group(axis, rank)
				if len(group) != g.along(axis) || group[g.place(axis, rank)] != rank {
					t.Errorf("%v: rank %d is not in its place of %v", g, rank, group)
				}
				for _, q := range group {
					seen[q]++
				}
			}
			if len(seen) != g.x+g.y+g.z-2 || seen[rank] != 3 {
				t.Errorf("%v: the groups of rank %d are %v", g, rank, seen)
			}
		}
	}
	if n := len(grids(64)); n != 28 {
		t.Errorf("64 workers have %d grids", n)
	}
}

// made is the blocks of all workers of a grid.
func made(t *testing.T, data *graph.Dataset, method string, workers int, text string) []*blocks {
	t.Helper()
	o := traintest.Options("gcn")
	o.Model.Layers = 3
	c, err := parseOptions(text)
	if err != nil {
		t.Fatal(err)
	}
	o.Strategy = traintest.Made(Strategy, c)
	list := make([]*blocks, workers)
	traintest.OnAll(t, traintest.Cut(t, data, method, workers), func(s *train.Site) (wire.Bytes, error) {
		s.Opt = o
		w := site.Worker(s, exchange.DefaultRows, exchange.RelayOption{})
		b := &blocks{w: w, moved: exchange.NewRows(w), kind: nn.Symmetric}
		b.settle(c)
		list[b.rank] = b
		out := b.edges()
		return b.prepared(out), b.receiveEdges(out)
	})
	return list
}

func parseOptions(text string) (o options, err error) {
	o = options{Grid: text, Products: "grid"}
	return o, o.Validate()
}

// TestPermutationBalances: on communities that are cut where they are, so that nearly all edges are on the diagonal,
// blocks of A have about as many edges each, and all of them together.
func TestPermutationBalances(t *testing.T) {
	d := traintest.Communities(t, 1600, false)
	list := made(t, d, "multilevel", 8, "2x2x2")
	var counts []int64
	var edges int64
	for _, b := range list {
		n := b.edge.EdgeCount(0, b.edge.Nodes())
		counts = append(counts, n)
		edges += n
	}
	want := d.Graph.WithoutSelfLoops().Edges() + int64(d.Graph.Nodes())
	if edges != 2*want { // both workers along y have a block
		t.Errorf("blocks have %d edges, want %d each of two times", edges, want)
	}
	if most, mean := slices.Max(counts), float64(edges)/8; float64(most) > 1.15*mean {
		t.Errorf("the largest block has %.2f times the mean: %v", float64(most)/mean, counts)
	}
}

// TestModelChooses: what the model predicts to be sent is what is planned, and its best grid is the cheapest of all.
func TestModelChooses(t *testing.T) {
	m := &model{vertices: 1e6, edges: 5e7, number: 4, cached: true, sameServer: func(a, b int) bool { return a == b },
		layers: []nn.Product{{Layer: 0, In: 128, Out: 128, Constant: true}, {Layer: 1, In: 128, Out: 128, WantDX: true},
			{Layer: 2, In: 128, Out: 40, WantDX: true}}}
	for _, workers := range []int{1, 4, 6, 64} {
		best := m.best(workers)
		for _, g := range grids(workers) {
			if m.seconds(g) < m.seconds(best) {
				t.Errorf("%d workers: %v takes %g s, %v %g s", workers, best, m.seconds(best), g, m.seconds(g))
			}
		}
		if workers == 64 && slices.Contains([]string{"64x1x1", "1x64x1", "1x1x64"}, best.String()) {
			t.Errorf("64 workers are in a line: %v", best)
		}
	}
	list := made(t, traintest.Communities(t, 120, false), "chunk", 8, "2x2x2")
	predicted := modelOf(list[0].w, false)
	for i, l := range predicted.layers {
		sent := wire.Bytes{}
		for _, b := range list {
			p := &products{b}
			if !l.Constant {
				p.planSums(sent, rowsOf(l.Layer), l)
			}
			p.planProducts(sent, l)
			p.planGrads(sent, l)
		}
		got := 0.0
		for _, numbers := range predicted.sent(list[0].grid, l, once(!l.Constant), once(l.WantDX)) {
			got += 8 * numbers * predicted.vertices * predicted.number
		}
		if math.Abs(got-float64(sent.Sum())) > 1e-6*got {
			t.Errorf("layer %d: the model has %g bytes, the plan %d", i, got, sent.Sum())
		}
	}
}
