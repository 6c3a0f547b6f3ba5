package store_test

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"starling/coflow"
	"starling/graph"
	"starling/internal/testseed"
	"starling/partition"
	"starling/rng"
	"starling/sample"
	"starling/store"
	"starling/train/traintest"
	"starling/wire"
)

// onStores does something as every worker of some parts, each on a server of its own if
// remote is set.
func onStores(t *testing.T, parts []*partition.Part, remote bool, opt store.Options,
	f func(s *store.Store, rank int) error) {
	t.Helper()
	for k, sent := range sentByStores(t, parts, remote, opt, f) {
		if (sent > 0) != remote && len(parts) > 1 {
			t.Errorf("worker %d sent %d bytes, remote %v", k, sent, remote)
		}
	}
}

// sentByStores does the same, and returns the bytes that workers sent.
func sentByStores(t *testing.T, parts []*partition.Part, remote bool, opt store.Options,
	f func(s *store.Store, rank int) error) (sent []int64) {
	t.Helper()
	o := wire.DefaultOptions()
	for k := range parts {
		server := 0
		if remote {
			server = k
		}
		o.ServerOf = append(o.ServerOf, server)
	}
	ends := wire.NewGroup(len(parts), o)
	defer traintest.Close(ends)
	stores, errs := make([]*store.Store, len(parts)), make([]error, len(parts))
	for k := range parts {
		var err error
		if stores[k], err = store.Open(context.Background(), parts[k], ends[k], opt); err != nil {
			t.Fatal(err)
		}
	}
	traintest.Each(len(parts), func(k int) { errs[k] = f(stores[k], k) })
	for k := range parts {
		if errs[k] != nil {
			t.Errorf("worker %d: %v", k, errs[k])
		}
		if err := stores[k].Close(); err != nil {
			t.Error(err)
		}
	}
	for _, e := range ends {
		sent = append(sent, e.Ledger().SentBytes().Sum())
	}
	return sent
}

// weigh gives a graph weights, some of them zero.
func weigh(g *graph.CSR) {
	g.Weights = make([]float32, g.Edges())
	for e := range g.Weights {
		g.Weights[e] = float32(max(0, rng.New(3).Float64(uint64(e))-0.1))
	}
}

// cuts are partitions of one graph, with loops and weights or without: writing one takes longer than most tests.
type cuts struct{ made map[cut]madeCut }

type cut struct {
	workers         int
	loops, weighted bool
}

type madeCut struct {
	d     *graph.Dataset
	parts []*partition.Part
}

// of is one of them, until t ends.
func (c *cuts) of(t *testing.T, workers int, loops, weighted bool) (*graph.Dataset, []*partition.Part) {
	t.Helper()
	key := cut{workers, loops, weighted}
	m, ok := c.made[key]
	if !ok {
		if m.d = traintest.Communities(t, 120, false); loops {
			m.d = traintest.WithLoops(t, m.d, false)
		}
		if weighted {
			weigh(m.d.Graph)
		}
		m.parts = traintest.Cut(t, m.d, "random", workers)
		if c.made == nil {
			c.made = map[cut]madeCut{}
		}
		c.made[key] = m
	}
	return m.d, m.parts
}

// numbering is where the vertices of a partition come from in its dataset, and the reverse.
func numbering(parts []*partition.Part) (ids, number []uint32) {
	for _, p := range parts {
		ids = append(ids, p.IDs[:p.Core()]...)
	}
	number = make([]uint32, len(ids))
	for n, id := range ids {
		number[id] = uint32(n)
	}
	return ids, number
}

