package mini

import (
	"math"

	"starling/exchange"
	"starling/graph"
	"starling/rng"
	"starling/sample"
	"starling/store"
	"starling/train"
)

// DGSOptions are of strategies that may ask the model which neighbours and columns matter.
type DGSOptions struct {
	DGS         bool    `json:"dgs" exact:"false" suffix:"dgs" omit:"default" why:"p3 divides columns itself, and full-graph strategies sample nothing" help:"explain the model in the background (DGS), and draw remote neighbours and fetch columns by the masks it learns"`
	DGSMasks    string  `json:"dgs_masks" of:"dgs" values:"both,nodes,features" suffix:"*" omit:"default" help:"dgs: masks of nodes and of features, or of one of them only"`
	DGSEvery    int     `json:"dgs_every" of:"dgs" omit:"default" help:"dgs: explain the weights every so many batches; masks take effect as many batches later"`
	DGSEpsilon  float64 `json:"dgs_epsilon" of:"dgs" omit:"default" help:"dgs: share of a vertex's draws that moves from local neighbours back to remote ones, up to their even share"`
	DGSFeatures float64 `json:"dgs_features" of:"dgs" omit:"default" help:"dgs: share of columns that are fetched of remote rows, those of the highest masks"`
	DGSEpochs   int     `json:"dgs_epochs" of:"dgs" omit:"default" help:"dgs: epochs of an explanation at most; 0: masks stay at one"`
	DGSLoss     float64 `json:"dgs_loss" of:"dgs" omit:"default" help:"dgs: an explanation ends at this loss"`
	DGSMemory   string  `json:"dgs_memory" of:"dgs" omit:"default" help:"dgs: memory of a worker's explainer, as 64MiB; remote vertices that it does not fit have no masks"`
	DGSAsync    bool    `json:"dgs_async" of:"dgs" suffix:"async" omit:"default" help:"dgs: masks take effect whenever they are ready, as published; such runs are not repeatable"`

	DropFeatures   float64 `json:"drop_features" exact:"0" omit:"default" why:"p3 divides columns itself, and full-graph strategies fetch no rows" help:"share of columns, drawn anew for every batch, that owners leave out of rows before they travel (0: none)"`
	DropFeaturesOf string  `json:"drop_features_of" of:"drop_features" values:"remote,all" omit:"default" help:"which rows --drop-features leaves columns out of: those of other workers, or all"`
}

// noDGS are the options with DGS off and its defaults as published.
var noDGS = DGSOptions{DGSMasks: "both", DGSEvery: 30, DGSEpsilon: 0.1, DGSFeatures: 0.85, DGSEpochs: 50, DGSLoss: 0.01,
	DGSMemory: "64MiB", DropFeaturesOf: "remote"}

// validate refuses settings that make no sense, by themselves or together.
func (o *DGSOptions) validate() error {
	switch {
	case o.DGSEvery < 1:
		return train.Mistake("--dgs-every is %d batches; it must be at least 1", o.DGSEvery)
	case !(o.DGSEpsilon >= 0 && o.DGSEpsilon <= 1):
		return train.Mistake("--dgs-epsilon is %g; it must be from 0 to 1", o.DGSEpsilon)
	case !(o.DGSFeatures > 0 && o.DGSFeatures <= 1):
		return train.Mistake("--dgs-features is %g; it must be above 0, and 1 at most", o.DGSFeatures)
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

// nodes and columns report which masks are learnt.
func (o *DGSOptions) nodes() bool   { return o.DGSMasks != "features" }
func (o *DGSOptions) columns() bool { return o.DGSMasks != "nodes" }

func (o *DGSOptions) bytes() int64 {
	bytes, _ := exchange.ParseBytes("", o.DGSMemory)
	return bytes
}

// what names the option by which columns change.
func (o *DGSOptions) what() string {
	if o.DGS {
		return "--dgs"
	}
	return "--drop-features"
}

var useDrop = sample.Use("columns dropped")

// dropped are the columns that a batch keeps under --drop-features: the same for all workers.
func (o *DGSOptions) dropped(f *graph.Features, seed uint64, epoch, number int) *store.Columns {
	key := rng.New(seed).Fold(useDrop).Fold(uint64(epoch)).Fold(uint64(number))
	kept := keptColumns(f.Cols, 1-o.DropFeatures)
	scores := make([]float64, f.Cols)
	for c := range scores {
		scores[c] = key.Float64(uint64(c))
	}
	columns := highest(scores, kept)
	columns.Everywhere = o.DropFeaturesOf == "all"
	return columns
}

// keptColumns is how many columns of some are a share of them: one at least.
func keptColumns(all int, share float64) int {
	return min(all, max(1, int(math.Round(share*float64(all)))))
}
