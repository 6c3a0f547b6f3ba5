package mini

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
	"starling/wire"
)

// p3 divides features by columns, not by vertices (Gandhi and Iyer, "P3: Distributed Deep Graph
// Learning at Scale", OSDI 2021): before training every worker gets its slice s of the columns
// of all vertices, so that no row of features travels again. The first layer is model-parallel:
// the edges of each worker's first block go to all workers, each computes a partial product with
// the rows of the weights that meet its columns, and the block's worker adds them up:
//
//	y = act(Σ_s A·x[:,s]·W[s,:] + x[:,s]·R[s,:] + b)      forward, [destinations, hidden]
//	dW[s,:] = Σ_workers (A·x[:,s])ᵀ·g                     g goes back to all workers
//
// The other layers are data-parallel, as distdgl's. Weights and the optimiser's state are
// replicated: the gradient of a slice is zero elsewhere, and the all-reduce that all parameters
// go through adds it up. So every gradient is one worker's.
var p3 = train.Describe(train.Descriptor{
	Name: "p3", Mode: train.MiniBatch, Baseline: "distdgl", WholeInput: true,
	Paper: &train.Paper{Title: "P3, Gandhi and Iyer, OSDI 2021", Claim: "up to 7x over DistDGL",
		Why: "the gain is the width of features over that of the hidden layer, for as many rows as a first block " +
			"has sources more than destinations; here weights of the first layer are all-reduced too"},
	Exact: "always", Sends: "columns of features once, edges of first blocks, partial sums of the first layer",
	UseWhen: "features are wide, hidden layers narrow, and links slow",
	Check:   refusing(sumsFirst),
	Overlap: train.Overlap{Ahead: true},
}, p3Options{RootsOption{"owner"}}, newP3)

type p3Options struct{ RootsOption }

// modelParallel is training on features that are split.
type modelParallel struct {
	*distributed
	split *split
	rows  []estimate // destinations of first blocks in an epoch, by worker
	block estimate   // bytes of this worker's first blocks in an epoch
	// sampled is how many vertices this worker's batches had.
	sampled atomic.Int64
}

// RowCounts are the vertices that batches had: no row of theirs is pulled.
func (p *modelParallel) RowCounts() train.RowCounts {
	return train.RowCounts{Needed: p.sampled.Load(), Redundancy: p.redundancy}
}

func newP3(s *train.Site, o p3Options) (train.Strategy, error) {
	d, setup, err := open(s, distributedBy(o.Roots, "none"))
	if err != nil {
		return nil, err
	}
	p := &modelParallel{distributed: d, split: &split{site: s}}
	if p.split.columns, err = columnsOf(setup, s.Opt.RowNormalize); err != nil {
		return nil, err
	}
	if err := p.expect(setup); err != nil {
		return nil, err
	}
	d.told = setup.Sent
	return p, nil
}

// expect is what an epoch will send, from a few batches.
func (p *modelParallel) expect(setup *exchange.Setup) error {
	var counts [][kinds]float64
	err := p.distributed.expect(setup, func(m remoteSampler, b *sample.Batch, known *store.Known) []store.Traffic {
		bytes := len(encodeFirst(nil, b, known))
		counts = append(counts, [kinds]float64{float64(b.Blocks[0].Dst), float64(8 + bytes)})
		t := m.Drawn()
		p.store.AddLabels(t, b.Vertices[:outputs(b)])
		return t
	})
	if err != nil {
		return err
	}
	rows := p.perEpoch(counts, 0)
	p.block = p.perEpoch(counts, 1)
	all, err := setup.Share(rows.mean, rows.variance)
	for _, v := range all {
		p.rows = append(p.rows, estimate{v[0], v[1]})
	}
	return err
}

// Plan is that of drawing and measuring, with first blocks, partial sums and their gradients.
func (p *modelParallel) Plan(m *nn.Model) *wire.Plan {
	plan, sent := p.distributed.Plan(m), expected{total: p.drawn.total}
	width, _ := m.SplitFirst()
	me, end := p.site.End.Rank(), p.site.End
	for q := range end.Size() {
		if q == me {
			continue
		}
		class := func(k wire.Kind) wire.Class { return wire.Class{Kind: k, Layer: 0, Link: end.Link(q)} }
		sent.add(class(wire.Topology), p.block)
		sent.add(class(wire.Activation), p.rows[q].times(width*p.site.Dev.Type().Size()))
		sent.add(class(wire.Gradient), p.rows[me].times(width*p.site.Dev.RowType(p.site.Opt.Rows).Size()))
	}
	plan.Drawn = wire.Bytes{}
	plan.Drawn.AddAll(p.drawn.bytes, 1)
	plan.Drawn.AddAll(sent.bytes, 1)
	plan.Deviation = sent.deviation()
	return plan
}

// times is the estimate of something of so many bytes each.
func (e estimate) times(bytes int) estimate {
	return estimate{e.mean * float64(bytes), e.variance * float64(bytes) * float64(bytes)}
}

// Train is the loop's training of an epoch.
func (p *modelParallel) Train(f *train.Loop) func(epoch int, lr float64) (float64, error) {
	p.split.join(f, p.loops)
	return p.trainOn(f, func(ctx context.Context, host *hostSide) source {
		host.split = p.split
		var drawers []drawer
		for range p.atOnce() {
			drawers = append(drawers, &splitDrawer{ctx: ctx, of: p, puller: p.store.Puller(),
				sampler: p.newSampler()})
		}
		return newPrefetcher(p.steps(), p.opt.threads(), drawers, host, f.State, f.Opt.Epochs)
	})
}

// splitDrawer draws blocks from the owners of vertices, and tells all workers of the first.
type splitDrawer struct {
	ctx     context.Context
	of      *modelParallel
	sampler remoteSampler
	puller  *store.Puller
	message []byte
}

func (r *splitDrawer) draw(b *batch, epoch, number int) error {
	if err := b.drawFrom(r.ctx, r.sampler, epoch, number); err != nil {
		return err
	}
	if b.labels != nil {
		if err := r.puller.Labels(r.ctx, b.pulls(), &b.pulled.labels, b.Vertices[:b.outputs()]); err != nil {
			return err
		}
	}
	r.of.sampled.Add(int64(len(b.Vertices)))
	r.message = encodeFirst(r.message[:0], &b.Batch, &b.pulled.known)
	if err := r.of.split.tell(r.ctx, b, r.message); err != nil {
		return err
	}
	b.prepare()
	return nil
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
