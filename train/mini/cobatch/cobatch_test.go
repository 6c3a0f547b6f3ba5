package cobatch

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/sample"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/train/traintest"
	"starling/wire"
)

func mustMini(t testing.TB, dev tensor.Device, d *graph.Dataset, o train.Options, m train.BatchSettings) *train.Result {
	t.Helper()
	return traintest.Ran(t)(batch.Run(context.Background(), dev, d, o, m, nil))
}

// together trains with cobatch on a worker for each part, with links by server.
func together(t *testing.T, parts []*partition.Part, o train.Options, m train.BatchSettings,
	options ...string) *traintest.Trained {
	t.Helper()
	o.Strategy, o.Batches = traintest.Strategy(t, "cobatch", options...), &m
	return traintest.TrainServers(t, parts, traintest.Ref, o)
}

// TestCobatchIsTheUnionBatch: the workers of servers together follow the curve of one worker with the
// whole batch, for every number of servers and of workers in them.
func TestCobatchIsTheUnionBatch(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "gat"} {
		for servers := 1; servers <= 2; servers++ {
			for each := 1; each <= 4; each++ {
				t.Run(fmt.Sprintf("%s %d servers of %d", model, servers, each), func(t *testing.T) {
					t.Parallel()
					d := traintest.Communities(t, 120, i == 1 && each%2 == 0)
					o := traintest.Options(model)
					o.Epochs, o.Model.Layers = 3, 2
					m := train.BatchSettings{Sampler: "neighbour", Size: 30, Fanouts: []int{3, 4}, Threads: 2}
					one := mustMini(t, traintest.Ref(), d, o, m)
					parts := traintest.CutForServers(t, d, []string{"random", "fennel"}[each%2], servers*each, servers)
					roots := "roots=" + []string{"owner", "random"}[(servers+each)%2]
					traintest.SameRun(t, together(t, parts, o, m, roots).Results[0], one)
					traintest.SameRun(t, together(t, parts, o, m, "together=all").Results[0], one)
				})
			}
		}
	}
}

// samplerOptions are small batches of each kind.
func samplerOptions(name string, layers int) train.BatchSettings {
	m := train.BatchSettings{Sampler: name, Size: 40, Threads: 2}
	switch name {
	case "neighbour", "pinsage":
		m.Fanouts = slices.Repeat([]int{4}, layers)
	case "fastgcn", "ladies":
		m.Fanouts = slices.Repeat([]int{150}, layers)
	case "cluster":
		m.Size, m.Clusters = 100, 12
	default:
		m.Size = 150
	}
	return m
}

// TestCobatchSamplers: likewise with every sampler whose batches are not each worker's own.
func TestCobatchSamplers(t *testing.T) {
	for i, sampler := range sample.Names {
		if sampler == "cluster" || sampler == "cluster-local" { // clusters of parts, and each worker's own
			continue
		}
		for _, model := range []string{"gcn", "sage", "gat", "gin"} {
			t.Run(sampler+" "+model, func(t *testing.T) {
				t.Parallel()
				d := traintest.Communities(t, 120, false)
				if i%2 == 1 {
					d = traintest.WithLoops(t, d, false)
				}
				o := traintest.Options(model)
				o.Epochs, o.Model.Layers = 2, 2
				m := samplerOptions(sampler, 2)
				one := mustMini(t, traintest.Ref(), d, o, m)
				parts := traintest.CutForServers(t, d, "fennel", 4, 2)
				traintest.SameRun(t, together(t, parts, o, m).Results[0], one)
				traintest.SameRun(t, together(t, parts, o, m, "together=all").Results[0], one)
			})
		}
	}
}

