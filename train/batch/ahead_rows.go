package batch

import (
	"context"

	"starling/store"
	"starling/train"
)

// RowsAhead brings the rows of batches of a strategy that draws them in a way of its own, long after they were drawn.
type RowsAhead struct {
	p *Pipeline
	// Window is the number of batches that must be drawn before the first of them has its rows.
	Window int
}

// RowsAhead begins to look ahead from a state of a run on; nil: batches fetch their rows when they are drawn.
func (p *Pipeline) RowsAhead(f *train.Loop, h *Host) *RowsAhead {
	if p.ahead == nil {
		return nil
	}
	return &RowsAhead{p, p.ahead.begin(p.Store, h, p.steps, f.State, f.Opt.Epochs)}
}

// Begun is the same where the pipeline prefetches and has begun.
func (p *Pipeline) Begun() *RowsAhead {
	if p.ahead == nil {
		return nil
	}
	return &RowsAhead{p, p.ahead.waiting()}
}

// Drawn moves a batch to b, if it was drawn before training.
func (r *RowsAhead) Drawn(b *Batch, epoch, number int) bool {
	x := r.p.ahead.drawn.take(&b.Batch, &b.Pulled.Known, epoch, number)
	if x != nil {
		b.Empty = !x.any
	}
	return x != nil
}

// Puller is of one goroutine's batches.
func (r *RowsAhead) Puller() *store.AheadPuller { return r.p.ahead.of.Puller() }

// Pull brings a batch's rows. Others wait for what it needs, so that it is called where the batch failed too.
func (r *RowsAhead) Pull(ctx context.Context, b *Batch, from *store.AheadPuller, failed error) error {
	end := r.p.ahead.batch(ctx, from, b.Epoch*r.p.steps+b.Number)
	if failed == nil {
		if b.schema != nil {
			b.Pulled.Begin(b.schema)
		}
		failed = b.pullRows(ctx, from, r.p.Site.Opt.RowNormalize)
	}
	return end(failed)
}

// Return takes back the rows of a batch that was trained on.
func (r *RowsAhead) Return(b *Batch) { b.returned(b) }
