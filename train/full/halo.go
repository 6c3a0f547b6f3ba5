package full

import (
	"starling/exchange"
	"starling/train"
	"starling/train/site"
)

// halo is exact full-graph training on many workers. A worker's core vertices have
// in-neighbours on other workers, its halo; the rows of the halo are received from their
// owners, one message per peer and layer, while the worker sums over its own rows:
//
//	y = A_local·z_local + A_halo·z_halo
//
// Backward the gradient of each halo row returns to its owner, which adds those of all
// workers in rank order (exchange.Aggregator and exchange.Rows are all of it).
//
// An epoch moves, per layer and direction, one row for every (vertex, part that needs it):
// the communication volume of the partition. The sum over constant features is computed
// once, before the first epoch.
var halo = train.Describe(train.Descriptor{
	Name: "halo", Mode: train.FullGraph, Typical: true, HaloRows: true,
	Exact:   "yes",
	Sends:   "every halo row, forward and backward, in every layer",
	UseWhen: "first: it is the default",
	Overlap: train.Overlap{Rows: 0.1, Gradients: 0.3},
}, haloOptions{RowOptions: exchange.DefaultRows}, newHalo)

type haloOptions struct {
	exchange.RelayOption
	exchange.RowOptions
}

func newHalo(s *train.Site, o haloOptions) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, o.RelayOption)
	w.Masked = o.SparseRows
	return site.Halo(w)
}
