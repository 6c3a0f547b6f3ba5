package mini

import (
	"context"
	"slices"

	"starling/coflow"
	"starling/graph"
	"starling/store"
	"starling/tensor"
)

// pulled is what a batch's vertices are, as their owners told: ids and degrees, rows of
// features, labels of seed vertices. Its memory is reused.
type pulled struct {
	known      store.Known
	features   graph.Features
	normalized *graph.Features // rows that sum to one, where the run wants them
	labels     graph.Labels
	count      []uint32
}

// pulls is the coflow of what a batch's rows and labels are pulled by.
func (r *batch) pulls() coflow.ID {
	return coflow.ID{Epoch: uint32(r.Epoch), Batch: uint32(r.Number), Layer: -1, Type: coflow.Inputs}
}

// pull brings a batch's rows.
func (p *pulled) pull(ctx context.Context, from *store.Puller, b *batch, seeds []uint32, normalize bool) error {
	id := b.pulls()
	if err := from.Features(ctx, id, &p.features, b.Vertices); err != nil {
		return err
	}
	p.normalized = nil
	if normalize {
		p.normalized = p.features.RowNormalize()
	}
	if b.hostSide != nil && b.labels == nil { // pairs are learnt
		return nil
	}
	return from.Labels(ctx, id, &p.labels, seeds)
}

// take copies the rows of vertices from others, which have them at some places.
func (p *pulled) take(from *graph.Features, vertices []uint32, at map[uint32]uint32) {
	f := &p.features
	f.Rows, f.Cols, p.normalized = len(vertices), from.Cols, nil
	f.F32, f.BF16 = f.F32[:0], f.BF16[:0]
	switch { // at once
	case from.BF16 != nil:
		f.BF16 = slices.Grow(f.BF16, f.Rows*f.Cols)
	case from.Indptr == nil:
		f.F32 = slices.Grow(f.F32, f.Rows*f.Cols)
	}
	if from.Indptr != nil {
		f.Indptr, f.Indices, f.Values = append(f.Indptr[:0], 0), f.Indices[:0], f.Values[:0]
	}
	for _, v := range vertices {
		i := int(at[v])
		switch {
		case from.Indptr != nil:
			lo, hi := from.Indptr[i], from.Indptr[i+1]
			f.Indices, f.Values = append(f.Indices, from.Indices[lo:hi]...), append(f.Values, from.Values[lo:hi]...)
			f.Indptr = append(f.Indptr, int64(len(f.Indices)))
		case from.BF16 != nil:
			f.BF16 = append(f.BF16, from.BF16[i*f.Cols:(i+1)*f.Cols]...)
		default:
			f.F32 = append(f.F32, from.F32[i*f.Cols:(i+1)*f.Cols]...)
		}
	}
}

// rows are the features.
func (p *pulled) rows() *graph.Features {
	if p.normalized != nil {
		return p.normalized
	}
	return &p.features
}

// onHost is dense features where they are.
func (p *pulled) onHost(dev tensor.Device) tensor.Matrix {
	f := p.rows()
	if f.Kind() == graph.BFloat16 {
		return dev.FromHost(f.Rows, f.Cols, f.BF16)
	}
	return dev.FromHost(f.Rows, f.Cols, f.F32)
}

// places are 0 to n-1: rows that were pulled are in the batch's order.
func (p *pulled) places(n int) []uint32 {
	for len(p.count) < n {
		p.count = append(slices.Grow(p.count, n), uint32(len(p.count)))
	}
	return p.count[:n]
}
