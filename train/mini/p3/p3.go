// Package p3 divides features by columns.
package p3

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync/atomic"

	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// Strategy divides features by columns, not by vertices (Gandhi and Iyer, "P3: Distributed Deep Graph
// Learning at Scale", OSDI 2021): before training every worker gets its slice s of the columns
// of all vertices, so that no row of features travels again. The first layer is model-parallel:
// the edges of each worker's first block go to all workers, each computes a partial product with
// the rows of the weights that meet its columns, and the block's worker adds them up:
//
//	y = act(Σ_s A·x[:,s]·W[s,:] + x[:,s]·R[s,:] + b)      forward, [destinations, hidden]
//	dW[s,:] = Σ_workers (A·x[:,s])ᵀ·g                     g goes back to all workers
//
// Dropout of the input is applied to a slice where it is: see dropout.go.
//
// The other layers are data-parallel, as distdgl's. Weights and the optimiser's state are
// replicated: the gradient of a slice is zero elsewhere, and the all-reduce that all parameters
// go through adds it up. So every gradient is one worker's.
var Strategy = train.Describe(train.Descriptor{
	Name: "p3", Mode: train.MiniBatch, Baseline: "distdgl",
	Untyped: "its first layer is a sum over features of one width, and a typed model encodes each type's first",
	Paper: &train.Paper{Title: "P3, Gandhi and Iyer, OSDI 2021", Claim: "up to 7x over DistDGL",
		Why: "the gain is the width of features over that of the hidden layer, for as many rows as a first block " +
			"has sources more than destinations"},
	Exact: "`--pipeline 0`", Sends: "columns of features once, edges of first blocks, partial sums of the first layer",
	UseWhen: "features are wide, hidden layers narrow, and links slow",
	Check:   batch.Refusing(batch.NotOnDisk, batch.Timeless, splits),
	Overlap: train.Overlap{Ahead: true},
}, options{RootsOption: batch.RootsOption{Roots: "owner"}}, build)

type options struct {
	batch.RootsOption
	Pipeline int `json:"pipeline" main:"" exact:"0" try:"2" omit:"default" help:"p3: steps by which a batch's first layer begins ahead of its own, with weights that are as many updates old; 0: none"`
}

// mostDelay bounds the batches that are under way.
const mostDelay = 8

// Validate refuses what is no number of steps.
func (o *options) Validate() error {
	if o.Pipeline < 0 || o.Pipeline > mostDelay {
		return train.Mistake("--pipeline %d: expected a number of steps from 0 to %d", o.Pipeline, mostDelay)
	}
	return nil
}

// splits refuses models whose first layer is no sum of products with columns.
func splits(o *train.Options, _ *batch.Options, _ train.Facts) error {
	m, why := &o.Model, "its layers have no edges, so that there is nothing that workers could ask each other for"
	switch {
	case m.SplitsFirst() || m.SplitsRows():
		return nil
	case m.Model == "gin" && m.EdgeDim > 0:
		why = "its first layer cuts off negative sums of features and of edges, which needs whole rows"
	case m.Model == "gin":
		why = "the gradient of ε is of whole rows of features"
	}
	return graph.Apart(batch.Named(o), batch.BeyondSum(o), why, "use another model, or leave out --train-eps and "+
		"--edge-features of gin, or use --strategy "+o.Strategy.Descriptor.Baseline)
}

// modelParallel is training on features that are split.
type modelParallel struct {
	p     *batch.Pipeline
	first *split
	rows  [2][]batch.Estimate // destinations and sources of first blocks in an epoch, by worker
	block batch.Estimate      // bytes of this worker's first blocks in an epoch
	// sampled counts the vertices of this worker's batches.
	sampled atomic.Int64
}

