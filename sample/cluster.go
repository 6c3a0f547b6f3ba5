package sample

import (
	"context"
	"errors"

	"starling/graph"
	"starling/partition"
	"starling/rng"
)

// Cluster is Cluster-GCN (Chiang et al., KDD 2019, alg. 1): the graph is partitioned into
// clusters once, a batch is several of them drawn at random with the edges inside
// and between them, and the adjacency is normalized by the degrees inside the batch
// (§3.2). An epoch uses every cluster once.
type Cluster struct {
	sub     subgraph
	members [][]uint32
	each    int // clusters of a batch
}

// NewCluster partitions g into clusters, of which each make a batch.
func NewCluster(ctx context.Context, g *graph.CSR, seeds []uint32, clusters, each int, seed uint64) (*Cluster, error) {
	clusters = max(1, min(clusters, g.Nodes()))
	parts, err := Clusters(ctx, g, clusters, seed)
	if err != nil {
		return nil, err
	}
	return NewClusterOf(g, seeds, parts, clusters, each, seed), nil
}

// Clusters is the cluster of each vertex of a graph.
func Clusters(ctx context.Context, g *graph.CSR, clusters int, seed uint64) ([]uint32, error) {
	if clusters <= 1 {
		return make([]uint32, g.Nodes()), nil
	}
	parts, err := partition.By(ctx, "multilevel", &partition.Problem{Graph: g, Parts: clusters, Seed: seed})
	// Clusters of uneven sizes will do.
	if uneven := (*partition.Unbalanced)(nil); err != nil && !errors.As(err, &uneven) {
		return nil, err
	}
	return parts, nil
}

// NewClusterOf has clusters of which each vertex's is known.
func NewClusterOf(g *graph.CSR, seeds, of []uint32, clusters, each int, seed uint64) *Cluster {
	c := &Cluster{sub: newSubgraph(g, seeds, seed), members: make([][]uint32, clusters),
		each: max(1, min(each, clusters))}
	for v, k := range of {
		c.members[k] = append(c.members[k], uint32(v))
	}
	return c
}

// ClusterOrder is the order in which an epoch uses clusters.
func ClusterOrder(seed uint64, epoch, clusters int) []uint32 {
	return rng.New(seed).Fold(useOrder).Fold(uint64(epoch)).Perm(clusters)
}

func (c *Cluster) Batches() int { return (len(c.members) + c.each - 1) / c.each }

type clusters struct {
	of    *Cluster
	table *table
	order []uint32
	epoch int
}

func (c *Cluster) Sampler() Sampler {
	return &clusters{of: c, table: newTable(c.sub.graph.Nodes()), epoch: -1}
}

func (s *clusters) Sample(b *Batch, epoch, number int) {
	if s.epoch != epoch {
		s.epoch, s.order = epoch, ClusterOrder(s.of.sub.seed, epoch, len(s.of.members))
	}
	b.Reset(epoch, number, 1)
	s.table.begin()
	for _, k := range s.order[number*s.of.each : min((number+1)*s.of.each, len(s.order))] {
		for _, v := range s.of.members[k] {
			_, b.Vertices = s.table.add(b.Vertices, v)
		}
	}
	b.Blocks[0].OwnDegrees = true
	s.of.sub.induce(b, s.table, nil)
	// Batches have different numbers of training vertices; every vertex counts equally.
	b.Scale = float64(s.of.Batches()) / float64(s.of.sub.seeds)
}
