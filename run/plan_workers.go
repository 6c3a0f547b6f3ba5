package run

import (
	"context"
	"errors"
	"fmt"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// dryRunCluster is the spec of a run of several workers, completed, and its plan.
func dryRunCluster(s Spec, events event.Listener) (Spec, *Plan, error) {
	c, err := prepareCluster(context.Background(), s, nil, events)
	if err != nil {
		return s, nil, err
	}
	defer c.parts.remove()
	if c.plans == nil {
		c.plans, err = c.plan()
	}
	return c.spec, c.plans, err
}

// plan is what all workers together will need and send. Their parts must be here.
func (c *clusterRun) plan() (all *Plan, err error) {
	defer func() {
		// The device panics where even addresses are refused.
		if r := recover(); r != nil {
			err = fmt.Errorf("the plan of this run failed: %v", r)
		}
	}()
	opt, err := c.spec.options(&c.parts.meta)
	if err != nil {
		return nil, err
	}
	all = &Plan{CacheFirst: opt.CacheFirst, Workers: c.spec.Workers}
	for r := range c.spec.Workers {
		part, err := partition.OpenPart(c.parts.dir, r)
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
		c.spec.regroup(part)
		err = c.addPart(all, part, opt)
		part.Close()
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

// addPart adds the worker of a part to the plan.
func (c *clusterRun) addPart(all *Plan, part *partition.Part, opt train.Options) error {
	s, data := &c.spec, &c.parts.meta
	if w := s.weightBytes(data); w > tensor.MemoryTotal()/4 && tensor.MemoryTotal() > 0 {
		// Building such a model to count would itself not fit.
		all.Matrices += w
		return nil
	}
	one := planPart(s, data, part)
	sends, err := s.planOnPaper(part, c.onPaper(part.Meta.Part), opt)
	if err == nil {
		one.Matrices += sends.Held
	}
	all.Parameters, all.Largest = one.Parameters, max(all.Largest, one.Matrices)
	all.Matrices, all.Graph, all.Mapped = all.Matrices+one.Matrices, all.Graph+one.Graph, all.Mapped+one.Mapped
	if errors.Is(err, train.ErrUnplanned) {
		all.Unplanned = true
		return nil
	}
	if err != nil {
		return err
	}
	all.AtMost = all.AtMost || sends.AtMost
	if train.CouldRelay(opt.Strategy) {
		rows, once := train.BetweenServers(part)
		all.Between, all.Once = all.Between+rows, all.Once+once
	}
	for _, b := range []struct {
		sum  *int64
		sent map[train.Sent]int64
	}{{&all.SentOnce, sends.Prepare}, {&all.SentOnce, sends.Once}, {&all.SentOnce, sends.OnceMeasured}, {&all.SentEpoch, meanEpoch(sends, s.Epochs)}, {&all.SentEpoch, sends.Begin}, {&all.SentMeasure, sends.Measure}} {
		for _, bytes := range b.sent {
			*b.sum += bytes
		}
	}
	return nil
}

// meanEpoch is what an epoch sends where not all send alike, over a dozen of them.
func meanEpoch(p *train.Plan, epochs int) map[train.Sent]int64 {
	n := min(epochs, 12)
	sum := map[train.Sent]int64{}
	for e := range n {
		for k, b := range p.Epoch(e) {
			sum[k] += b
		}
	}
	for k := range sum {
		sum[k] /= int64(n)
	}
	return sum
}

// planPart runs an epoch of one worker on a device that only counts.
func planPart(s *Spec, data *graph.Meta, part *partition.Part) *Plan {
	m := &part.Meta
	p := &Plan{CacheFirst: s.CacheFirst == "on", Graph: partBytes(s, part)}
	for _, a := range m.Arrays {
		p.Mapped += a.Bytes
	}
	dev := newDry(s.rows())
	defer dev.Close()
	on := &dryGraph{edgeDim: s.modelConfig(data).EdgeDim, dev: dev, n: int(m.Core), count: int(m.Edges), halo: int(m.Halo), sent: int(m.Sent), cache: p.CacheFirst, sums: map[nn.Reduction]tensor.Matrix{}}
	trainOn := on
	if s.Inductive { // what is seen of the halo is known when the workers have met; at most all
		other := *on
		other.sums = map[nn.Reduction]tensor.Matrix{}
		trainOn = &other
	}
	p.dryEpoch(s, data, dryInput(dev, s, part.Features), trainOn, on)
	return p
}

// partBytes is what train.Halo, input and labels make beside the mapped arrays: the
// edges from here and from elsewhere, each in both directions, or for attention
// all of them with loops.
func partBytes(s *Spec, part *partition.Part) int64 {
	m := &part.Meta
	rows, all, e := m.Core, m.Core+m.Halo, m.Edges
	total := 2*8*rows + 4*e + 8*(2*all+rows) // near and far, degrees
	switch {
	case s.Model == "mlp":
	case nn.Attends(s.Model):
		total += 8*(rows+all) + 3*4*(e+rows)
	default:
		total += 8*all + 2*4*e
	}
	if part.In.Weights != nil {
		total += 2 * 4 * e
	}
	if dim := int64(part.In.EdgeDim); s.EdgeFeatures && s.Model == "gin" { // backwards, and the places of edges
		total += 8*all + 2*4*e
	} else if s.EdgeFeatures { // with those of loops
		total += 4 * dim * (e + rows)
	}
	if s.Inductive { // the edges that are seen, once more, if training vertices are spread evenly
		share := float64(m.Train) / float64(max(rows, 1))
		total += int64(share*share*float64(total+4*e)) + 8*rows
	}
	f, entries := part.Features, int64(len(part.Features.Values))
	if f.Kind() == graph.Sparse {
		total += (4+4+4)*entries + 8*int64(f.Cols)
	}
	if s.RowNormalize {
		total += 4*entries + 4*int64(len(f.F32)) + 2*int64(len(f.BF16))
	}
	return total + 2*4*rows + s.scaleBytes(2*e, part.In.Weights != nil) // scales, labels
}

// fits refuses a run whose workers, all on this host, need more than the free memory
// (0: unknown).
func (c *clusterRun) fits(p *Plan, free int64) error {
	if !c.spec.MemoryCheck || free == 0 || p.Needed() <= free {
		return nil
	}
	return &graph.InputError{Field: "memory", Found: fmt.Sprintf("a run of %d workers that needs %s (matrices %s, graph %s)", p.Workers, event.Bytes(p.Needed()), event.Bytes(p.Matrices), event.Bytes(p.Graph)),
		Want: fmt.Sprintf("at most the %s available", event.Bytes(free)),
		Fix:  "spread the workers over several hosts, or try --dtype bf16, --cache-first off or a smaller --hidden; --memory-check=false tries anyway"}
}

// paper is an endpoint that only knows who is where, to plan with.
type paper struct {
	wire.Endpoint
	rank int
	far  []wire.Link
}

func (p paper) Rank() int               { return p.rank }
func (p paper) Size() int               { return len(p.far) }
func (p paper) Link(peer int) wire.Link { return p.far[peer] }

// onPaper is the endpoint of a rank before there are any.
func (c *clusterRun) onPaper(rank int) wire.Endpoint {
	far := make([]wire.Link, c.spec.Workers)
	for q := range far {
		switch {
		case q == rank:
		case c.spec.Servers > 1 && c.spec.server(q) != c.spec.server(rank):
			far[q] = wire.BetweenServers
		case !c.spec.inProcess():
			far[q] = wire.SameHost
		}
	}
	return paper{rank: rank, far: far}
}

// server is that of a rank, when workers are grouped.
func (s *Spec) server(rank int) int { return rank / (s.Workers / max(s.Servers, 1)) }