// TestCobatchDeepAndEdges: residual models of many layers, features of edges, weights, several labels.
func TestCobatchDeepAndEdges(t *testing.T) {
	deep := traintest.Options("ressage+")
	deep.Epochs, deep.Model.Layers = 2, 6
	edges := traintest.EdgeOptions("gat")
	edges.Epochs = 2
	weighted := traintest.Options("gcn")
	weighted.Epochs = 2
	for name, c := range map[string]struct {
		o train.Options
		d *graph.Dataset
	}{
		"deep":     {deep, traintest.Communities(t, 120, false)},
		"edges":    {edges, traintest.WithEdgeFeatures(traintest.Communities(t, 120, false))},
		"weighted": {weighted, traintest.WithLoops(t, traintest.Communities(t, 120, false), true)},
	} {
		t.Run(name, func(t *testing.T) {
			m := train.BatchSettings{Sampler: "neighbour", Size: 40, Fanouts: slices.Repeat([]int{3}, c.o.Model.Layers),
				Threads: 2}
			one := mustMini(t, traintest.Ref(), c.d, c.o, m)
			parts := traintest.CutForServers(t, c.d, "random", 4, 2)
			traintest.SameRun(t, together(t, parts, c.o, m).Results[0], one)
			traintest.SameRun(t, together(t, parts, c.o, m, "together=all").Results[0], one)
		})
	}
}

// unionOfExpansions draws the batches of servers as one worker's: the expansion of each server's seed
// vertices, one beside the other.
type unionOfExpansions struct {
	graph        *graph.CSR
	order        *sample.Order
	owner        func(id uint32) int
	servers      int
	hops, fanout int
}

func (u *unionOfExpansions) Batches() int            { return u.order.Batches() }
func (u *unionOfExpansions) Sampler() sample.Sampler { return u }

func (u *unionOfExpansions) Sample(b *sample.Batch, epoch, number int) {
	all := u.order.Batch(epoch, number)
	who := batch.Balanced(all, u.owner, u.servers, u.servers)
	b.Reset(epoch, number, 1)
	x := &b.Blocks[0]
	for s := range u.servers {
		var inner []uint32
		for i, v := range all {
			if who[i] == s {
				inner = append(inner, v)
			}
		}
		var one sample.Batch
		expand(u.graph, &one, inner, u.hops, u.fanout, epoch, number)
		first, y := uint32(len(b.Vertices)), &one.Blocks[0]
		b.Vertices = append(b.Vertices, one.Vertices...)
		for _, row := range one.Seeds {
			b.Seeds = append(b.Seeds, first+row)
		}
		for i := range y.Dst {
			for _, at := range y.Indices[y.Indptr[i]:y.Indptr[i+1]] {
				x.Indices = append(x.Indices, first+at)
			}
			x.Indptr = append(x.Indptr, int64(len(x.Indices)))
		}
		x.RowWeights = append(x.RowWeights, y.RowWeights...)
	}
	x.Dst, x.Src = len(b.Vertices), len(b.Vertices)
	b.Scale = 1 / float64(u.order.Size())
}

// expand fills b with the expansion of inner vertices of a graph that is all here. The batch's scale is
// the caller's.
func expand(g *graph.CSR, b *sample.Batch, inner []uint32, hops, fanout, epoch, number int) {
	b.Reset(epoch, number, 1)
	b.Vertices = append(b.Vertices, inner...)
	b.FirstSeeds(len(inner))
	var x sample.Expansion
	x.Begin()
	x.Selected(inner)
	last := inner
	for range hops {
		for _, v := range last {
			for _, u := range g.Neighbors(v) {
				if u != v {
					x.Link(u)
				}
			}
		}
		last = x.Pick(len(last), fanout, func(i int, add func(sample.Candidate)) {
			for _, u := range g.Neighbors(last[i]) {
				_, noLoops := degree(g, u)
				add(sample.Candidate{Vertex: u, ID: u, Degree: noLoops})
			}
		})
		x.Selected(last)
		b.Vertices = append(b.Vertices, last...)
	}
	induceExpansion(g, b)
}

