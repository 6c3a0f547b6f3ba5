package batch

import (
	"context"
	"slices"

	"starling/coflow"
	"starling/graph"
	"starling/store"
	"starling/tensor"
)

// Puller brings rows and labels of vertices from their owners, one batch at a time. store.Puller is one.
type Puller interface {
	Features(ctx context.Context, id coflow.ID, to *graph.Features, numbers []uint32) error
	Labels(ctx context.Context, id coflow.ID, to *graph.Labels, numbers []uint32) error
	// Types are Features of a typed graph, by type.
	Types(ctx context.Context, id coflow.ID, to []graph.Features, numbers []uint32) error
	// Keep has only some columns of remote rows fetched; nil: all.
	Keep(c *store.Columns) error
}

// Pulled is what owners told of a batch's vertices: ids and degrees, rows of
// features, labels of seed vertices. Its memory is reused.
type Pulled struct {
	Known      store.Known
	Features   graph.Features
	normalized *graph.Features // rows that sum to one, where the run wants them
	// Types are the features of a typed graph's vertices by type, each in the batch's order; nil: it has no types.
	Types           []graph.Features
	normalizedTypes []*graph.Features
	Labels          graph.Labels
	count           []uint32

	// Of a temporal batch: the rows of its vertices, each once, and where each of the batch's rows has its own
	// among them.
	once            graph.Features
	distinct, place []uint32
}

// bytes is what rows take.
func (p *Pulled) bytes() (n int64) {
	if p == nil {
		return 0
	}
	n = 4 * int64(cap(p.Features.F32)+cap(p.Features.Values)+cap(p.Features.Indices))
	n += 2 * int64(cap(p.Features.BF16))
	for _, f := range p.Types {
		n += 4*int64(cap(f.F32)) + 2*int64(cap(f.BF16))
	}
	return n
}

// Pulls is the coflow that a batch's rows and labels are pulled in.
func (r *Batch) Pulls() coflow.ID {
	return coflow.ID{Epoch: uint32(r.Epoch), Batch: uint32(r.Number), Layer: -1, Type: coflow.Inputs}
}

// Pull brings the rows of a batch's vertices, normalized if the run wants that, and the labels of seed vertices.
func (r *Batch) Pull(ctx context.Context, from Puller, seeds []uint32, normalize bool) error {
	if r.schema != nil {
		r.Pulled.Begin(r.schema)
	}
	if r.Labels != nil {
		if err := r.PullLabels(ctx, from, seeds); err != nil {
			return err
		}
	}
	if r.late {
		r.Prepare()
	}
	return r.pullRows(ctx, from, normalize)
}

// pullRows brings the rows of the batch's vertices, of each once.
func (r *Batch) pullRows(ctx context.Context, from Puller, normalize bool) error {
	if !r.Temporal {
		return r.Pulled.PullRows(ctx, from, r.Pulls(), r.Vertices, normalize)
	}
	p := r.Pulled
	p.distinct, p.place = r.Distinct(p.distinct, p.place)
	if err := from.Features(ctx, r.Pulls(), &p.once, p.distinct); err != nil {
		return err
	}
	takeRows(&p.Features, &p.once, p.place, func(at uint32) int { return int(at) })
	p.Normalize(normalize)
	return nil
}

// PullLabels brings the labels of seed vertices.
func (r *Batch) PullLabels(ctx context.Context, from Puller, seeds []uint32) error {
	return from.Labels(ctx, r.Pulls(), &r.Pulled.Labels, seeds)
}

// PullRows brings the rows of vertices.
func (p *Pulled) PullRows(ctx context.Context, from Puller, id coflow.ID, vertices []uint32, normalize bool) error {
	err := error(nil)
	if p.Types != nil {
		err = from.Types(ctx, id, p.Types, vertices)
	} else {
		err = from.Features(ctx, id, &p.Features, vertices)
	}
	if err != nil {
		return err
	}
	p.Normalize(normalize)
	return nil
}

// Normalize makes rows that sum to one, where the run wants them.
func (p *Pulled) Normalize(wanted bool) {
	p.normalized, p.normalizedTypes = nil, nil
	if p.Types != nil {
		p.normalizeTypes(wanted)
		return
	}
	if wanted {
		p.normalized = p.Features.RowNormalize()
	}
}

// Take copies the rows of vertices from others, which have them at some places.
func (p *Pulled) Take(from *graph.Features, vertices []uint32, at map[uint32]uint32) {
	p.normalized = nil
	takeRows(&p.Features, from, vertices, func(v uint32) int { return int(at[v]) })
}

// takeRows copies rows of others, each from where at says.
func takeRows(f, from *graph.Features, vertices []uint32, at func(v uint32) int) {
	f.Rows, f.Cols = len(vertices), from.Cols
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
		i := at(v)
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

// Rows are the features.
func (p *Pulled) Rows() *graph.Features {
	if p.normalized != nil {
		return p.normalized
	}
	return &p.Features
}

// onHost is dense features where they are.
func (p *Pulled) onHost(dev tensor.Device) tensor.Matrix {
	f := p.Rows()
	if f.Kind() == graph.BFloat16 {
		return dev.FromHost(f.Rows, f.Cols, f.BF16)
	}
	return dev.FromHost(f.Rows, f.Cols, f.F32)
}

// places are 0 to n-1: rows that were pulled are in the batch's order.
func (p *Pulled) places(n int) []uint32 {
	for len(p.count) < n {
		p.count = append(slices.Grow(p.count, n), uint32(len(p.count)))
	}
	return p.count[:n]
}
