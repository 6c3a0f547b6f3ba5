package dgs

import (
	"math"

	"starling/train/batch"
)

// pace is how much is explained: --dgs-share of the work of training. Work is rows that pass through the model.
type pace struct {
	rows   int // of a sample; 0: all
	epochs int
	every  int // masks are learnt of every so manieth weights, and used again otherwise
}

const (
	// explainCost is what a row of an explanation costs, over that of a batch: gradients reach inputs, and masks are
	// applied and gathered entry by entry; and whatever else is counted as training, a batch's draws among it, is not.
	explainCost = 3.0
	// A sample has at least leastRows, and leastEpochs over it.
	leastRows, leastEpochs = 64, 5
)

// pace returns how much is explained, where every batch has some rows; all is the rows of everything.
func (o *Options) pace(batch float64, all int) pace {
	p := pace{epochs: o.DGSEpochs, every: 1}
	if o.DGSShare == 0 || o.DGSEpochs == 0 {
		return p
	}
	passes := o.DGSShare * float64(o.DGSEvery) * batch / explainCost // rows times epochs, with that which infers
	least := float64(min(leastRows, all))
	switch {
	case passes >= float64(all)*float64(p.epochs+1):
	case passes >= least*float64(p.epochs+1):
		p.rows = int(passes / float64(p.epochs+1))
	default:
		p.rows, p.epochs = int(least), max(min(leastEpochs, p.epochs), int(passes/least)-1)
		p.every = max(1, int(math.Ceil(least*float64(p.epochs+1)/passes)))
	}
	return p
}

// rowsOfBatch is about how many rows this worker's batches have: the vertices that its draws meet, each counted once.
func rowsOfBatch(p *batch.Pipeline) float64 {
	part := p.Site.Part
	here := float64(p.Options.Size) / float64(p.Site.End.Size())
	sum := here
	for _, fanout := range p.Options.Fanouts {
		drawn := 0
		for v := range part.Core() {
			degree := int(part.In.Indptr[v+1] - part.In.Indptr[v])
			if fanout >= 0 {
				degree = min(degree, fanout)
			}
			drawn += degree
		}
		here *= float64(drawn) / float64(max(part.Core(), 1))
		sum += here
	}
	n := float64(part.Book.Nodes)
	return n * (1 - math.Exp(-sum/n))
}
