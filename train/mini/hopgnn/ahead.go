package hopgnn

import (
	"slices"
	"sync"

	"starling/graph"
	"starling/train/batch"
)

// Rows that come ahead: the time steps of a batch are drawn and prepared, and say which rows they need together. These
// come long after, and only then have steps memory for theirs.

// drawAhead draws a batch, whose rows come when it is known to be next.
func (r *drawer) drawAhead(b *batch.Batch, epoch, number int) error {
	if b.Pulled == nil {
		b.Pulled = &batch.Pulled{}
	}
	i, ok := b.Kept.(*iteration)
	if !ok {
		i = &iteration{}
		b.Kept = i
	}
	b.Epoch, b.Number = epoch, number
	err := r.sampleInTurn(i, b)
	if err == nil {
		r.gather(i.steps)
		err = r.labels(i.steps)
	}
	if err == nil {
		for _, step := range i.steps {
			step.Prepare()
		}
	}
	b.Vertices = append(b.Vertices[:0], r.all...)
	if err := r.of.ahead.Pull(r.ctx, b, r.later, err); err != nil {
		return err
	}
	for _, step := range i.steps {
		r.of.free.lend(&step.Pulled.Features, len(step.Vertices))
		r.take(step, b.Pulled)
	}
	return nil
}

// sampleInTurn draws the time steps by one of a few samplers.
func (r *drawer) sampleInTurn(i *iteration, b *batch.Batch) error {
	select {
	case r.stepSampler = <-r.shared:
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
	defer func() { r.shared <- r.stepSampler }()
	return r.sample(i, b)
}

// returnRows takes the memory of rows of a batch that was trained on, where others wait for theirs.
func (h *hop) returnRows(b *batch.Batch) {
	if h.ahead == nil {
		return
	}
	for _, step := range b.Kept.(*iteration).steps {
		if step.Pulled.Types != nil {
			step.Pulled.Types = nil
			continue
		}
		h.free.keep(&step.Pulled.Features)
	}
}

// freeRows is memory of rows that no batch has.
type freeRows struct {
	mu   sync.Mutex
	list []graph.Features
}

func (f *freeRows) keep(rows *graph.Features) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if cap(rows.F32)+cap(rows.BF16) > 0 {
		f.list = append(f.list, graph.Features{F32: rows.F32, BF16: rows.BF16})
	}
	rows.F32, rows.BF16 = nil, nil
}

// lend gives memory, if there is some, to rows that have none.
func (f *freeRows) lend(rows *graph.Features, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if last := len(f.list) - 1; last >= 0 && n > 0 {
		rows.F32, rows.BF16 = f.list[last].F32, f.list[last].BF16
		f.list = slices.Delete(f.list, last, last+1)
	}
}
