package sample

import (
	"context"
	"errors"

	"starling/graph"
	"starling/partition"
	"starling/rng"
)

// Cluster is Cluster-GCN (Chiang et al., KDD 2019, alg. 1): the graph is cut into
// clusters once, a batch is several of them drawn at random with the edges inside
// and between them, and the adjacency is normalised by the degrees inside the batch
// (§3.2). An epoch uses every cluster once.
type Cluster struct {
	subgraph
	members [][]uint32
	each    int // clusters of a batch
}

// NewCluster cuts g into so many clusters, of which each make a batch.
func NewCluster(ctx context.Context, g *graph.CSR, roots []uint32, clusters, each int, seed uint64) (*Cluster, error) {
	clusters = max(1, min(clusters, g.Nodes()))
	parts := make([]uint32, g.Nodes())
	if clusters > 1 {
		var err error
		parts, err = partition.By(ctx, "multilevel", &partition.Problem{Graph: g, Parts: clusters, Seed: seed})
		// Clusters of uneven sizes serve as well.
		if uneven := (*partition.Unbalanced)(nil); err != nil && !errors.As(err, &uneven) {
			return nil, err
		}
	}
	c := &Cluster{subgraph: newSubgraph(g, roots, seed), members: make([][]uint32, clusters), each: max(1, min(each, clusters))}
	for v, k := range parts {
		c.members[k] = append(c.members[k], uint32(v))
	}
	return c, nil
}

func (c *Cluster) Batches() int { return (len(c.members) + c.each - 1) / c.each }

type clusters struct {
	*Cluster
	table *table
	order []uint32
	epoch int
}

func (c *Cluster) Sampler() Sampler {
	return &clusters{Cluster: c, table: newTable(c.graph.Nodes()), epoch: -1}
}

func (s *clusters) Sample(b *Batch, epoch, number int) {
	if s.epoch != epoch {
		s.epoch, s.order = epoch, rng.New(s.seed).Fold(useOrder).Fold(uint64(epoch)).Perm(len(s.members))
	}
	b.reset(epoch, number, 1)
	s.table.begin()
	for _, k := range s.order[number*s.each : min((number+1)*s.each, len(s.order))] {
		for _, v := range s.members[k] {
			_, b.Vertices = s.table.add(b.Vertices, v)
		}
	}
	b.Blocks[0].OwnDegrees = true
	s.induce(b, s.table, nil)
	// The batches' shares of the training vertices differ; every vertex counts alike.
	b.Scale = float64(s.Batches()) / float64(s.roots)
}
