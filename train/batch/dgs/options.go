package dgs

import (
	"math"

	"starling/exchange"
	"starling/graph"
	"starling/train"
	"starling/train/batch"
)

// Options are of strategies that may ask the model which neighbours and columns matter.
type Options struct {
	DGS         bool    `json:"dgs" exact:"false" suffix:"dgs" omit:"default" why:"other strategies divide columns themselves, or sample nothing" help:"explain the model in the background (DGS), and draw remote neighbours and fetch columns by the masks it learns"`
	DGSMasks    string  `json:"dgs_masks" of:"dgs" values:"both,nodes,features" suffix:"*" omit:"default" help:"dgs: masks of nodes and of features, or of one of them only"`
	DGSBy       string  `json:"dgs_by" of:"dgs" values:"learned,shuffled,mean,locality" suffix:"*" omit:"default" help:"dgs: masks as they are learned; for comparison shuffled, or all vertices' mean and random columns; locality: remote vertices all count --dgs-local, nothing is learned, and all columns are fetched"`
	DGSLocal    float64 `json:"dgs_local" of:"dgs" omit:"default" help:"dgs: what a remote vertex counts with --dgs-by locality, where a local one counts 1"`
	DGSGraph    string  `json:"dgs_graph" of:"dgs" values:"star,part" suffix:"*" omit:"default" help:"dgs: what is explained: as published, the prediction of the worker's vertices pooled to one, or part: those of the vertices themselves by their neighbours"`
	DGSShare    float64 `json:"dgs_share" of:"dgs" omit:"default" help:"dgs: work of explaining, as a share of training's; fewer vertices are explained, and less often, to keep it (0: all of them)"`
	DGSEvery    int     `json:"dgs_every" of:"dgs" omit:"default" help:"dgs: explain the weights every N batches; masks take effect N batches later"`
	DGSEpsilon  float64 `json:"dgs_epsilon" of:"dgs" omit:"default" help:"dgs: share of a vertex's draws that moves from local neighbours back to remote ones, up to their even share"`
	DGSFeatures float64 `json:"dgs_features" of:"dgs" omit:"default" help:"dgs: share of columns that are fetched of remote rows, those of the highest masks"`
	DGSEpochs   int     `json:"dgs_epochs" of:"dgs" omit:"default" help:"dgs: epochs of an explanation at most; 0: masks stay at one"`
	DGSLoss     float64 `json:"dgs_loss" of:"dgs" omit:"default" help:"dgs: an explanation ends at this loss, or once an epoch lowers it by less than this share"`
	DGSMemory   string  `json:"dgs_memory" of:"dgs" omit:"default" help:"dgs: memory of a worker's explainer, as 64MiB; remote vertices that it does not fit have no masks"`
	DGSAsync    bool    `json:"dgs_async" of:"dgs" suffix:"async" omit:"default" help:"dgs: masks take effect whenever they are ready, as published; such runs are not repeatable"`

	DropFeatures   float64 `json:"drop_features" exact:"0" omit:"default" why:"other strategies divide columns themselves, or fetch no rows" help:"share of columns, drawn anew for every batch, that owners leave out of rows before they travel (0: none)"`
	DropFeaturesOf string  `json:"drop_features_of" of:"drop_features" values:"remote,all" omit:"default" help:"which rows --drop-features leaves columns out of: those of other workers, or all"`
}

// Off are the options with DGS off and its defaults as published.
var Off = Options{DGSMasks: "both", DGSBy: "learned", DGSLocal: 0.1, DGSGraph: "star", DGSShare: 0.05,
	DGSEvery: 30, DGSEpsilon: 0.1, DGSFeatures: 0.85, DGSEpochs: 50, DGSLoss: 0.01,
	DGSMemory: "64MiB", DropFeaturesOf: "remote"}