// induceExpansion makes the block of all edges between a batch's vertices.
func induceExpansion(g *graph.CSR, b *sample.Batch) {
	x, at := &b.Blocks[0], map[uint32]uint32{}
	for i, v := range b.Vertices {
		at[v] = uint32(i)
	}
	x.Dst, x.Src = len(b.Vertices), len(b.Vertices)
	for _, v := range b.Vertices {
		kept := 0.0
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u, ok := at[g.Indices[e]]
			if !ok {
				continue
			}
			x.Indices = append(x.Indices, u)
			kept += edgeWeight(g, e)
			if g.EdgeDim > 0 {
				x.Places = append(x.Places, e)
			}
			if g.Weights != nil {
				x.Weights = append(x.Weights, g.Weights[e])
			}
		}
		all, _ := degree(g, v)
		x.RowWeights = append(x.RowWeights, sample.KeptWeight(all, kept))
		x.Indptr = append(x.Indptr, int64(len(x.Indices)))
	}
}

// degree is a vertex's by weight, with and without loops.
func degree(g *graph.CSR, v uint32) (all, noLoops float64) {
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		w := edgeWeight(g, e)
		all += w
		if g.Indices[e] != v {
			noLoops += w
		}
	}
	return all, noLoops
}

func edgeWeight(g *graph.CSR, edge int64) float64 {
	if g.Weights == nil {
		return 1
	}
	return float64(g.Weights[edge])
}

