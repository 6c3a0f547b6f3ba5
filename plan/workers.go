package plan

import (
	"errors"
	"fmt"
	"runtime/debug"

	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/resume"
	"starling/setup"
	"starling/spec"
	"starling/train"
	"starling/wire"
)

// Plan is what all workers together will need and send. Their parts must be on this host.
func (c *Run) Plan(events event.Listener) (*Plan, error) {
	s := c.Spec
	opt, err := setup.Options(s, &c.Parts.Meta)
	if err != nil {
		return nil, err
	}
	all := &Plan{CacheFirst: opt.CacheFirst, Workers: s.Cluster.Workers, Trained: s.Trained(),
		Processes: processBytes * int64(processCount(s))}
	parts := make([]*partition.Part, s.Cluster.Workers)
	for r := range parts {
		if parts[r], err = partition.OpenPart(c.Parts.Dir, r); err != nil {
			return nil, fmt.Errorf("rank %d: %w", r, err)
		}
		defer parts[r].Close()
		setup.Regroup(s, parts[r])
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
	for _, part := range parts {
		if err := c.AddSent(all, part, opt); err != nil {
			return nil, err
		}
	}
	debug.FreeOSMemory() // the workers need it
	for r, n := range needs {
		all.add(n, normalizedBytes(s, append(parts[r].TypeFeatures, parts[r].Features)...))
		all.States += keptBytes(n.Kept, resume.StatesKept(s, c.From))
	}
	return all, nil
}

// processCount is the number of processes of the whole run: workers, and the one that starts them.
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

// AddSent adds what the worker of a part will send.
func (c *Run) AddSent(all *Plan, part *partition.Part, opt train.Options) error {
	s := c.Spec
	sends, err := planSends(s, part, c.dryEndpoint(part.Meta.Part), opt)
	if errors.Is(err, wire.ErrUnplanned) {
		all.Unplanned = true
		return nil
	}
	if err != nil {
		return err
	}
	all.AtMost = all.AtMost || sends.AtMost
	if d := opt.Strategy.Descriptor; d != nil && d.HaloRows && !setup.Relays(s) {
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
	dev := NewDryDevice(s)
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
func meanEpoch(p *wire.Plan, epochs int) wire.Bytes { return meanEpochs(p, 0, min(epochs, 12)) }

// meanEpochs is the mean over epochs first to end-1.
func meanEpochs(p *wire.Plan, first, end int) wire.Bytes {
	sum := wire.Bytes{}
	for e := first; e < end; e++ {
		for k, b := range p.In(e) {
			sum.Add(k, b)
		}
	}
	for k := range sum {
		sum[k] /= int64(end - first)
	}
	return sum
}

// WorkersFit refuses a run whose workers, all on this host, need more than the free memory
// (0: unknown).
func WorkersFit(s *spec.Spec, p *Plan, free int64) error {
	if !s.Machine.MemoryCheck || free == 0 || p.Needed() <= free {
		return nil
	}
	less := "--cache-first off or a smaller --hidden"
	if s.Mode == "mini" {
		less = "a smaller --cache-budget, --hidden or --batch-size"
	}
	return &graph.InputError{Field: "memory",
		Found: fmt.Sprintf("a run of %d workers that needs %s", p.Workers, p.Memory()),
		Want:  fmt.Sprintf("at most the %s available", event.Bytes(free)),
		Fix: "spread the workers over several hosts, or try --dtype bf16, " + less + "; --memory-check=false tries " +
			"anyway"}
}

// Chooses reports whether the strategy of a run would choose by what it measures: where it can
// fill memory with replicas, and was not given all that decides.
func (c *Run) Chooses() (bool, error) {
	replicas, err := c.replicaBytes()
	given := c.Spec.Settings
	_, rates := given["rates"]
	_, budget := given["memory_budget"]
	return err == nil && replicas > 0 && !(rates && budget), err
}
