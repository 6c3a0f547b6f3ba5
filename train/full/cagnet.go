package full

import (
	"starling/exchange"
	"starling/train"
	"starling/train/site"
)

// cagnet is CAGNET's one-dimensional algorithm (Tripathy, Yelick and Buluç, "Reducing
// Communication in Graph Neural Network Training", SC 2020, §IV-A). Rows of all matrices
// are in blocks, one per worker, and a layer's sums are a product of block rows:
//
//	y_i = Σ_j A_ij·z_j        z_j [core of j, w], y_i [core of i, w]
//
// for which every worker's whole block goes to every other worker, needed or not: the
// partition's cut is never looked at. Backward the gradients of a block return from all
// workers to its owner, which adds them in rank order (a reduce-scatter). Exact.
//
// Per layer a worker sends (workers-1) x its core rows, and backward receives as many.
var cagnet = train.Describe(train.Descriptor{
	Name: "cagnet", Mode: train.FullGraph,
	Paper: &train.Paper{Title: "CAGNET, Tripathy et al., SC 2020",
		Claim: "bounds on communication; no single figure (1D is the baseline of SANCUS)",
		Why: "1D broadcasts all rows of a block to everybody, needed or not, so it is slower than halo wherever the " +
			"cut is good"},
	Exact:   "yes",
	Sends:   "every row of every worker to every other",
	UseWhen: "as a baseline",
	Overlap: train.Overlap{Rows: 0.1, Gradients: 0.3},
}, cagnetOptions{exchange.DefaultRows}, newCAGNET)

type cagnetOptions struct{ exchange.RowOptions }

func newCAGNET(s *train.Site, o cagnetOptions) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, exchange.RelayOption{})
	return exchange.NewAggregator(w, exchange.NewBlocks(w), exchange.NewHalo(w.Dev, exchange.PartBlocks(w.Part))), nil
}
