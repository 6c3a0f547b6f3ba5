package mini

import (
	"context"
	"sync/atomic"

	"starling/exchange"
	"starling/nn"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/wire"
)

// naiveHop is feature-centric training without HopGNN's micrographs (Chen et al., 2024, §3.2 and
// figure 6), its baseline: every worker's model has a random share of the batch, and goes to all
// servers one after the other, where features are, with the topology of its batch's first block and
// the sums over the features that it has met so far:
//
//	s_d ← s_d + A_d[:, rows of server]·x[rows of server]     [destinations, features], per server
//
// When model d is home again, after N migrations, s_d is the first layer's sum, and the other layers,
// their gradients and the all-reduce are as in model-centric training. So every gradient is that of
// distdgl with --roots random. No row of features is pulled; partial sums are as wide as features and
// travel N times.
var naiveHop = train.Describe(train.Descriptor{
	Name: "naive-hop", Mode: train.MiniBatch, Baseline: "distdgl", WholeInput: true,
	Paper: &train.Paper{Title: "HopGNN, Chen et al., 2024", Claim: "up to 2.59 times the bytes of model-centric " +
		"training", Why: "it depends on how many rows the first layer adds up for each of its sums"},
	Exact: "always", Sends: "the model, its first block and partial sums of features N times per batch",
	UseWhen: "as a baseline",
	Check:   refusing(neighbourOnly, sumsFirst),
}, struct{}{}, newNaiveHop)

// naive is training on models that carry partial sums.
type naive struct {
	*distributed
	carried *carried
	rows    []estimate // destinations of first blocks in an epoch, by worker
	blocks  []estimate // bytes of first blocks, likewise
	sampled atomic.Int64
}

// RowCounts are the vertices that batches had: no row of theirs is pulled.
func (h *naive) RowCounts() train.RowCounts {
	return train.RowCounts{Needed: h.sampled.Load(), Redundancy: h.redundancy}
}

func newNaiveHop(s *train.Site, _ struct{}) (train.Strategy, error) {
	d, setup, err := open(s, distributedBy("random", "none"))
	if err != nil {
		return nil, err
	}
	h := &naive{distributed: d, carried: &carried{site: s}}
	if err := h.expect(setup); err != nil {
		return nil, err
	}
	d.told = setup.Sent
	return h, nil
}

// expect is what an epoch will send, from a few batches.
func (h *naive) expect(setup *exchange.Setup) error {
	var counts [][kinds]float64
	err := h.distributed.expect(setup, func(m remoteSampler, b *sample.Batch, _ *store.Known) []store.Traffic {
		x := &b.Blocks[0]
		bytes := topologyBytes(x.Dst, len(x.Indices), len(x.Weights))
		counts = append(counts, [kinds]float64{float64(x.Dst), float64(8 + bytes)})
		return m.Drawn()
	})
	if err != nil {
		return err
	}
	rows, blocks := h.perEpoch(counts, 0), h.perEpoch(counts, 1)
	all, err := setup.Share(rows.mean, rows.variance, blocks.mean, blocks.variance)
	for _, v := range all {
		h.rows, h.blocks = append(h.rows, estimate{v[0], v[1]}), append(h.blocks, estimate{v[2], v[3]})
	}
	return err
}

// Plan is that of drawing and measuring, with the models that pass: every worker's once.
func (h *naive) Plan(m *nn.Model) *wire.Plan {
	plan, sent := h.distributed.Plan(m), expected{total: h.drawn.total}
	end := h.site.End
	model := int64(0)
	for _, p := range m.Params {
		model += p.Value.Bytes()
	}
	if n := end.Size(); n > 1 {
		link := end.Link((end.Rank() + 1) % n)
		class := func(k wire.Kind) wire.Class { return wire.Class{Kind: k, Layer: -1, Link: link} }
		width := m.Config.In * h.site.Dev.Type().Size()
		for q := range n {
			sent.add(class(wire.Topology), h.blocks[q])
			sent.add(class(wire.Activation), h.rows[q].times(width))
			sent.add(class(wire.Feature), h.rows[q].times(width))
		}
		plan.Epoch = func(epoch int) wire.Bytes {
			steps := h.all - h.site.Opt.Resume.StepsOf(epoch)
			return wire.Bytes{class(wire.Parameter): int64(n) * int64(steps) * model}
		}
	}
	plan.Drawn = wire.Bytes{}
	plan.Drawn.AddAll(h.drawn.bytes, 1)
	plan.Drawn.AddAll(sent.bytes, 1)
	plan.Deviation = sent.deviation()
	return plan
}

// Train is the loop's training of an epoch.
func (h *naive) Train(f *train.Loop) func(epoch int, lr float64) (float64, error) {
	h.carried.join(f)
	return h.trainOn(f, func(ctx context.Context, host *hostSide) source {
		host.split = h.carried
		var drawers []drawer
		for range h.opt.threads() {
			drawers = append(drawers, &naiveDrawer{ctx: ctx, of: h, puller: h.store.Puller(), sampler: h.newSampler()})
		}
		return newPrefetcher(h.steps(), h.opt.threads(), drawers, host, f.State, f.Opt.Epochs)
	})
}

// naiveDrawer draws blocks from the owners of vertices, and pulls no features.
type naiveDrawer struct {
	ctx     context.Context
	of      *naive
	sampler remoteSampler
	puller  *store.Puller
}

func (r *naiveDrawer) draw(b *batch, epoch, number int) error {
	if err := b.drawFrom(r.ctx, r.sampler, epoch, number); err != nil {
		return err
	}
	if err := r.puller.Labels(r.ctx, b.pulls(), &b.pulled.labels, b.Vertices[:b.outputs()]); err != nil {
		return err
	}
	r.of.sampled.Add(int64(len(b.Vertices)))
	b.prepare()
	return nil
}