// trainOnMethod is Run with batches of any method.
func trainOnMethod(t *testing.T, d *graph.Dataset, o train.Options, method sample.Method) *train.Result {
	t.Helper()
	dev := traintest.Ref()
	s, err := train.WholeGraph(dev, d, o)
	if err != nil {
		t.Fatal(err)
	}
	f, err := train.NewLoop(dev, s, train.Alone{}, o, event.All())
	if err != nil {
		t.Fatal(err)
	}
	b := batch.OnMethod(f, method, d.Graph, d.Features, d.Labels, batch.Options{Threads: 1})
	defer b.Stop()
	f.TrainEpoch = b.Epoch
	r, err := f.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCobatchExpansion: with expansion-aware sampling the workers of servers follow one worker that has
// the expansions of all servers in one batch.
func TestCobatchExpansion(t *testing.T) {
	for i, model := range []string{"gcn", "sage", "gat"} {
		for _, shape := range []struct{ servers, each, hops, fanout int }{{1, 3, 1, 2}, {2, 2, 1, 3}, {2, 1, 2, 2},
			{1, 4, 0, 5}} {
			t.Run(fmt.Sprint(model, shape), func(t *testing.T) {
				t.Parallel()
				d := traintest.Communities(t, 120, false)
				if i == 0 {
					d = traintest.WithLoops(t, d, false)
				}
				o := traintest.Options(model)
				o.Epochs, o.Model.Layers = 3, 2
				m := train.BatchSettings{Sampler: "neighbour", Size: 24, Fanouts: []int{1, 1}, Threads: 2}
				parts := traintest.CutForServers(t, d, "fennel", shape.servers*shape.each, shape.servers)
				server := map[uint32]int{}
				for k, p := range parts {
					for _, id := range p.IDs[:p.Core()] {
						server[id] = k / shape.each
					}
				}
				union := &unionOfExpansions{graph: d.Graph, order: sample.NewOrder(d.Splits.Train, m.Size, o.Seed),
					owner: func(id uint32) int { return server[id] }, servers: shape.servers, hops: shape.hops,
					fanout: shape.fanout}
				one := trainOnMethod(t, d, o, union)
				got := together(t, parts, o, m, fmt.Sprintf("eas=%d,%d", shape.hops, shape.fanout))
				traintest.SameRun(t, got.Results[0], one)
			})
		}
	}
}

// TestCobatchSharesInsideServers: rows of layers travel inside servers only, and fewer rows of features
// are pulled than by workers with batches of their own.
func TestCobatchSharesInsideServers(t *testing.T) {
	d := traintest.Communities(t, 400, false)
	parts := traintest.CutForServers(t, d, "multilevel", 4, 2)
	o := traintest.Options("sage")
	o.Epochs, o.EvalEvery, o.CacheFirst = 2, 0, true
	m := train.BatchSettings{Sampler: "neighbour", Size: 60, Fanouts: []int{5, 5}, Threads: 2}
	shared := together(t, parts, o, m)
	o.Strategy, o.Batches = traintest.Strategy(t, "distdgl"), &m
	apart := traintest.TrainServers(t, parts, traintest.Ref, o)
	count := func(r *traintest.Trained) (needed int64) {
		for _, w := range r.Results {
			needed += w.Rows.Needed
		}
		return needed
	}
	if a, b := count(shared), count(apart); !(a < b) {
		t.Errorf("a server's workers together need %d rows, each by itself %d", a, b)
	}
	grads := func(link wire.Link) int64 {
		return shared.Sum(func(c wire.Class) bool { return c.Kind == wire.Gradient && c.Link == link })
	}
	if between, inside := grads(wire.BetweenServers), grads(wire.SameProcess); between > 0 || inside == 0 {
		t.Errorf("gradients of rows: %d bytes between servers, %d inside", between, inside)
	}
}

// TestCobatchOptions: options of structs that others embed are found, also where their types are not
// exported, and looking for those that it does not have finds none.
func TestCobatchOptions(t *testing.T) {
	c := traintest.Strategy(t, "cobatch", "cache=degree", "cache_budget=3MiB", "eas=2,7")
	if o, ok := train.OptionOf[batch.CacheOptions](c); !ok || o.CacheBudget != "3MiB" {
		t.Errorf("%v, %v", o, ok)
	}
	if _, ok := train.OptionOf[train.BatchOption](c); ok {
		t.Error("cobatch is a full-graph strategy")
	}
	if text, ok := train.TakingOver(c); ok {
		t.Errorf("%s takes over", text)
	}
}

// TestTogetherAll: with --together all no vertex is computed twice, and no rows of the first layer are exchanged; a
// cache saves rows of features, and the losses are the same with it.
func TestTogetherAll(t *testing.T) {
	d := traintest.Communities(t, 400, false)
	parts := traintest.CutForServers(t, d, "multilevel", 4, 4)
	o := traintest.Options("sage")
	o.Epochs, o.EvalEvery = 2, 0
	m := train.BatchSettings{Sampler: "neighbour", Size: 60, Fanouts: []int{5, 5}, Threads: 2}
	plain := together(t, parts, o, m, "together=all")
	cached := together(t, parts, o, m, "together=all", "cache=frequency", "cache_budget=2KB")
	traintest.SameCurve(t, "with a cache", cached.Results[0].Loss, plain.Results[0].Loss, 0)
	if r := plain.Results[0].Rows.Redundancy; r != 1 {
		t.Errorf("vertices are computed %g times", r)
	}
	first := func(c wire.Class) bool { return c.Layer == 0 && c.Kind != wire.Parameter }
	if n := plain.Sum(first); n > 0 {
		t.Errorf("%d bytes of the first layer were exchanged", n)
	}
	features := func(r *traintest.Trained) int64 {
		return r.Sum(func(c wire.Class) bool { return c.Kind == wire.Feature })
	}
	if a, b := features(cached), features(plain); !(a < b) {
		t.Errorf("%d bytes of features with a cache, %d without", a, b)
	}
}

// TestTogetherAllRefuses: seeds have no choice of worker.
func TestTogetherAllRefuses(t *testing.T) {
	if _, err := traintest.Choose("cobatch", "together=all", "roots=random"); err == nil {
		t.Error("seeds at random workers, of vertices that their owners compute")
	}
	if _, err := traintest.Choose("cobatch", "together=some"); err == nil {
		t.Error("--together some")
	}
}
