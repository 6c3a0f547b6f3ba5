package dgs

import (
	"context"
	"math"

	"starling/train/batch"
)

// local has draws prefer the worker's own vertices: every remote one counts --dgs-local, from the first batch on.
// Nothing is learnt.
type local struct{ opt Options }

// localMasks is the version of its masks.
const localMasks = 1

// Prepare tells owners.
func (l *local) Prepare(p *batch.Pipeline) error {
	if err := p.Store.ServeGuides(); err != nil {
		return err
	}
	if _, err := p.Setup.Share(0); err != nil { // all serve
		return err
	}
	if err := p.Store.GuideBy(p.Site.Ctx, nil, l.opt.DGSEpsilon); err != nil {
		return err
	}
	return p.Store.TellMasks(p.Site.Ctx, localMasks, nil, byte(max(1, math.Round(255*l.opt.DGSLocal))))
}

// Guide is the same for all batches.
func (l *local) Guide(context.Context, int, int) (batch.Guidance, error) {
	return batch.Guidance{Masks: localMasks}, nil
}
