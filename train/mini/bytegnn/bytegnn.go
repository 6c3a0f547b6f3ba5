// Package bytegnn samples batches as graphs of small tasks.
package bytegnn

import (
	"cmp"
	"context"

	"starling/exchange"
	"starling/graph"
	"starling/train"
	"starling/train/batch"
	"starling/train/batch/dgs"
	"starling/train/batch/embeddings"
	"starling/train/batch/pairs"
	"starling/wire"
)

// Strategy keeps every core busy while batches are sampled (Zheng et al., "ByteGNN: Efficient
// Graph Neural Network Training at Large Scale", VLDB 2022). The sampling of a batch is a graph
// of small tasks (dag.go):
//
//	seeds     ─┬▶ hop 1, a chunk ─▶ stitch ─┬▶ hop 2, a chunk ─▶ stitch ─▶ … ─▶ end
//	positives ─┼▶ hop 1, a chunk ─▶ stitch ─┼▶ hop 2, a chunk ─▶ stitch ─▶ …
//	negatives ─┘  └▶ fetch                  └▶ fetch                        └▶ fetch
//
// The tasks of one batch run side by side, and many such graphs are under way. Two schedulers decide:
//
//	coarse  when to launch another batch, by a score that is looked at every 5 ms: launch.go, dags.go
//	fine    which ready task runs next: older batches first, then cheaper tasks: tasks.go;
//	        requests to other workers leave and are served in the order of their batches
//
// Tasks wait for the network outside the threads that compute. Batches, seed vertices and
// gradients are distdgl's. Where the paper has a parameter server, gradients are all-reduced.
var Strategy = train.Describe(train.Descriptor{
	Name: "bytegnn", Mode: train.MiniBatch, Typical: true, Pairs: true, Baseline: "distdgl",
	Paper: &train.Paper{Title: "ByteGNN, Zheng et al., VLDB 2022",
		Claim: "2.1x to 3.5x over DistDGL, 3 to 6 times its CPU use",
		Why:   "distdgl here samples ahead on all cores already, which the paper's baseline does not"},
	Exact: "`--roots owner` and `random`", Sends: "`distdgl`'s, in more requests",
	UseWhen: "sampling over a slow network leaves cores idle",
	Check:   batch.Refusing(batch.NotOnDisk, batch.Timeless, embeddings.Check, dgs.Check, hopsOrSubgraphs),
	Overlap: train.Overlap{Ahead: true},
}, options{batch.RootsOption{Roots: "owner"}, dgs.Off, batch.AsTheyAre, batch.CachedBy("none"), 0.3, "512MiB"}, build)

type options struct {
	batch.RootsOption
	dgs.Options
	batch.PullOptions
	batch.CacheOptions
	LaunchScore float64 `json:"launch_score" omit:"default" resume:"free" help:"bytegnn: launch the sampling of another batch at this score"`
	BatchMemory string  `json:"batch_memory" omit:"default" resume:"free" help:"bytegnn: memory of a worker that sampled batches may fill, as 2GiB; at most half of what is free"`
}

// Validate refuses a threshold that would launch never or always.
func (o *options) Validate() error {
	if !(o.LaunchScore > 0) {
		return train.Mistake("bytegnn's launch score is above 0, not %g", o.LaunchScore)
	}
	_, err := exchange.ParseBytes("--batch-memory", o.BatchMemory)
	return cmp.Or(err, o.Options.Validate(), o.CacheOptions.Validate())
}

// memory is what batches may fill of one of a host's workers.
func (o *options) memory(p *batch.Pipeline) int64 {
	here := 0
	for q := range p.Site.End.Size() {
		if p.Site.End.Link(q) != wire.BetweenServers {
			here++
		}
	}
	asked, _ := exchange.ParseBytes("--batch-memory", o.BatchMemory)
	if free := (exchange.BudgetOption{}).ReplicaBytes(here); free > 0 && free < asked || asked == 0 {
		return free
	}
	return asked
}

// hopsOrSubgraphs refuses samplers whose layers are drawn by the whole batch.
func hopsOrSubgraphs(o *train.Options, b *batch.Options, _ train.Facts) error {
	if b.Sampler != "fastgcn" && b.Sampler != "ladies" {
		return nil
	}
	return graph.Apart(batch.Named(o), "--sampler "+b.Sampler, "its tasks draw hops or a subgraph, and this one draws "+
		"a layer for the whole batch", "use --sampler neighbour or saint-walk, or --strategy "+
		o.Strategy.Descriptor.Baseline)
}

func build(s *train.Site, o options) (train.Strategy, error) {
	p, err := batch.Open(s, batch.Setting{Roots: o.Roots, PullDType: o.PullDType}, embeddings.New(s), pairs.New(s),
		dgs.New(s, o.Options))
	if err != nil {
		return nil, err
	}
	p.OwnDrawers = true
	if p.Options.ByHops() {
		p.NewSampler = p.ByChunks
	}
	return p.By(o.CacheOptions, func(p *batch.Pipeline) batch.Method {
		of := &scheduled{p: p, threshold: o.LaunchScore, memory: o.memory(p)}
		return batch.Method{Source: of.source, Launches: of.launches}
	})
}

// scheduled makes the source of batches once training begins.
type scheduled struct {
	p         *batch.Pipeline
	threshold float64
	memory    int64
	dags      *dags
}

func (s *scheduled) source(ctx context.Context, f *train.Loop, h *batch.Host) batch.Source {
	s.dags = newDAGs(ctx, s.p, h, f, s.threshold, s.memory)
	return s.dags
}

func (s *scheduled) launches() train.Launches {
	if s.dags == nil {
		return train.Launches{}
	}
	return s.dags.launches()
}