func build(s *train.Site, o options) (train.Strategy, error) {
	p, err := batch.Open(s, batch.Setting{Roots: o.Roots})
	if err != nil {
		return nil, err
	}
	m := &modelParallel{p: p, first: &split{site: s, draws: p.InputDraws, delay: o.Pipeline,
		byRows: s.Opt.Model.SplitsRows()}}
	if err := m.first.restore(); err != nil {
		return nil, err
	}
	if m.first.columns, err = columnsOf(p.Setup, s.Opt.RowNormalize); err != nil {
		return nil, err
	}
	if p.InputDraws(0, 0).P > 0 {
		if m.first.ids, err = allIDs(p.Setup); err != nil {
			return nil, err
		}
	}
	expected, err := m.expect()
	if err != nil {
		return nil, err
	}
	return p.Strategy(expected, batch.Method{Source: m.source, Plan: m.plan, Rows: m.sampled.Load,
		Own: owned, Settle: m.settle, Settled: m.settled, Kept: m.first.keep}), nil
}

// expect is what an epoch will send, from a few batches.
func (m *modelParallel) expect() (*batch.Plan, error) {
	var rows [2][]float64
	var bytes []float64
	expected, err := m.p.Expect(func(s batch.Sampler, b *sample.Batch, known *store.Known) []store.Traffic {
		rows[0], rows[1] = append(rows[0], float64(b.Blocks[0].Dst)), append(rows[1], float64(b.Blocks[0].Src))
		bytes = append(bytes, float64(8+len(m.encode(nil, b, known))))
		t := s.Drawn()
		m.p.Store.AddLabels(t, b.Vertices[:batch.Outputs(b)])
		return t
	})
	if err != nil {
		return nil, err
	}
	dst, src := m.p.PerEpoch(rows[0]), m.p.PerEpoch(rows[1])
	m.block = m.p.PerEpoch(bytes)
	all, err := m.p.Setup.Share(dst.Mean, dst.Variance, src.Mean, src.Variance)
	for _, v := range all {
		m.rows[0] = append(m.rows[0], batch.Estimate{Mean: v[0], Variance: v[1]})
		m.rows[1] = append(m.rows[1], batch.Estimate{Mean: v[2], Variance: v[3]})
	}
	return expected, err
}

// plan adds first blocks, partial sums and their gradients.
func (m *modelParallel) plan(_ *wire.Plan, model *nn.Model, sent *batch.Expected) {
	s := m.p.Site
	me, end := s.End.Rank(), s.End
	for q := range end.Size() {
		if q == me {
			continue
		}
		class := func(k wire.Kind) wire.Class { return wire.Class{Kind: k, Layer: 0, Link: end.Link(q)} }
		sent.Add(class(wire.Topology), m.block)
		for _, product := range model.SplitProducts() {
			rows := m.rows[0]
			if product.Sources {
				rows = m.rows[1]
			}
			sent.Add(class(wire.Activation), rows[q].Times(product.Width*s.Dev.Type().Size()))
			sent.Add(class(wire.Gradient), rows[me].Times(product.Width*s.Dev.RowType(s.Opt.Rows).Size()))
		}
	}
}

// source draws batches whose first layers all workers compute.
func (m *modelParallel) source(ctx context.Context, f *train.Loop, h *batch.Host) batch.Source {
	m.first.join(f, h, m.p.Loops)
	source := m.p.Prefetch(f, f.State, h, m.p.AtOnce()+m.first.delay, func() batch.Drawer {
		var message []byte // its memory is reused
		return m.p.Drawer(ctx, m.p.Sampler(), func(ctx context.Context, b *batch.Batch, from batch.Puller) error {
			if err := b.PullLabels(ctx, from, b.Vertices[:b.Outputs()]); err != nil {
				return err
			}
			m.sampled.Add(int64(len(b.Vertices)))
			message = m.encode(message[:0], &b.Batch, &b.Pulled.Known)
			return m.first.tell(ctx, b, message)
		})
	})
	if m.first.delay == 0 {
		return source
	}
	ahead := &early{Source: source, delay: m.first.delay, steps: m.p.Steps(), left: m.p.Steps() - f.State.Batch}
	m.first.ahead = ahead.coming
	return ahead
}