// Validate refuses settings that make no sense, by themselves or together.
func (o *Options) Validate() error {
	switch {
	case o.DGSEvery < 1:
		return train.Mistake("--dgs-every is %d batches; it must be at least 1", o.DGSEvery)
	case !(o.DGSEpsilon >= 0 && o.DGSEpsilon <= 1):
		return train.Mistake("--dgs-epsilon is %g; it must be from 0 to 1", o.DGSEpsilon)
	case !(o.DGSFeatures > 0 && o.DGSFeatures <= 1):
		return train.Mistake("--dgs-features is %g; it must be above 0, and 1 at most", o.DGSFeatures)
	case !(o.DGSLocal > 0 && o.DGSLocal <= 1):
		return train.Mistake("--dgs-local is %g; it must be above 0, and 1 at most", o.DGSLocal)
	case !(o.DGSShare >= 0):
		return train.Mistake("--dgs-share is %g; it must not be negative", o.DGSShare)
	case o.DGS && o.DGSBy == "locality" && o.DGSMasks == "features":
		return graph.Apart("--dgs-by locality", "--dgs-masks features", "it fetches all columns",
			"leave out one of the two")
	case o.DGSEpochs < 0:
		return train.Mistake("--dgs-epochs is %d; it must not be negative", o.DGSEpochs)
	case math.IsNaN(o.DGSLoss):
		return train.Mistake("--dgs-loss is not a number")
	case !(o.DropFeatures >= 0 && o.DropFeatures < 1):
		return train.Mistake("--drop-features is %g; it must be at least 0 and below 1", o.DropFeatures)
	case o.DGS && o.DropFeatures > 0:
		return graph.Apart("--dgs", "--drop-features", "one chooses columns by what it learns, the other at random",
			"leave out one of the two")
	}
	_, err := exchange.ParseBytes("--dgs-memory", o.DGSMemory)
	return err
}

// MasksNodes reports whether masks of neighbours are learnt.
func (o *Options) MasksNodes() bool { return o.DGS && o.nodes() }

// nodes and columns report which masks are learnt.
func (o *Options) nodes() bool   { return o.DGSMasks != "features" }
func (o *Options) columns() bool { return o.DGSMasks != "nodes" && o.DGSBy != "locality" }

func (o *Options) bytes() int64 {
	bytes, _ := exchange.ParseBytes("", o.DGSMemory)
	return bytes
}

// what names the option by which columns change.
func (o *Options) what() string {
	if o.DGS {
		return "--dgs"
	}
	return "--drop-features"
}

// Check refuses what explanations, and dropped columns, are not for.
func Check(o *train.Options, b *batch.Options, _ train.Facts) error {
	d, _ := train.OptionOf[Options](o.Strategy)
	c, _ := train.OptionOf[batch.CacheOptions](o.Strategy)
	switch {
	case b.Temporal != "" && (d.DGS || d.DropFeatures > 0):
		return graph.Apart(d.what(), "--temporal "+b.Temporal, "its masks are of vertices at all times",
			"leave one of them out")
	case o.Model.Typed != nil && (d.DGS || d.DropFeatures > 0):
		return graph.Apart(d.what(), "a typed graph", "its masks are of features of one width, and know no relations",
			"leave it out")
	case c.Cache == batch.Belady && (d.DGS || d.DropFeatures > 0):
		return graph.Apart("--cache belady", d.what(), "batches are drawn long before it is known what they are "+
			"drawn by", "use --cache frequency or degree")
	case c.Cache == "s3fifo" && (d.DGS && d.columns() || d.DropFeatures > 0):
		return graph.Apart("--cache s3fifo", d.what(), "it keeps rows as they were pulled, and the columns that are "+
			"pulled change", "use --cache frequency or degree")
	case d.DGS && c.Edges != "" && c.KeepsEdges():
		return graph.Apart("--cache-edges "+c.Edges, "--dgs", "owners draw by masks", "leave it out")
	case !d.DGS:
	case b.Sampler != "neighbour":
		return graph.Apart("--dgs", "--sampler "+b.Sampler,
			"it guides draws, and the sampler has probabilities of its "+
				"own", "use --sampler neighbour, or leave out --dgs")
	case d.nodes() && (b.Replace || b.Weighted):
		return graph.Apart("--dgs", "--replace or --weighted", "it draws neighbours by their masks, without "+
			"replacement", "use --dgs-masks features, or leave out the others")
	case o.Pairs != nil:
		return graph.Apart("--dgs", "pairs of vertices", "it explains predictions of vertices, and pairs are learnt "+
			"without any", "leave it out")
	case o.Embeddings != nil:
		return graph.Apart("--dgs", "--learn-embeddings", "it explains by features, which learnt rows stand beside",
			"leave out one of the two")
	case o.Model.EdgeDim > 0:
		return graph.Apart("--dgs", "--edge-features", "it links pooled vertices, whose edges have no features",
			"leave out one of the two")
	}
	return nil
}
