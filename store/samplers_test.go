package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
	"starling/sample"
	"starling/store"
	"starling/train/traintest"
)

// sampling is a sampler with the whole graph, and one over parts, which draw the same.
type sampling struct {
	name   string
	local  func(t *testing.T, d *graph.Dataset, seed uint64) sample.Method
	remote func(s *store.Store, d *dataset, seed uint64) (drawBatch, error)
}

// dataset is what the workers of a test know.
type dataset struct {
	number   []uint32 // by id
	order    *sample.Order
	training []bool // by number
	layers   int
}

type drawBatch func(b *sample.Batch, known *store.Known, epoch, number int) error

const drawnSize, drawnWalk = 30, 2

var drawnPerLayer = []int{20, 15}

func must[M sample.Method](t *testing.T) func(m M, err error) sample.Method {
	return func(m M, err error) sample.Method {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

// layerwise draws all seeds of a batch.
func layerwise(m *store.LayerSampler, d *dataset) drawBatch {
	return func(b *sample.Batch, known *store.Known, epoch, number int) error {
		var seeds []uint32
		for _, id := range d.order.Batch(epoch, number) {
			seeds = append(seeds, d.number[id])
		}
		return m.Sample(context.Background(), b, known, seeds, nil, epoch, number)
	}
}

func subgraphs(m *store.SubgraphSampler) drawBatch {
	return func(b *sample.Batch, known *store.Known, epoch, number int) error {
		_, err := m.Sample(context.Background(), b, known, nil, epoch, number)
		return err
	}
}

var samplings = []sampling{
	{"fastgcn", func(t *testing.T, d *graph.Dataset, seed uint64) sample.Method {
		return must[*sample.FastGCN](t)(sample.NewFastGCN(d.Graph, d.Splits.Train, drawnSize, drawnPerLayer, seed))
	}, func(s *store.Store, d *dataset, seed uint64) (drawBatch, error) {
		v, err := s.ShareNorms(context.Background())
		if err != nil {
			return nil, err
		}
		return layerwise(s.FastGCN(v, sample.NewDistribution(v.Columns[0]), drawnPerLayer, seed), d), nil
	}},
	{"ladies", func(t *testing.T, d *graph.Dataset, seed uint64) sample.Method {
		return must[*sample.LADIES](t)(sample.NewLADIES(d.Graph, d.Splits.Train, drawnSize, drawnPerLayer, seed))
	}, func(s *store.Store, d *dataset, seed uint64) (drawBatch, error) {
		return layerwise(s.LADIES(drawnPerLayer, seed), d), nil
	}},
	{"saint-node", func(t *testing.T, d *graph.Dataset, seed uint64) sample.Method {
		return must[*sample.SAINT](t)(sample.NewSAINTNodes(d.Graph, d.Splits.Train, drawnSize, seed))
	}, func(s *store.Store, d *dataset, seed uint64) (drawBatch, error) {
		v, err := s.ShareNorms(context.Background())
		if err != nil {
			return nil, err
		}
		draws := sample.NewSAINTNodeDraws(v.Columns[0], drawnSize)
		return subgraphs(s.SAINTNodes(v, draws, d.training, d.layers, 1, seed)), nil
	}},
	{"saint-edge", func(t *testing.T, d *graph.Dataset, seed uint64) sample.Method {
		return must[*sample.SAINT](t)(sample.NewSAINTEdges(d.Graph, d.Splits.Train, drawnSize, seed))
	}, func(s *store.Store, d *dataset, seed uint64) (drawBatch, error) {
		v, err := s.ShareEdgeSums(context.Background())
		if err != nil {
			return nil, err
		}
		draws := sample.NewSAINTEdgeDraws(v.Columns[0], v.Columns[1], drawnSize)
		return subgraphs(s.SAINTEdges(v, draws, d.training, d.layers, 1, seed)), nil
	}},
	{"saint-walk", func(t *testing.T, d *graph.Dataset, seed uint64) sample.Method {
		return must[*sample.SAINT](t)(sample.NewSAINTWalks(d.Graph, d.Splits.Train, drawnSize, drawnWalk, seed))
	}, func(s *store.Store, d *dataset, seed uint64) (drawBatch, error) {
		batches := sample.SAINTBatches(len(d.number), drawnSize*(drawnWalk+1))
		v, counted, err := s.CountWalks(context.Background(), drawnSize, drawnWalk, batches, seed)
		if err != nil {
			return nil, err
		}
		return subgraphs(s.SAINTWalks(v, counted, drawnSize, drawnWalk, d.training, d.layers, 1, seed)), nil
	}},
}

// TestSamplersAreThoseOfOneMachine: every sampler that needs to know more than a vertex's in-edges
// draws the batches of one with the whole graph, block for block and to the bit.
func TestSamplersAreThoseOfOneMachine(t *testing.T) {
	seed := testseed.New(t)
	var made cuts
	for i, m := range samplings {
		for k, workers := range []int{1, 2, 3, 5, 8} {
			remote, weighted := (i+k)%3 > 0, (i+k)%2 == 0
			d, parts := made.of(t, workers, weighted != (i%2 == 0), weighted)
			t.Run(fmt.Sprintf("%s %d remote %v weighted %v", m.name, workers, remote, weighted), func(t *testing.T) {
				ids, number := numbering(parts)
				known := &dataset{number: number, training: make([]bool, len(ids)), layers: 2,
					order: sample.NewOrder(d.Splits.Train, drawnSize, seed)}
				for _, id := range d.Splits.Train {
					known.training[number[id]] = true
				}
				local := m.local(t, d, seed)
				sentByStores(t, parts, remote, store.Options{RemoteOnly: remote},
					func(s *store.Store, _ int) error {
						draw, err := m.remote(s, known, seed)
						if err != nil {
							return err
						}
						return sameBatches(local.Sampler(), local.Batches(), draw)
					})
			})
		}
	}
}

func sameBatches(local sample.Sampler, batches int, draw drawBatch) error {
	var want, got sample.Batch
	var known store.Known
	for _, at := range [][2]int{{0, 0}, {3, min(1, batches-1)}} {
		local.Sample(&want, at[0], at[1])
		if err := draw(&got, &known, at[0], at[1]); err != nil {
			return err
		}
		if !slices.Equal(known.IDs[:len(want.Vertices)], want.Vertices) || !slices.Equal(got.Seeds, want.Seeds) ||
			!slices.Equal(got.SeedWeights, want.SeedWeights) {
			return fmt.Errorf("batch %v: vertices %v, seeds %v %v, want %v, %v %v", at, known.IDs, got.Seeds,
				got.SeedWeights, want.Vertices, want.Seeds, want.SeedWeights)
		}
		for l := range want.Blocks {
			w, g := &want.Blocks[l], &got.Blocks[l]
			if w.Dst != g.Dst || w.Src != g.Src || !slices.Equal(w.Indptr, g.Indptr) ||
				!slices.Equal(w.Indices, g.Indices) || !slices.Equal(w.Weights, g.Weights) {
				return fmt.Errorf("batch %v, layer %d:\n%+v, want\n%+v", at, l, g, w)
			}
		}
	}
	return nil
}

// TestClustersAreThoseOfOneMachine: with the clusters that the parts have made, batches of clusters
// equal the batches of a sampler with the whole graph; and a worker's own clusters have its own vertices.
func TestClustersAreThoseOfOneMachine(t *testing.T) {
	seed := testseed.New(t)
	for _, workers := range []int{1, 2, 3, 8} {
		d := traintest.Communities(t, 240, false)
		parts := traintest.Cut(t, d, "random", workers)
		ids, number := numbering(parts)
		training := make([]bool, len(ids))
		for _, id := range d.Splits.Train {
			training[number[id]] = true
		}
		onStores(t, parts, true, store.Options{RemoteOnly: true}, func(s *store.Store, rank int) error {
			v, count, err := s.ShareClusters(context.Background(), 24, seed)
			if err != nil {
				return err
			}
			of := make([]uint32, len(ids))
			for id := range of {
				of[id] = uint32(v.Columns[0][id])
			}
			c := store.NewClusters(v, count, 5, seed)
			local := sample.NewClusterOf(d.Graph, d.Splits.Train, of, count, 5, seed)
			if c.Batches() != local.Batches() {
				return fmt.Errorf("%d batches, want %d", c.Batches(), local.Batches())
			}
			if err := sameBatches(local.Sampler(), c.Batches(), subgraphs(c.Sampler(s, training, 2, 1))); err != nil {
				return err
			}
			own, err := s.OwnClusters(context.Background(), 24, seed)
			if err != nil {
				return err
			}
			var b sample.Batch
			var known store.Known
			if _, err := s.NewOwnClusters(own, 2, seed).Sampler(s, training, 2, 1).Sample(context.Background(), &b,
				&known, nil, 0, 0); err != nil {
				return err
			}
			for _, v := range b.Vertices {
				if s.Book.Owner(v) != rank {
					return fmt.Errorf("vertex %d of worker %d in worker %d's own clusters", v, s.Book.Owner(v), rank)
				}
			}
			return nil
		})
	}
}
