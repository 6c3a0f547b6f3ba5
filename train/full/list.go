// Package full is the full-graph strategies: an epoch is one step over the whole graph. A
// strategy is one file here, or one folder, named as users say it, and one line of the
// list below.
package full

import (
	"starling/train"
	"starling/train/full/bns"
	"starling/train/full/cagnet"
	"starling/train/full/g3"
	"starling/train/full/granndis"
	"starling/train/full/neutronstar"
	"starling/train/full/neutrontp"
	"starling/train/full/plexus"
	"starling/train/full/sancus"
	"starling/train/full/switchgnn"
	"starling/train/site"
)

// strategies are all of them. The first is the default of several workers.
var strategies = []train.Descriptor{
	halo,
	bns.Strategy,
	pipegcn,
	cagnet.Strategy,
	sancus.Strategy,
	sancus.SkipG,
	granndis.Strategy,
	neutronstar.Strategy,
	neutrontp.Strategy,
	plexus.Strategy,
	g3.Strategy,
	switchgnn.Strategy,
}

// checked is a strategy that also refuses what its rows cannot do.
func checked(d train.Descriptor) train.Descriptor {
	own := d.Check
	d.Check = func(o *train.Options, f train.Facts) error {
		if err := site.Check(o, f); err != nil || own == nil {
			return err
		}
		return own(o, f)
	}
	return d
}

func init() {
	for _, d := range strategies {
		train.Register(inductive(checked(d)))
	}
}