// TestBlocksAreThoseOfOneMachine: whichever worker samples, and wherever the owners are, a batch is
// the one that a sampler with the whole graph draws, block for block.
func TestBlocksAreThoseOfOneMachine(t *testing.T) {
	seed := testseed.New(t)
	for _, workers := range []int{1, 2, 5} {
		var cut cuts
		for _, opt := range []store.Options{{}, {Replace: true}, {Weighted: true}, {Weighted: true, Replace: true}} {
			d, parts := cut.of(t, workers, false, opt.Weighted || workers == 2)
			for _, remote := range []bool{true, false} {
				t.Run(fmt.Sprintf("%d %+v remote %v", workers, opt, remote), func(t *testing.T) {
					ids, number := numbering(parts)
					fanouts := []int{3, sample.All, 2}
					local := &sample.Neighbour{Graph: d.Graph, SeedVertices: d.Splits.Train, Size: 40, Fanouts: fanouts,
						Replace: opt.Replace, Weighted: opt.Weighted, Seed: seed}
					method, err := local.Prepare()
					if err != nil {
						t.Fatal(err)
					}
					onStores(t, parts, remote, opt, func(s *store.Store, rank int) error {
						return sameBlocks(s, method.Sampler().(sample.SeedSampler), fanouts, seed, opt, ids, number,
							rank)
					})
				})
			}
		}
	}
}

func sameBlocks(s *store.Store, local sample.SeedSampler, fanouts []int, seed uint64, opt store.Options, ids,
	number []uint32, rank int) error {
	if err := sameDraws(s.Sampler(fanouts, seed, opt), nil, local, ids, number, rank, seed); err != nil {
		return err
	}
	chunks := s.Chunks(fanouts, seed, opt)
	chunks.Least = 3
	return sameDraws(nil, chunks, local, ids, number, rank, seed)
}

// sameDraws compares the batches of a sampler, or of one in chunks, with those of one with the whole graph.
func sameDraws(sampler *store.Sampler, chunks *store.Chunks, local sample.SeedSampler, ids, number []uint32, rank int,
	seed uint64) error {
	var want, got sample.Batch
	var known store.Known
	for batch := range 4 {
		perm := rng.New(seed).Fold(uint64(rank)).Fold(uint64(batch)).Perm(len(ids))
		seeds, numbers := []uint32{}, []uint32{}
		for _, id := range perm[:10*batch] { // the first is empty
			seeds, numbers = append(seeds, uint32(id)), append(numbers, number[id])
		}
		local.SampleSeeds(&want, seeds, 7, batch)
		var err error
		if chunks == nil {
			err = sampler.Sample(context.Background(), &got, &known, numbers, 7, batch)
		} else {
			chunks.Begin(&got, &known, 7, batch)
			err = chunks.Sample(context.Background(), numbers[:len(numbers)/3], nil, numbers[len(numbers)/3:])
		}
		if err != nil {
			return err
		}
		if !slices.Equal(known.IDs[:len(want.Vertices)], want.Vertices) || !slices.Equal(got.Seeds, want.Seeds) {
			return fmt.Errorf("batch %d: vertices %v, want %v", batch, known.IDs, want.Vertices)
		}
		for l := range want.Blocks {
			w, g := &want.Blocks[l], &got.Blocks[l]
			if w.Dst != g.Dst || w.Src != g.Src || !slices.Equal(w.Indptr, g.Indptr) ||
				!slices.Equal(w.Indices, g.Indices) ||
				!slices.Equal(w.Weights, g.Weights) || !slices.Equal(w.RowWeights, g.RowWeights) {
				return fmt.Errorf("batch %d, layer %d:\n%+v, want\n%+v", batch, l, g, w)
			}
		}
	}
	return nil
}

// TestPulledRowsAreTheDatasets: whatever is pulled, in any order and several times, is what
// the dataset has.
func TestPulledRowsAreTheDatasets(t *testing.T) {
	for _, kind := range []graph.FeatureKind{graph.Dense, graph.BFloat16, graph.Sparse} {
		for _, workers := range []int{1, 4} {
			d := traintest.Communities(t, 90, kind == graph.Sparse)
			if kind == graph.BFloat16 {
				d.Features = traintest.Rounded(d.Features)
				d.Meta.Features.Kind = kind
			}
			parts := traintest.Cut(t, d, "random", workers)
			ids, _ := numbering(parts)
			for _, remote := range []bool{true, false} {
				onStores(t, parts, remote, store.Options{}, func(s *store.Store, rank int) error {
					p := s.Puller()
					var f graph.Features
					var l graph.Labels
					for round := range 5 {
						var numbers []uint32
						for i := range 40 * round {
							numbers = append(numbers, uint32(rng.New(uint64(rank)).IntN(uint64(100*round+i), len(ids))))
						}
						err := p.Features(context.Background(), coflow.ID{}, &f, numbers)
						if err == nil {
							err = p.Labels(context.Background(), coflow.ID{}, &l, numbers)
						}
						if err != nil {
							return err
						}
						a, b := make([]float32, f.Cols), make([]float32, f.Cols)
						for i, n := range numbers {
							f.CopyRow(a, uint32(i))
							d.Features.CopyRow(b, ids[n])
							if !slices.Equal(a, b) || l.Class[i] != d.Labels.Class[ids[n]] {
								return fmt.Errorf("vertex %d: %v %d, want %v %d", ids[n], a, l.Class[i], b,
									d.Labels.Class[ids[n]])
							}
						}
					}
					return nil
				})
			}
		}
	}
}

