package run

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/spec"
	"starling/train"
	"starling/wire"
)

// dryRunCluster is the spec of a run of several workers, completed, and its plan.
func dryRunCluster(s spec.Spec, events event.Listener) (spec.Spec, *Plan, error) {
	c, err := prepareCluster(context.Background(), s, nil, events)
	if err != nil {
		return s, nil, err
	}
	defer func() { c.parts.remove() }()
	with, err := c.choose(context.Background(), c.spec)
	if err != nil {
		return s, nil, err
	}
	if len(with.Settings) != len(c.spec.Settings) { // now all can be planned
		c.spec, c.plans = with, nil
	}
	if c.plans == nil {
		c.plans, err = c.plan(events)
	}
	return c.spec, c.plans, err
}

// plan is what all workers together will need and send. Their parts must be on this host.
func (c *clusterRun) plan(events event.Listener) (*Plan, error) {
	s := &c.spec
	opt, err := s.Options(&c.parts.meta)
	if err != nil {
		return nil, err
	}
	all := &Plan{CacheFirst: opt.CacheFirst, Workers: s.Cluster.Workers,
		Processes: processBytes * int64(processCount(s))}
	parts := make([]*partition.Part, s.Cluster.Workers)
	for r := range parts {
		if parts[r], err = partition.OpenPart(c.parts.dir, r); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
		defer parts[r].Close()
		regroup(s, parts[r])
		for _, a := range parts[r].Meta.Arrays {
			all.Mapped += a.Bytes
		}
	}
	needs, err := c.dryRuns(parts, all, events)
	if large := tooLarge(0); errors.As(err, &large) {
		all.Matrices, all.AtLeast = int64(large), true
		return all, nil
	}
	if err != nil {
		return nil, err
	}
	for r, part := range parts {
		if err := c.addSent(all, part, c.dryEndpoint(r), opt); err != nil {
			return nil, err
		}
	}
	debug.FreeOSMemory() // the workers need it
	for r, n := range needs {
		all.add(n, normalizedBytes(s, parts[r].Features))
		all.States += keptBytes(n.Kept, c.states())
	}
	return all, nil
}

// processCount is that of the whole run: workers, and the process that starts them.
func processCount(s *spec.Spec) int {
	if s.Goroutines() {
		return 1
	}
	return s.Cluster.Workers + 1
}

// add adds a worker's memory.
func (p *Plan) add(n *need, normalized int64) {
	graph := n.graph(false) + normalized
	p.Parameters, p.Peak = n.Parameters, max(p.Peak, n.peak)
	p.Matrices, p.Graph, p.Early = p.Matrices+n.matrices, p.Graph+graph, p.Early+n.Early
	p.States += n.weights()
	p.Each = append(p.Each, n.matrices+graph+n.Early+n.weights()+processBytes)
}

// keptBytes is what a worker's rows take in several states, with some garbage. They are sent
// from where the worker has them.
func keptBytes(rows, states int64) int64 {
	if states == 0 {
		return 0
	}
	return states*rows + rows/4
}

// addSent adds what the worker of a part will send.
func (c *clusterRun) addSent(all *Plan, part *partition.Part, end wire.Endpoint, opt train.Options) error {
	s := &c.spec
	sends, err := planSends(s, part, end, opt)
	if errors.Is(err, wire.ErrUnplanned) {
		all.Unplanned = true
		return nil
	}
	if err != nil {
		return err
	}
	all.AtMost = all.AtMost || sends.AtMost
	if d := opt.Strategy.Descriptor; d != nil && d.HaloRows && !relays(s) {
		rows, once := exchange.BetweenServers(part)
		all.BetweenServers, all.OnceEach = all.BetweenServers+rows, all.OnceEach+once
	}
	for _, b := range []wire.Bytes{sends.Prepare, sends.Once, sends.OnceMeasured} {
		all.SentOnce += sum(b)
	}
	all.SentEpoch += sum(meanEpoch(sends, s.Training.Epochs)) + sum(sends.Begin)
	all.SentEvaluation += sum(sends.Measure)
	return nil
}

func sum(b wire.Bytes) (total int64) {
	for _, bytes := range b {
		total += bytes
	}
	return total
}

// planSends is what the worker of a part will send, from a dry run.
func planSends(s *spec.Spec, part *partition.Part, end wire.Endpoint, opt train.Options) (*wire.Plan, error) {
	dev := newDryDevice(s)
	defer dev.Close()
	model := nn.New(dev, opt.Model, opt.Seed)
	return train.DryRunBytes(part, end, dev, model, unlabelledTask(s, opt.Model.Out), opt)
}

// unlabelledTask is the task without its labels, to plan with.
func unlabelledTask(s *spec.Spec, outputs int) nn.Task {
	switch s.Task {
	case nn.TaskMultiLabel:
		return nn.MultiLabel{}
	case nn.TaskRegression:
		return nn.Regress{Targets: outputs}
	}
	return nn.Classify{}
}

// meanEpoch is the mean over a dozen epochs, for strategies whose epochs differ.
func meanEpoch(p *wire.Plan, epochs int) wire.Bytes {
	n := min(epochs, 12)
	sum := wire.Bytes{}
	for e := range n {
		for k, b := range p.In(e) {
			sum.Add(k, b)
		}
	}
	for k := range sum {
		sum[k] /= int64(n)
	}
	return sum
}

// fitsMemory refuses a run whose workers, all on this host, need more than the free memory
// (0: unknown).
func (c *clusterRun) fitsMemory(p *Plan, free int64) error {
	if !c.spec.Machine.MemoryCheck || free == 0 || p.Needed() <= free {
		return nil
	}
	return &graph.InputError{Field: "memory",
		Found: fmt.Sprintf("a run of %d workers that needs %s", p.Workers, p.memory()),
		Want:  fmt.Sprintf("at most the %s available", event.Bytes(free)),
		Fix: "spread the workers over several hosts, or try --dtype bf16, --cache-first off or a smaller --hidden; " +
			"--memory-check=false tries anyway"}
}
