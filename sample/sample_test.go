package sample

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"slices"
	"sync"
	"testing"

	"starling/graph"
	"starling/rng"
)

// odd is a random graph with loops, repeated edges, hubs and vertices without edges.
func odd(t testing.TB, n, edges int, weighted bool) *graph.CSR {
	t.Helper()
	key := rng.New(11)
	var src, dst []uint32
	var weights []float32
	for i := range uint64(edges) {
		u, v := key.IntN(3*i, n), key.IntN(3*i+1, n)
		switch {
		case i%4 == 0:
			v = int(i) % 3 // hubs
		case i%17 == 0:
			u = v
		}
		if v%10 == 9 {
			continue // no in-edges
		}
		src, dst = append(src, uint32(u)), append(dst, uint32(v))
		if weighted {
			weights = append(weights, float32(key.Float64(3*i+2))*3)
		}
		if i%23 == 0 {
			src, dst = append(src, uint32(u)), append(dst, uint32(v))
			if weighted {
				weights = append(weights, 0)
			}
		}
	}
	g, err := graph.FromEdges(n, src, dst, weights, graph.BuildOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func everyThird(n int) (ids []uint32) {
	for v := range n {
		if v%3 == 0 {
			ids = append(ids, uint32(v))
		}
	}
	return ids
}

// methods are all there are, on one graph.
func methods(t testing.TB, g *graph.CSR, size int) map[string]Method {
	t.Helper()
	seeds := everyThird(g.Nodes())
	list := map[string]Method{}
	add := func(name string, m Method, err error) {
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list[name] = m
	}
	for _, replace := range []bool{false, true} {
		for _, weighted := range []bool{false, true} {
			if weighted && g.Weights == nil {
				continue
			}
			m, err := (&Neighbour{Graph: g, SeedVertices: seeds, Size: size, Fanouts: []int{4, 3}, Replace: replace,
				Weighted: weighted, Seed: 5}).Prepare()
			add(fmt.Sprintf("neighbour replace=%v weighted=%v", replace, weighted), m, err)
		}
	}
	fast, err := NewFastGCN(g, seeds, size, []int{30, 30}, 5)
	add("fastgcn", fast, err)
	ladies, err := NewLADIES(g, seeds, size, []int{30, 30}, 5)
	add("ladies", ladies, err)
	pinsage, err := NewPinSAGE(g, seeds, size, []int{4, 3}, Visits{Walks: 6, Length: 4, Restart: 0.4}, 5)
	add("pinsage", pinsage, err)
	cluster, err := NewCluster(context.Background(), g, seeds, 8, 3, 5)
	add("cluster", cluster, err)
	node, err := NewSAINTNodes(g, seeds, size, 5)
	add("saint-node", node, err)
	edge, err := NewSAINTEdges(g, seeds, size, 5)
	add("saint-edge", edge, err)
	walk, err := NewSAINTWalks(g, seeds, size/4+1, 3, 5)
	add("saint-walk", walk, err)
	return list
}

// copyOf keeps what a sampler would overwrite.
func copyOf(b *Batch) *Batch {
	c := *b
	c.Vertices, c.Seeds, c.SeedWeights = slices.Clone(b.Vertices), slices.Clone(b.Seeds), slices.Clone(b.SeedWeights)
	c.Blocks = slices.Clone(b.Blocks)
	for i := range c.Blocks {
		x := &c.Blocks[i]
		x.Indptr, x.Indices = slices.Clone(x.Indptr), slices.Clone(x.Indices)
		x.Weights, x.RowWeights = slices.Clone(x.Weights), slices.Clone(x.RowWeights)
	}
	return &c
}

// TestBlocksAreOfTheGraph: every block has only edges of the graph, between the rows
// it says, for every method.
func TestBlocksAreOfTheGraph(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		g := odd(t, 100, 600, weighted)
		for name, m := range methods(t, g, 7) {
			s := m.Sampler()
			var b Batch
			for epoch := range 2 {
				for i := range m.Batches() {
					s.Sample(&b, epoch, i)
					checkBatch(t, name, g, &b)
				}
			}
		}
	}
}

func checkBatch(t *testing.T, name string, g *graph.CSR, b *Batch) {
	t.Helper()
	seen := map[uint32]bool{}
	for _, v := range b.Vertices {
		if seen[v] {
			t.Fatalf("%s: vertex %d has two rows", name, v)
		}
		seen[v] = true
	}
	for l := range b.Blocks {
		x := &b.Blocks[l]
		if len(x.Indptr) != x.Dst+1 || x.Dst > x.Src || x.Src > len(b.Vertices) ||
			int(x.Indptr[x.Dst]) != len(x.Indices) {
			t.Fatalf("%s: block %d of %d x %d has %d offsets to %d edges, last %d", name, l, x.Dst, x.Src,
				len(x.Indptr), len(x.Indices), x.Indptr[x.Dst])
		}
		if l > 0 && b.Blocks[l-1].Dst != x.Src {
			t.Fatalf("%s: layer %d has %d sources, the one before %d destinations", name, l, x.Src, b.Blocks[l-1].Dst)
		}
		if n := len(x.Weights); n != 0 && n != len(x.Indices) {
			t.Fatalf("%s: %d weights for %d edges", name, n, len(x.Indices))
		}
		if n := len(x.RowWeights); n != 0 && n != x.Dst {
			t.Fatalf("%s: %d weights for %d rows", name, n, x.Dst)
		}
		for i := range x.Dst {
			for _, row := range x.Indices[x.Indptr[i]:x.Indptr[i+1]] {
				// Neighbours by visits may be further away.
				if int(row) >= x.Src ||
					name != "pinsage" && !slices.Contains(g.Neighbors(b.Vertices[i]), b.Vertices[row]) {
					t.Fatalf("%s: layer %d has an edge from row %d of %d to vertex %d", name, l, row, x.Src,
						b.Vertices[i])
				}
			}
		}
	}
}

// TestSamplersAgree: batches are functions of their numbers, whichever sampler draws
// them, and after whichever others.
func TestSamplersAgree(t *testing.T) {
	g := odd(t, 300, 2000, true)
	for name, m := range methods(t, g, 16) {
		n := m.Batches()
		want := make([]*Batch, 2*n)
		s := m.Sampler()
		var b Batch
		for i := range want {
			s.Sample(&b, i/n, i%n)
			want[i] = copyOf(&b)
		}
		var wg sync.WaitGroup
		for w := range 4 {
			wg.Go(func() {
				s := m.Sampler()
				var b Batch
				for k, p := range rng.New(uint64(w)).Perm(2 * n) {
					s.Sample(&b, int(p)/n, int(p)%n)
					if got := copyOf(&b); !reflect.DeepEqual(got, want[p]) {
						t.Errorf("%s: batch %d is another when sampled as number %d of sampler %d", name, p, k, w)
						return
					}
				}
			})
		}
		wg.Wait()
		if n > 1 && reflect.DeepEqual(want[0].Vertices, want[n].Vertices) {
			t.Errorf("%s: the first batches of two epochs are the same", name)
		}
	}
}

// TestAllNeighbours: with all neighbours, or more draws than there are, blocks are
// rows of the graph.
func TestAllNeighbours(t *testing.T) {
	g := odd(t, 80, 500, true)
	for _, fanout := range []int{All, 1000} {
		for _, byID := range []bool{false, true} {
			m, err := (&Neighbour{Graph: g, SeedVertices: everyThird(80), Size: 5, Fanouts: []int{fanout, fanout},
				ByID: byID}).Prepare()
			if err != nil {
				t.Fatal(err)
			}
			s := m.Sampler()
			var b Batch
			for i := range m.Batches() {
				s.Sample(&b, 0, i)
				for l := range b.Blocks {
					sameAsGraph(t, g, &b, &b.Blocks[l])
				}
				if b.Blocks[0].ByID != byID || b.Blocks[1].ByID {
					t.Fatal("only the first block may be by id")
				}
			}
		}
	}
}

func sameAsGraph(t *testing.T, g *graph.CSR, b *Batch, x *Block) {
	t.Helper()
	for i, v := range b.Vertices[:x.Dst] {
		var ids []uint32
		for _, row := range x.Indices[x.Indptr[i]:x.Indptr[i+1]] {
			if x.ByID {
				ids = append(ids, row)
			} else {
				ids = append(ids, b.Vertices[row])
			}
		}
		if !slices.Equal(ids, g.Neighbors(v)) ||
			!slices.Equal(x.Weights[x.Indptr[i]:x.Indptr[i+1]], g.Weights[g.Indptr[v]:g.Indptr[v+1]]) {
			t.Fatalf("vertex %d has the edges %v, in the graph %v", v, ids, g.Neighbors(v))
		}
	}
}

// TestByIDIsTheSameBatch: leaving ids changes the first block's numbers only.
func TestByIDIsTheSameBatch(t *testing.T) {
	g := odd(t, 200, 3000, false)
	draw := func(byID bool) *Batch {
		m, err := (&Neighbour{Graph: g, SeedVertices: everyThird(200), Size: 10, Fanouts: []int{5, 4, 3}, ByID: byID,
			Seed: 2}).Prepare()
		if err != nil {
			t.Fatal(err)
		}
		var b Batch
		m.Sampler().Sample(&b, 1, 2)
		return &b
	}
	rows, ids := draw(false), draw(true)
	if !reflect.DeepEqual(rows.Blocks[1:], ids.Blocks[1:]) ||
		!slices.Equal(ids.Vertices, rows.Vertices[:len(ids.Vertices)]) {
		t.Fatal("later layers differ")
	}
	for k, row := range rows.Blocks[0].Indices {
		if rows.Vertices[row] != ids.Blocks[0].Indices[k] {
			t.Fatalf("edge %d comes from %d and from %d", k, rows.Vertices[row], ids.Blocks[0].Indices[k])
		}
	}
}

// TestEverySeedOncePerEpoch: and every one counts equally.
func TestEverySeedOncePerEpoch(t *testing.T) {
	g := odd(t, 100, 500, false)
	seeds := everyThird(100) // 34
	for name, m := range methods(t, g, 10) {
		switch m.(type) {
		case *SAINT:
			continue // draws anew
		case *Cluster:
		default:
			if m.Batches() != 4 {
				t.Errorf("%s: %d batches of 10 for %d seeds", name, m.Batches(), len(seeds))
			}
		}
		var got []uint32
		scales := map[float64]bool{}
		s := m.Sampler()
		var b Batch
		for i := range m.Batches() {
			s.Sample(&b, 3, i)
			scales[b.Scale] = true
			for _, row := range b.Seeds {
				got = append(got, b.Vertices[row])
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, seeds) || len(scales) != 1 {
			t.Errorf("%s: the seeds of an epoch are %v at scales %v", name, got, scales)
		}
	}
}

// TestClusterHasAllEdgesInside compares with a search.
func TestClusterHasAllEdgesInside(t *testing.T) {
	g := odd(t, 100, 800, true)
	for name, m := range methods(t, g, 20) {
		var b Batch
		m.Sampler().Sample(&b, 0, 0)
		if len(b.Blocks) != 1 {
			continue
		}
		want := 0
		for _, v := range b.Vertices {
			for _, u := range g.Neighbors(v) {
				if slices.Contains(b.Vertices, u) {
					want++
				}
			}
		}
		if got := b.Edges(); got != want {
			t.Errorf("%s: %d edges inside, want %d", name, got, want)
		}
		if _, ok := m.(*Cluster); ok != b.Blocks[0].OwnDegrees {
			t.Errorf("%s: own degrees %v", name, b.Blocks[0].OwnDegrees)
		}
	}
}

// TestEdgeCases: nothing to draw from.
func TestEdgeCases(t *testing.T) {
	lonely := &graph.CSR{Indptr: make([]int64, 6)} // five vertices, no edge
	for name, m := range methods(t, lonely, 3) {
		s := m.Sampler()
		var b Batch
		for i := range m.Batches() {
			s.Sample(&b, 0, i)
			checkBatch(t, name, lonely, &b)
		}
	}
	for _, n := range []*Neighbour{
		{Graph: lonely, Fanouts: []int{0}}, {Graph: lonely, Fanouts: []int{-2}}, {Graph: lonely, Fanouts: []int{2},
			Weighted: true},
		{Graph: &graph.CSR{Indptr: []int64{0, 1}, Indices: []uint32{0}, Weights: []float32{-1}}, Fanouts: []int{2},
			Weighted: true},
	} {
		if _, err := n.Prepare(); err == nil {
			t.Errorf("fanouts %v, weighted %v: no error", n.Fanouts, n.Weighted)
		}
	}
	if _, err := NewFastGCN(lonely, []uint32{0}, 1, []int{0}, 1); err == nil {
		t.Error("no draws and no error")
	}
}

// TestWeightsOfZero: edges that weigh nothing make no edge count NaN.
func TestWeightsOfZero(t *testing.T) {
	g := odd(t, 60, 300, true)
	for e := range g.Weights {
		if e%3 > 0 {
			g.Weights[e] = 0
		}
	}
	finite := func(list []float32) bool {
		return !slices.ContainsFunc(list,
			func(w float32) bool { return math.IsNaN(float64(w)) || math.IsInf(float64(w), 0) })
	}
	for name, m := range methods(t, g, 4) {
		s := m.Sampler()
		var b Batch
		for i := range m.Batches() {
			s.Sample(&b, 0, i)
			for k := range b.Blocks {
				if !finite(b.Blocks[k].Weights) || !finite(b.Blocks[k].RowWeights) {
					t.Fatalf("%s, batch %d, block %d: weights %v, of rows %v", name, i, k, b.Blocks[k].Weights,
						b.Blocks[k].RowWeights)
				}
			}
		}
	}
}

// within fails when a mean of draws is further from what it should be than five
// standard errors, which happens by chance once in a million times.
func within(t *testing.T, what string, sum, squares, want float64, draws int) {
	t.Helper()
	mean := sum / float64(draws)
	deviation := math.Sqrt(max(squares/float64(draws)-mean*mean, 0)/float64(draws)) + 1e-6*math.Abs(want)
	if math.Abs(mean-want) > 5*deviation+3/float64(draws) {
		t.Errorf("%s: mean %.5f over %d draws, want %.5f ± %.5f", what, mean, draws, want, deviation)
	}
}