// TestPackedRows: what travels in fewer bytes is near what was sent, and not rounded where it
// is read in place.
func TestPackedRows(t *testing.T) {
	d := traintest.Communities(t, 90, false)
	parts := traintest.Cut(t, d, "random", 3)
	ids, _ := numbering(parts)
	for packed, bound := range map[store.Packed]float64{store.BF16: 1.0 / 256, store.Int8: 1.0 / 254} {
		onStores(t, parts, true, store.Options{Rows: packed}, func(s *store.Store, rank int) error {
			var numbers []uint32
			for n := range ids {
				numbers = append(numbers, uint32(n))
			}
			var f graph.Features
			if err := s.Puller().Features(context.Background(), coflow.ID{}, &f, numbers); err != nil {
				return err
			}
			a, b := make([]float32, f.Cols), make([]float32, f.Cols)
			for n, id := range ids {
				f.CopyRow(a, uint32(n))
				d.Features.CopyRow(b, id)
				most := 0.0
				for _, x := range b {
					most = max(most, math.Abs(float64(x)))
				}
				for c := range a {
					off := math.Abs(float64(a[c] - b[c]))
					if s.Book.Owner(uint32(n)) == rank && off > 0 || off > 1.001*bound*most {
						return fmt.Errorf("vertex %d: %v, want %v", n, a, b)
					}
				}
			}
			return nil
		})
	}
}

// TestStoreRefuses: requests that no worker of the same build and partition makes.
func TestStoreRefuses(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 30, false), "chunk", 2)
	ends := wire.NewGroup(2, wire.DefaultOptions())
	defer traintest.Close(ends)
	s, err := store.Open(context.Background(), parts[0], ends[0], store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for _, c := range []struct{ service, request, want string }{
		{"pull rows", "", "0 bytes"},
		{"pull rows", "\x00\x01", "2 bytes"},
		{"pull rows", "\x00\x1d\x00\x00\x00", "features: row 29 is not worker 0's"},
		{"pull rows", "\x07\x00\x00\x00\x00", "table 7"},
		{"pull rows", "\x30\x00\x00\x00\x00", "form 3"},
		{"pull rows", "\x11\x00\x00\x00\x00", "form 1"},
		{"draw edges", "short", "5 bytes"},
		{"draw edges", strings.Repeat("\x00", 16), "a fanout of 0"},
		{"draw edges", strings.Repeat("\x00", 8) + "\x01\x00\x00\x00\x00\x00\x00\x00\xff\xff\xff\xff",
			"is not worker 0's"},
	} {
		_, err := ends[1].Call(0, wire.Call{Service: c.service, Request: []byte(c.request)}).Wait(context.Background())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q", c.service, c.request, err, c.want)
		}
	}
}

