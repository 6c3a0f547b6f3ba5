package plan

import (
	"context"
	"errors"
	"sync"

	"starling/event"
	"starling/partition"
	"starling/resume"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/train"
	"starling/wire"
	"starling/worker"
)

// Run is a run of several workers that is planned.
type Run struct {
	Spec   *spec.Spec
	Parts  *setup.Parts
	From   *resume.Start  // nil: from the beginning
	counts []*workCounter // of the workers' dry runs; nil: not counted
}

// mostTogether is the number of edges up to which workers make their dry run together: that
// loads the whole graph into one process, which several workers are there to avoid.
var mostTogether int64 = 32 << 20

// quietTogether is the number of edges up to which that takes too little time for a note.
const quietTogether = 1 << 20

// dryRuns are what workers need: one after the other if they can do without peers, else all
// together, as in plans of all strategies. If measured rates decide what they will do, or the graph is
// large, it is what the default strategy needs, and the replicas that they choose are added.
func (c *Run) dryRuns(parts []*partition.Part, all *Plan, events event.Listener) ([]*need, error) {
	s := *c.Spec
	s.Machine.Threads = s.Machine.CoresOf(s.Cluster.Workers)
	needs, err := []*need(nil), wire.ErrUnplanned
	if c.counts == nil || c.Parts.Meta.Edges > mostTogether { // a plan of many choices has all cores for each
		needs, err = c.dryRunEach(parts, &s)
	}
	if errors.Is(err, wire.ErrUnplanned) && c.Parts.Meta.Edges <= mostTogether {
		if c.Parts.Meta.Edges > quietTogether {
			events.On(event.Note{Minor: true,
				Text: "planning the memory of the run: a dry run of all workers, which takes some seconds"})
		}
		needs, err = c.dryRunTogether(parts, &s)
	}
	if errors.Is(err, wire.ErrUnplanned) {
		all.AtLeast = true
		if all.Replicas, err = c.replicaBytes(); err != nil {
			return nil, err
		}
		plain := s.ForStrategy(train.Default().Name)
		plain.Mode = string(train.FullGraph) // batches take less
		plain.Training.Inductive, plain.Settings = false, plain.Settings.Without("relay")
		needs, err = c.dryRunEach(parts, &plain)
	}
	return needs, err
}

// replicaBytes is how much memory a worker may fill with replicas, if it chooses them itself.
func (c *Run) replicaBytes() (int64, error) {
	s := c.Spec
	opt, err := setup.Options(s, &c.Parts.Meta)
	if d := opt.Strategy.Descriptor; err == nil && d != nil && d.ReplicaBytes != nil {
		return d.ReplicaBytes(opt.Strategy, s.Cluster.Workers/max(s.Cluster.Servers, 1)), nil
	}
	return 0, err
}

// dryRunEach makes dry runs of workers without peers, with one part's graph in memory at a time.
func (c *Run) dryRunEach(parts []*partition.Part, s *spec.Spec) (needs []*need, err error) {
	for r, part := range parts {
		loop := func(dev *cpu.Dry, opt train.Options, events event.Listener) (*train.Needs, error) {
			return train.DryRun(context.Background(), c.counting(r, dev), part, c.dryEndpoint(r), nil, opt, events)
		}
		n, err := dryRun(s, loop, &c.Parts.Meta)
		if err != nil {
			return nil, err
		}
		needs = append(needs, n)
	}
	return needs, nil
}

// dryRunTogether is the same for workers that look at each other's parts first.
func (c *Run) dryRunTogether(parts []*partition.Part, s *spec.Spec) ([]*need, error) {
	opt, err := dryRunOptions(s, &c.Parts.Meta)
	if err != nil {
		return nil, err
	}
	g := newDryGroup(parts, s)
	defer g.close()
	before := liveHeap()
	for r := range parts {
		g.all.Go(func() { g.run(r, c.counting(r, g.devs[r]), c.dryEndpoint(r), opt) })
	}
	g.first.Wait()
	heap := liveHeap() - before
	close(g.measured)
	g.all.Wait()
	return g.needs(heap), worker.FirstError(g.errs)
}

