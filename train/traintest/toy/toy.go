// Package toy is a strategy in one file, for tests of what is derived from a descriptor:
// flags, YAML, help, comparisons, dry runs, errors. Importing it registers the strategy.
package toy

import (
	"fmt"

	"starling/exchange"
	"starling/train"
	"starling/train/site"
)

func init() { train.Register(toy) }

// toy is halo that says how many laps it goes.
var toy = train.Describe(train.Descriptor{
	Name: "toy", Mode: train.FullGraph,
	Paper: &train.Paper{Title: "A Toy, Nobody, Nowhere 1999", Claim: "goes round and round", // kept: a name
		Why: "there is one nursery only"},
	Exact:   "yes",
	Sends:   "what halo does",
	UseWhen: "something is to be tried",
	Check:   site.Check,
}, options{Laps: 1, RowOptions: exchange.DefaultRows}, build)

type options struct {
	Laps int `json:"toy_laps" main:"" help:"laps that a toy goes per epoch, 1 to 9"`
	exchange.RowOptions
}

func (o *options) Validate() error {
	if o.Laps < 1 || o.Laps > 9 {
		return fmt.Errorf("a toy goes 1 to 9 laps, not %d", o.Laps)
	}
	return o.RowOptions.Validate()
}

func build(s *train.Site, o options) (train.Strategy, error) {
	w := site.Worker(s, o.RowOptions, exchange.RelayOption{})
	w.Masked = o.SparseRows
	w.Note("toy: %d laps per epoch", o.Laps)
	return site.Halo(w)
}
