// Package naivehop is feature-centric training without micrographs, a baseline.
package naivehop

import (
	"context"
	"sync/atomic"

	"starling/nn"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// Strategy is feature-centric training without HopGNN's micrographs (Chen et al., 2024, §3.2 and
// figure 6), its baseline: every worker's model has a random share of the batch, and goes to all
// servers one after the other, where features are, with the topology of its batch's first block and
// the sums over the features that it has met so far:
//
//	s_d ← s_d + A_d[:, rows of server]·x[rows of server]     [destinations, features], per server
//
// When model d is home again, after N migrations, s_d is the first layer's sum, and the other layers,
// their gradients and the all-reduce are as in model-centric training. So every gradient is the same as
// with distdgl and --roots random. No row of features is pulled; partial sums are as wide as features and
// travel N times.
var Strategy = train.Describe(train.Descriptor{
	Name: "naive-hop", Mode: train.MiniBatch, Baseline: "distdgl",
	Untyped: "its first layer is a sum over features of one width, and a typed model encodes each type's first",
	Paper: &train.Paper{Title: "HopGNN, Chen et al., 2024", Claim: "up to 2.59 times the bytes of model-centric " +
		"training", Why: "it depends on how many rows the first layer adds up for each of its sums"},
	Exact: "always", Sends: "the model, its first block and partial sums of features N times per batch",
	UseWhen: "as a baseline",
	Check:   batch.Refusing(batch.NotOnDisk, batch.Timeless, batch.NeighbourOnly, batch.SumsFirst),
}, struct{}{}, build)

// naive is training on models that carry partial sums.
type naive struct {
	p       *batch.Pipeline
	carried *carried
	rows    []batch.Estimate // destinations of first blocks in an epoch, by worker
	blocks  []batch.Estimate // bytes of first blocks, likewise
	sampled atomic.Int64     // vertices of this worker's batches
}

func build(s *train.Site, _ struct{}) (train.Strategy, error) {
	p, err := batch.Open(s, batch.Setting{Roots: "random"})
	if err != nil {
		return nil, err
	}
	h := &naive{p: p, carried: &carried{site: s, draws: p.InputDraws}}
	expected, err := h.expect()
	if err != nil {
		return nil, err
	}
	return p.Strategy(expected, batch.Method{Source: h.source, Plan: h.plan, Rows: h.sampled.Load}), nil
}

// expect is what an epoch will send, from a few batches.
func (h *naive) expect() (*batch.Plan, error) {
	var dst, size []float64
	expected, err := h.p.Expect(func(m batch.Sampler, b *sample.Batch, _ *store.Known) []store.Traffic {
		x := &b.Blocks[0]
		dst = append(dst, float64(x.Dst))
		size = append(size, float64(8+topologyBytes(x.Dst, len(x.Indices), len(x.Weights))))
		return m.Drawn()
	})
	if err != nil {
		return nil, err
	}
	rows, blocks := h.p.PerEpoch(dst), h.p.PerEpoch(size)
	all, err := h.p.Setup.Share(rows.Mean, rows.Variance, blocks.Mean, blocks.Variance)
	for _, v := range all {
		h.rows = append(h.rows, batch.Estimate{Mean: v[0], Variance: v[1]})
		h.blocks = append(h.blocks, batch.Estimate{Mean: v[2], Variance: v[3]})
	}
	return expected, err
}

// plan adds the models that pass: every worker's once.
func (h *naive) plan(plan *wire.Plan, m *nn.Model, sent *batch.Expected) {
	s := h.p.Site
	model := int64(0)
	for _, p := range m.Params {
		model += p.Value.Bytes()
	}
	n := s.End.Size()
	if n == 1 {
		return
	}
	link := s.End.Link((s.End.Rank() + 1) % n)
	class := func(k wire.Kind) wire.Class { return wire.Class{Kind: k, Layer: -1, Link: link} }
	width := m.Config.In * s.Dev.Type().Size()
	for q := range n {
		sent.Add(class(wire.Topology), h.blocks[q])
		sent.Add(class(wire.Activation), h.rows[q].Times(width))
		sent.Add(class(wire.Feature), h.rows[q].Times(width))
	}
	plan.Epoch = func(epoch int) wire.Bytes {
		steps := h.p.AllSteps() - s.Opt.Resume.StepsOf(epoch)
		return wire.Bytes{class(wire.Parameter): int64(n) * int64(steps) * model}
	}
}

// source draws batches whose first layers are carried from server to server.
func (h *naive) source(ctx context.Context, f *train.Loop, host *batch.Host) batch.Source {
	h.carried.join(f)
	host.First = h.carried
	return h.p.Prefetch(f, f.State, host, h.p.Options.ThreadCount(), func() batch.Drawer {
		return h.p.Drawer(ctx, h.p.Sampler(), h.pull)
	})
}

// pull brings labels, and no features.
func (h *naive) pull(ctx context.Context, b *batch.Batch, from batch.Puller) error {
	h.sampled.Add(int64(len(b.Vertices)))
	return b.PullLabels(ctx, from, b.Vertices[:b.Outputs()])
}
