// Package mini is the mini-batch strategies: an epoch is a step for each batch. A strategy is one folder, named as
// users say it, and one line of the list below; train/batch has what strategies are composed of.
package mini

import (
	"starling/train"
	"starling/train/mini/bytegnn"
	"starling/train/mini/cobatch"
	"starling/train/mini/distdgl"
	"starling/train/mini/hopgnn"
	"starling/train/mini/naivehop"
	"starling/train/mini/p3"
)

// strategies are all of them. Comparisons rate the others over the first.
var strategies = []train.Descriptor{
	distdgl.Strategy,
	distdgl.Salient,
	bytegnn.Strategy,
	hopgnn.Strategy,
	naivehop.Strategy,
	p3.Strategy,
	cobatch.Strategy,
	distdgl.Lookahead,
}

func init() { train.Register(strategies...) }
