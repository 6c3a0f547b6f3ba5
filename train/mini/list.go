package mini

import "starling/train"

// strategies are those that train on mini-batches. The first is the default of several
// workers.
var strategies = []train.Descriptor{
	distdgl,
	salient,
	bytegnn,
	hopgnn,
	naiveHop,
	p3,
	cobatch,
}

func init() { train.Register(strategies...) }