// encode writes what other workers need of a batch.
func (m *modelParallel) encode(b []byte, s *sample.Batch, known *store.Known) []byte {
	if m.first.byRows {
		return encodeRows(b, s)
	}
	return encodeFirst(b, s, known)
}

// encodeRows writes the vertices of a batch whose rows are transformed: how many are destinations, how many there are,
// and their numbers.
func encodeRows(b []byte, s *sample.Batch) []byte {
	x, put := &s.Blocks[0], binary.LittleEndian
	b = put.AppendUint32(put.AppendUint32(b, uint32(x.Dst)), uint32(x.Src))
	b, _ = binary.Append(b, put, s.Vertices[:x.Src])
	return b
}

// columnsOf are this worker's columns of the features of all vertices, by number in the
// partition.
func columnsOf(setup *exchange.Setup, normalize bool) (*columns, error) {
	w, f := setup.W, setup.W.Part.Features
	if normalize {
		f = f.RowNormalize()
	}
	out, n := make([][]byte, w.End.Size()), w.End.Size()
	if w.MemoryOnly && f.Kind() != graph.Sparse {
		return unreadColumns(setup, f), nil
	}
	for q := range out {
		out[q] = encodeColumns(f, f.Cols*q/n, f.Cols*(q+1)/n)
	}
	in, err := setup.Swap(wire.Feature, out)
	if err != nil {
		return nil, err
	}
	me := w.End.Rank()
	c := &columns{lo: f.Cols * me / n, hi: f.Cols * (me + 1) / n, all: f.Cols, kind: f.Kind()}
	c.grow(int(w.Part.Book.Nodes))
	for q, b := range in {
		rows := w.Part.Book.Offsets[q+1] - w.Part.Book.Offsets[q]
		if err := c.append(b, int(rows)); err != nil {
			return nil, fmt.Errorf("columns of worker %d's features: %w", q, err)
		}
	}
	return c, nil
}

// unreadColumns are as many columns, which nothing is in, and what sending them would have taken.
func unreadColumns(setup *exchange.Setup, f *graph.Features) *columns {
	w, n, me := setup.W, setup.W.End.Size(), setup.W.End.Rank()
	c := &columns{lo: f.Cols * me / n, hi: f.Cols * (me + 1) / n, all: f.Cols, kind: f.Kind()}
	rows, size := int(w.Part.Book.Nodes), 4
	c.grow(rows)
	c.rows.Rows, c.rows.Cols = rows, c.hi-c.lo
	c.rows.F32, c.rows.BF16 = c.rows.F32[:cap(c.rows.F32)], c.rows.BF16[:cap(c.rows.BF16)]
	if f.Kind() == graph.BFloat16 {
		size = 2
	}
	for q := range n {
		if q != me {
			width := f.Cols*(q+1)/n - f.Cols*q/n
			setup.Sent.Add(w.Class(wire.Feature, -1, q), int64(8+size*f.Rows*width)) // after how many they are
		}
	}
	return c
}

// encodeFirst writes the first block of a batch: its sizes, the numbers of its vertices, their
// degrees, and its edges with what they count.
func encodeFirst(b []byte, s *sample.Batch, known *store.Known) []byte {
	x, put := &s.Blocks[0], binary.LittleEndian
	for _, n := range []int{x.Dst, x.Src, len(x.Indices), len(x.Weights), len(x.RowWeights)} {
		b = put.AppendUint32(b, uint32(n))
	}
	own := uint32(0)
	if x.OwnDegrees {
		own = 1
	}
	b = put.AppendUint32(b, own)
	b, _ = binary.Append(b, put, s.Vertices[:x.Src])
	b, _ = binary.Append(b, put, known.NoLoops[:x.Src])
	b, _ = binary.Append(b, put, known.All[:x.Dst])
	for i := range x.Dst {
		b = put.AppendUint32(b, uint32(x.Indptr[i+1]-x.Indptr[i]))
	}
	b, _ = binary.Append(b, put, x.Indices)
	b, _ = binary.Append(b, put, x.Weights)
	b, _ = binary.Append(b, put, x.RowWeights)
	return b
}
