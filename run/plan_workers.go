package run

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"starling/event"
	"starling/graph"
	"starling/partition"
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
		c.plans, err = c.plan(events)
	}
	return c.spec, c.plans, err
}

// plan is what all workers together will need and send. Their parts must be here.
func (c *clusterRun) plan(events event.Listener) (*Plan, error) {
	s, data := &c.spec, &c.parts.meta
	opt, err := s.options(data)
	if err != nil {
		return nil, err
	}
	all := &Plan{CacheFirst: opt.CacheFirst, Workers: s.Workers, Processes: processBytes * int64(s.processCount())}
	parts := make([]*partition.Part, s.Workers)
	for r := range parts {
		if parts[r], err = partition.OpenPart(c.parts.dir, r); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
		defer parts[r].Close()
		s.regroup(parts[r])
		for _, a := range parts[r].Meta.Arrays {
			all.Mapped += a.Bytes
		}
	}
	needs, err := c.rehearsals(parts, all, events)
	if large := tooLarge(0); errors.As(err, &large) {
		all.Matrices, all.AtLeast = int64(large), true
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for r, part := range parts {
		if err := c.addSent(all, part, c.onPaper(r), opt); err != nil {
			return nil, err
		}
	}
	debug.FreeOSMemory() // the workers need it
	for r, n := range needs {
		all.add(n, s.scaledBytes(parts[r].Features))
		all.States += keptBytes(n.Kept, c.states())
	}
	return all, nil
}

// processCount is of the whole run: workers, and the one that starts them.
func (s *Spec) processCount() int {
	if s.inProcess() {
		return 1
	}
	return s.Workers + 1
}

// add adds a worker's memory.
func (p *Plan) add(n *need, scaled int64) {
	graph := n.graph(false) + scaled
	p.Parameters, p.Peak = n.Parameters, max(p.Peak, n.peak)
	p.Matrices, p.Graph, p.Early = p.Matrices+n.matrices, p.Graph+graph, p.Early+n.Early
	p.States += n.weights()
	p.Each = append(p.Each, n.matrices+graph+n.Early+n.weights()+processBytes)
}

// keptBytes is what a worker's rows take in so many states, with some garbage. They leave
// the worker as they lie there.
func keptBytes(rows, states int64) int64 {
	if states == 0 {
		return 0
	}
	return states*rows + rows/4
}

// mostTogether is the number of edges up to which workers rehearse together: that has all
// of the graph in one process, which is what many workers are there to avoid.
var mostTogether int64 = 32 << 20

// silentTogether is the number of edges up to which that is so quick that nobody asks why
// nothing happens.
const silentTogether = 1 << 20

// rehearsals are what workers need: one after the other where they can do without each
// other, else all together. Where the clock decides what they will do, or the graph is
// large, it is what halo needs, and what they choose to copy comes on top.
func (c *clusterRun) rehearsals(parts []*partition.Part, all *Plan, events event.Listener) ([]*need, error) {
	s := c.spec
	s.Threads = s.threadsOf(s.Workers)
	needs, err := c.rehearseEach(parts, &s)
	if errors.Is(err, train.ErrUnplanned) && c.parts.meta.Edges <= mostTogether {
		if c.parts.meta.Edges > silentTogether {
			events.On(event.Note{Text: "planning the memory of the run: all workers rehearse it first, which takes some seconds", Minor: true})
		}
		needs, err = c.rehearseTogether(parts, &s)
	}
	if errors.Is(err, train.ErrUnplanned) {
		all.AtLeast = true
		if all.Copies, err = c.copies(); err != nil {
			return nil, err
		}
		halo := s
		halo.Strategy, halo.Inductive, halo.Relay = "halo", false, false
		needs, err = c.rehearseEach(parts, &halo)
	}
	return needs, err
}

// copies is how much memory a worker may fill with copies, where it decides itself what to
// copy.
func (c *clusterRun) copies() (int64, error) {
	s := &c.spec
	opt, err := s.options(&c.parts.meta)
	if ch := opt.Strategy; err != nil || ch.Name != "neutronstar" && (ch.Name != "granndis" || ch.Preload != "auto" || ch.Sample != "") {
		return 0, err
	}
	return train.CopyBudget(opt.Strategy, s.Workers/max(s.Servers, 1)), nil
}

// rehearseEach rehearses workers that are alone: one part's graph at a time is in memory.
func (c *clusterRun) rehearseEach(parts []*partition.Part, s *Spec) (needs []*need, err error) {
	for r, part := range parts {
		n, err := s.rehearse(func(dev *dry, opt train.Options, events event.Listener) (*train.Rehearsed, error) {
			return train.Rehearse(context.Background(), dev, part, c.onPaper(r), nil, opt, events)
		}, &c.parts.meta)
		if err != nil {
			return nil, err
		}
		needs = append(needs, n)
	}
	return needs, nil
}

// addSent adds what the worker of a part will send.
func (c *clusterRun) addSent(all *Plan, part *partition.Part, end wire.Endpoint, opt train.Options) error {
	s := &c.spec
	sends, err := s.planOnPaper(part, end, opt)
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

// fits refuses a run whose workers, all on this host, need more than the free memory
// (0: unknown).
func (c *clusterRun) fits(p *Plan, free int64) error {
	if !c.spec.MemoryCheck || free == 0 || p.Needed() <= free {
		return nil
	}
	return &graph.InputError{Field: "memory", Found: fmt.Sprintf("a run of %d workers that needs %s", p.Workers, p.memory()),
		Want: fmt.Sprintf("at most the %s available", event.Bytes(free)),
		Fix:  "spread the workers over several hosts, or try --dtype bf16, --cache-first off or a smaller --hidden; --memory-check=false tries anyway"}
}

// paper is an endpoint that knows who is where in the run, to plan with.
type paper struct {
	wire.Endpoint // nil: there is nobody
	rank          int
	far           []wire.Link
}

func (p paper) Rank() int               { return p.rank }
func (p paper) Size() int               { return len(p.far) }
func (p paper) Link(peer int) wire.Link { return p.far[peer] }

// onPaper is the endpoint of a rank before there are any.
func (c *clusterRun) onPaper(rank int) paper {
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