// TestChunksSideBySide: all chunks that are ready are asked at once, those of a hop before the one before it has ended,
// and whichever is there first the batch is the sampler's.
func TestChunksSideBySide(t *testing.T) {
	d := traintest.Communities(t, 300, false)
	parts := traintest.Cut(t, d, "random", 3)
	_, number := numbering(parts)
	fanouts, opt := []int{3, 4, 2}, store.Options{RemoteOnly: true}
	onStores(t, parts, true, opt, func(s *store.Store, rank int) error {
		var want, got sample.Batch
		var known store.Known
		seeds := number[40*rank : 40*rank+40]
		if err := s.Sampler(fanouts, 5, opt).Sample(context.Background(), &want, &known, seeds, 2, 1); err != nil {
			return err
		}
		c := s.Chunks(fanouts, 5, opt)
		c.Least = 4
		c.Begin(&got, &known, 2, 1)
		open := append(c.Add(seeds[:25]), c.Add(seeds[25:])...)
		if len(open) < 8 || open[0].Cost == 0 {
			return fmt.Errorf("%d chunks of 40 seeds, the first of cost %d", len(open), open[0].Cost)
		}
		open = append(open, c.Complete()...)
		early := 0
		for most := 0; len(open) > 0; most = max(most, len(open)) {
			for _, x := range open {
				if err := x.Ask(); err != nil {
					return err
				}
			}
			asked := open
			for open = nil; len(asked) > 0; asked = asked[:len(asked)-1] { // the last is there first
				x := asked[len(asked)-1]
				if err := x.Wait(context.Background()); err != nil {
					return err
				}
				if err := x.Take(); err != nil {
					return err
				}
				c.Taken(x)
				for next := c.Next(); next != nil; next = c.Next() {
					for _, ready := range c.Stitch(next) {
						if open = append(open, ready); ready.Hop > c.Ended() {
							early++
						}
					}
				}
			}
		}
		if !c.Done() || early == 0 {
			return fmt.Errorf("done %v; %d chunks were ready before their hop", c.Done(), early)
		}
		for l := range want.Blocks {
			w, g := &want.Blocks[l], &got.Blocks[l]
			if w.Dst != g.Dst || w.Src != g.Src || !slices.Equal(w.Indptr, g.Indptr) ||
				!slices.Equal(w.Indices, g.Indices) {
				return fmt.Errorf("layer %d:\n%+v, want\n%+v", l, g, w)
			}
		}
		if !slices.Equal(got.Vertices, want.Vertices) {
			return fmt.Errorf("vertices %v, want %v", got.Vertices, want.Vertices)
		}
		return nil
	})
}

// asked is an endpoint that tells of the owners that draws are asked of.
type asked struct {
	wire.Endpoint
	of func(part int)
}

func (a *asked) Call(part int, c wire.Call) *wire.Reply {
	if c.Service == "draw edges" {
		a.of(part)
	}
	return a.Endpoint.Call(part, c)
}

// TestRemoteOwnersAreAskedFirst: in every hop all requests have left, beginning with the next worker's, before the
// vertices that are here draw.
func TestRemoteOwnersAreAskedFirst(t *testing.T) {
	const workers, me = 4, 2
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "random", workers)
	o := wire.DefaultOptions()
	o.ServerOf = []int{0, 1, 2, 3}
	ends := wire.NewGroup(workers, o)
	defer traintest.Close(ends)
	var order []int
	end := &asked{Endpoint: ends[me]}
	var m *store.Sampler
	end.of = func(part int) {
		if order = append(order, part); m.DrawnHere(me) > 0 {
			t.Errorf("part %d is asked when vertices here have drawn", part)
		}
	}
	stores := make([]*store.Store, workers)
	for k := range parts {
		e := ends[k]
		if k == me {
			e = end
		}
		var err error
		if stores[k], err = store.Open(context.Background(), parts[k], e, store.Options{}); err != nil {
			t.Fatal(err)
		}
		defer stores[k].Close()
	}
	m = stores[me].Sampler([]int{4, 4}, 3, store.Options{})
	var b sample.Batch
	var known store.Known
	var seeds []uint32
	for k := range workers {
		first := uint32(parts[0].Book.Offsets[k])
		seeds = append(seeds, first, first+1)
	}
	m.Begin(&b, &known, seeds, 0, 0)
	for hop := range 2 {
		order = order[:0]
		m.Forget(me)
		if err := m.Ask(hop); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(order, []int{3, 0, 1}) || m.DrawnHere(me) == 0 {
			t.Errorf("hop %d: asked %v; %d vertices here drew", hop, order, m.DrawnHere(me))
		}
		if err := m.Wait(context.Background()); err != nil {
			t.Fatal(err)
		}
		if err := m.Stitch(hop); err != nil {
			t.Fatal(err)
		}
	}
}
