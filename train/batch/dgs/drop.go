package dgs

import (
	"context"
	"math"

	"starling/graph"
	"starling/rng"
	"starling/sample"
	"starling/store"
	"starling/train/batch"
)

var useDrop = sample.Use("columns dropped")

// dropping has owners leave columns out of rows, drawn anew for every batch: --drop-features.
type dropping struct {
	opt Options
	p   *batch.Pipeline
}

// Prepare has rows planned without the columns that are left out.
func (d *dropping) Prepare(p *batch.Pipeline) error {
	d.p = p
	p.Store.PlanColumns(keptColumns(p.Site.Part.Features.Cols, 1-d.opt.DropFeatures))
	return nil
}

// Guide keeps the same columns of a batch on all workers.
func (d *dropping) Guide(_ context.Context, epoch, number int) (batch.Guidance, error) {
	return batch.Guidance{Columns: d.opt.dropped(d.p.Site.Part.Features, d.p.Site.Opt.Seed, epoch, number)}, nil
}

// dropped are the columns that a batch keeps.
func (o *Options) dropped(f *graph.Features, seed uint64, epoch, number int) *store.Columns {
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