// dryGroup is the workers of a dry run in one process.
type dryGroup struct {
	parts      []*partition.Part
	ends       []wire.Endpoint
	devs       []*cpu.Dry
	done       []*train.Needs
	errs       []error
	all, first sync.WaitGroup // workers; those that have not ended their first epoch
	measured   chan struct{}  // closed when the heap was measured after it
}

func newDryGroup(parts []*partition.Part, s *spec.Spec) *dryGroup {
	n := len(parts)
	g := &dryGroup{parts: parts, devs: make([]*cpu.Dry, n), done: make([]*train.Needs, n), errs: make([]error, n),
		measured: make(chan struct{})}
	for r, end := range wire.NewGroup(n, wire.DefaultOptions()) {
		g.ends, g.devs[r] = append(g.ends, end), NewDryDevice(s)
	}
	g.first.Add(n)
	return g
}

// run is the worker of a rank. planned has the links of the run.
func (g *dryGroup) run(r int, dev tensor.Device, planned dryEndpoint, opt train.Options) {
	ended := sync.OnceFunc(g.first.Done)
	defer ended()
	ctx, part := context.Background(), g.parts[r]
	planned.Endpoint = g.ends[r]
	peers := train.NewGroup(ctx, g.ends[r], dev, part.Book.Servers)
	wait := afterFirstEpoch(func() {
		ended()
		<-g.measured
	})
	done, err := train.DryRun(ctx, dev, part, planned, peers, opt, wait)
	if g.done[r], g.errs[r] = done, planError(g.devs[r], err); g.errs[r] != nil {
		g.ends[r].Fail(g.errs[r])
	}
}

// needs divides the heap that no device has taken equally among the workers.
func (g *dryGroup) needs(heap int64) []*need {
	n := len(g.parts)
	smalls := make([]int64, n)
	for r, dev := range g.devs {
		_, smalls[r] = dev.Footprint()
		heap -= smalls[r]
	}
	needs := make([]*need, n)
	for r := range g.parts {
		if g.done[r] != nil {
			needs[r] = newNeed(g.done[r], g.devs[r], heap/int64(n)+smalls[r])
		}
	}
	return needs
}

func (g *dryGroup) close() {
	for r := range g.parts {
		g.ends[r].Close()
		g.devs[r].Close()
	}
}

// dryEndpoint is an endpoint that knows the links of the run, to plan with.
type dryEndpoint struct {
	wire.Endpoint // nil: there are no peers
	rank          int
	links         []wire.Link
}

func (e dryEndpoint) Rank() int               { return e.rank }
func (e dryEndpoint) Size() int               { return len(e.links) }
func (e dryEndpoint) Link(peer int) wire.Link { return e.links[peer] }

// Clock is the host's: the time of a dry run is not reported.
func (e dryEndpoint) Clock() wire.Clock { return wire.Real }

// dryEndpoint is the endpoint of a rank before the run.
func (c *Run) dryEndpoint(rank int) dryEndpoint {
	links := make([]wire.Link, c.Spec.Cluster.Workers)
	for q := range links {
		switch {
		case q == rank:
		case c.Spec.Cluster.Servers > 1 && setup.ServerOf(c.Spec, q) != setup.ServerOf(c.Spec, rank):
			links[q] = wire.BetweenServers
		case !c.Spec.Goroutines():
			links[q] = wire.SameHost
		}
	}
	return dryEndpoint{rank: rank, links: links}
}

// counting is the device of a rank's dry run: dev itself, unless its work is counted.
func (c *Run) counting(rank int, dev tensor.Device) tensor.Device {
	if c.counts == nil {
		return dev
	}
	c.counts[rank] = newWorkCounter(dev)
	return c.counts[rank]
}
