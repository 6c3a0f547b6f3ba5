package batch

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"runtime"

	"starling/event"
	"starling/graph"
	"starling/sample"
	"starling/train"
)

// Options are the settings of a run's mini-batches, and draw them.
type Options train.BatchSettings

// clusterSize is about the size of Cluster-GCN's clusters of Reddit, which has 1500.
const clusterSize = 150

// Method makes the sampler's method ready for a graph.
func (m *Options) Method(ctx context.Context, g *graph.CSR, seeds []uint32, layers int, byID bool,
	seed uint64) (sample.Method, error) {
	switch m.Sampler {
	case "neighbour":
		n := &sample.Neighbour{Graph: g, SeedVertices: seeds, Size: m.Size, Fanouts: m.Fanouts, Replace: m.Replace,
			Weighted: m.Weighted, ByID: byID, Seed: seed}
		return n.Prepare()
	case "pinsage":
		return sample.NewPinSAGE(g, seeds, m.Size, m.Fanouts, m.visits(), seed)
	case "fastgcn":
		return sample.NewFastGCN(g, seeds, m.Size, m.Fanouts, seed)
	case "ladies":
		return sample.NewLADIES(g, seeds, m.Size, m.Fanouts, seed)
	case "cluster", "cluster-local": // the part of one worker is the graph
		k := m.clusters(g.Nodes())
		return sample.NewCluster(ctx, g, seeds, k, m.clustersEach(k, g.Nodes()), seed)
	case "saint-node":
		return sample.NewSAINTNodes(g, seeds, m.Size, seed)
	case "saint-edge":
		if g.Edges() == 0 {
			return nil, errNoEdges()
		}
		return sample.NewSAINTEdges(g, seeds, m.Size, seed)
	case "saint-walk":
		length := m.walkLength(layers)
		if m.DryEpochs > 0 {
			return sample.UncountedSAINTWalks(g, seeds, m.Size, length, seed), nil
		}
		return sample.NewSAINTWalks(g, seeds, m.Size, length, seed)
	}
	return nil, fmt.Errorf("sampler %q is not one of %v", m.Sampler, sample.Names)
}

func errNoEdges() error {
	return train.Mistake("sampler saint-edge draws edges, and the graph has none; use --sampler saint-node or " +
		"neighbour")
}

// layered reports whether there are fanouts for each layer.
func (m *Options) layered() bool {
	return m.ByHops() || m.Sampler == "fastgcn" || m.Sampler == "ladies"
}

// ByHops reports whether each vertex draws neighbours of its own, hop by hop.
func (m *Options) ByHops() bool { return m.Sampler == "neighbour" || m.Sampler == "pinsage" }

// What walks of pinsage are where that is not given.
const (
	autoVertexWalks = 16
	autoVisitLength = 3
)

// visits is how walks find neighbours.
func (m *Options) visits() sample.Visits {
	return sample.Visits{Walks: cmp.Or(m.VertexWalks, autoVertexWalks), Length: m.walkLength(autoVisitLength),
		Restart: m.Restart}
}

// walkLength is the length of walks; auto: where it is not given.
func (m *Options) walkLength(auto int) int { return cmp.Or(m.WalkLength, auto) }

// inClusters reports whether batches are clusters.
func (m *Options) inClusters() bool { return m.Sampler == "cluster" || m.Sampler == "cluster-local" }

// checkWeighs refuses samplers that make edges count differently for a model that does not look at
// that.
func (m *Options) checkWeighs(o train.Options) error {
	if m.Sampler == "pinsage" && o.Model.EdgeDim > 0 {
		return train.Mistake("sampler pinsage takes vertices that walks visit for neighbours, and they need not have " +
			"an edge; leave out --edge-features, or use --sampler neighbour")
	}
	weighs := m.Weighted || m.Sampler != "neighbour" && !m.inClusters()
	// In a dry run the sampler stands in for cluster, which weighs nothing.
	if o.Model.Model == "gin" && o.Model.EdgeDim > 0 && weighs && m.DryEpochs == 0 {
		return train.Mistake("sampler %s makes each edge count by what it drew, and with --edge-features gin does not "+
			"weigh its edges; use --sampler neighbour without --weighted, or cluster, or --model gat", m.Sampler)
	}
	return nil
}

// ThreadCount is the number of threads that draw batches.
func (m *Options) ThreadCount() int {
	if m.Threads > 0 {
		return m.Threads
	}
	return runtime.GOMAXPROCS(0)
}

// clusters is the number of clusters that a graph of n vertices is cut into.
func (m *Options) clusters(n int) int {
	if m.Clusters > 0 {
		return m.Clusters
	}
	return max(1, min(n/clusterSize, 10*n/m.Size))
}

// before says what takes a while before the first epoch.
func (m *Options) before(n int) string {
	switch m.Sampler {
	case "cluster", "cluster-local":
		return "cutting the graph into " + event.Counted(m.clusters(n), "cluster")
	case "saint-walk":
		return "counting how often walks meet vertices and edges"
	}
	return ""
}

// clustersEach is the number of clusters that make a batch.
func (m *Options) clustersEach(clusters, nodes int) int {
	return int(math.Round(float64(m.Size) * float64(clusters) / float64(max(nodes, 1))))
}
