package batch

import (
	"context"

	"starling/coflow"
	"starling/graph"
	"starling/sample"
	"starling/store"
	"starling/train"
)

// Rows from disk where there are several workers, all on this host: each reads those that its own batches need, of all
// parts, as one worker does. Where parts are on other hosts, drawing twice would send everything twice.

// beginOnDisk begins to read ahead from a state of a run on, if that is wanted.
func (p *Pipeline) beginOnDisk(f *train.Loop, at train.State, h *Host) {
	d := f.Opt.Disk
	if d == nil || p.Site.MemoryOnly {
		return
	}
	if err := p.checkOnDisk(); err != nil {
		p.disk = &onDisk{err: err}
		return
	}
	first := at.Epoch*p.steps + at.Batch
	p.disk = newOnDisk(d, p.Store.FeaturesInPlace(), p.steps, first, int64(max(f.Opt.Epochs*p.steps-first, 0)),
		p.Options.ThreadCount(), p.vertexDrawer, f.Events)
	h.returned = func(b *Batch) {
		if b.rows != nil {
			for _, rows := range b.Pulled.lent(b.Temporal) {
				rows.F32, rows.BF16 = nil, nil
			}
		}
		p.disk.release(b)
	}
}

// checkOnDisk refuses what is known only when workers have joined.
func (p *Pipeline) checkOnDisk() error {
	switch {
	case !p.Store.AllInPlace():
		return train.Mistake("--features-on disk with workers on several hosts, or who see other edges than their " +
			"folders have: batches are drawn twice, which would be sent twice; use --features-on host")
	case p.Guided() || p.task != nil || p.input != nil:
		return train.Mistake("--features-on disk on several workers is for batches of labels, drawn without a guide; " +
			"use --features-on host")
	}
	return nil
}

// vertexDrawer draws the vertices of batches once more.
func (p *Pipeline) vertexDrawer() func(epoch, number int) ([]uint32, error) {
	m, b, known := p.Sampler(), sample.Batch{}, store.Known{}
	return func(epoch, number int) ([]uint32, error) {
		if _, err := m.Fill(p.Site.Ctx, &b, &known, epoch, number); err != nil {
			return nil, err
		}
		return append([]uint32(nil), b.Vertices...), nil
	}
}

// diskPuller pulls features from disk, and all else as before.
type diskPuller struct {
	Puller
	store  *store.Store
	of     *onDisk
	number int64
	batch  *Batch
}

// begin says which batch is next.
func (p *diskPuller) begin(b *Batch, epoch, number int) {
	p.batch, p.number = b, p.of.number(epoch, number)
}

// end ends a batch: others wait for their turn, also after one that has pulled nothing.
func (p *diskPuller) end(ctx context.Context, failed error) error {
	if failed == nil && p.batch.rows == nil && p.of.err == nil {
		p.batch.rows, failed = p.of.feed.Fill(ctx, p.number, nil)
	}
	return failed
}

func (p *diskPuller) Features(ctx context.Context, _ coflow.ID, to *graph.Features, numbers []uint32) error {
	if p.of.err != nil {
		return p.of.err
	}
	rows, err := p.of.feed.Fill(ctx, p.number, numbers)
	if err != nil {
		return onDiskError(err)
	}
	p.batch.rows = rows
	p.store.CountRows(len(numbers))
	if to.Rows, to.Cols = len(numbers), p.of.cols; p.of.bf16 {
		to.BF16 = numbersAt[uint16](rows)
	} else {
		to.F32 = numbersAt[float32](rows)
	}
	return nil
}
