package run

import (
	"context"
	"errors"
	"sync"

	"starling/event"
	"starling/partition"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/train"
	"starling/wire"
)

// mostTogether is the number of edges up to which workers make their dry run together: that
// loads the whole graph into one process, which several workers are there to avoid.
var mostTogether int64 = 32 << 20

// quietTogether is the number of edges up to which that takes so little time that it is not
// told.
const quietTogether = 1 << 20

// dryRuns are what workers need: one after the other if they can do without peers, else all
// together, as those of plans are. If measured rates decide what they will do, or the graph is
// large, it is what the default strategy needs, and the replicas that they choose are added.
func (c *clusterRun) dryRuns(parts []*partition.Part, all *Plan, events event.Listener) ([]*need, error) {
	s := c.spec
	s.Machine.Threads = s.Machine.CoresOf(s.Cluster.Workers)
	needs, err := []*need(nil), wire.ErrUnplanned
	if c.counts == nil || c.parts.meta.Edges > mostTogether { // a plan of many choices has all cores for each
		needs, err = c.dryRunEach(parts, &s)
	}
	if errors.Is(err, wire.ErrUnplanned) && c.parts.meta.Edges <= mostTogether {
		if c.parts.meta.Edges > quietTogether {
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
func (c *clusterRun) replicaBytes() (int64, error) {
	s := &c.spec
	opt, err := s.Options(&c.parts.meta)
	if d := opt.Strategy.Descriptor; err == nil && d != nil && d.ReplicaBytes != nil {
		return d.ReplicaBytes(opt.Strategy, s.Cluster.Workers/max(s.Cluster.Servers, 1)), nil
	}
	return 0, err
}

// dryRunEach makes dry runs of workers without peers, with one part's graph in memory at a time.
func (c *clusterRun) dryRunEach(parts []*partition.Part, s *spec.Spec) (needs []*need, err error) {
	for r, part := range parts {
		loop := func(dev *cpu.Dry, opt train.Options, events event.Listener) (*train.Needs, error) {
			return train.DryRun(context.Background(), c.counting(r, dev), part, c.dryEndpoint(r), nil, opt, events)
		}
		n, err := dryRun(s, loop, &c.parts.meta)
		if err != nil {
			return nil, err
		}
		needs = append(needs, n)
	}
	return needs, nil
}

// dryRunTogether is the same for workers that look at each other's parts first.
func (c *clusterRun) dryRunTogether(parts []*partition.Part, s *spec.Spec) ([]*need, error) {
	opt, err := dryRunOptions(s, &c.parts.meta)
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
	return g.needs(heap), firstError(g.errs)
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
		g.ends, g.devs[r] = append(g.ends, end), newDryDevice(s)
	}
	g.first.Add(n)
	return g
}

// run is the worker of a rank. planned has the links of the run.
func (g *dryGroup) run(r int, dev tensor.Device, planned dryEndpoint, opt train.Options) {
	ended := sync.OnceFunc(g.first.Done)
	defer ended()
	defer func() {
		if g.errs[r] = errors.Join(g.errs[r], planError(recover())); g.errs[r] != nil {
			g.ends[r].Fail(g.errs[r])
		}
	}()
	ctx, part := context.Background(), g.parts[r]
	planned.Endpoint = g.ends[r]
	peers := train.NewGroup(ctx, g.ends[r], dev, part.Book.Servers)
	wait := afterFirstEpoch(func() {
		ended()
		<-g.measured
	})
	g.done[r], g.errs[r] = train.DryRun(ctx, dev, part, planned, peers, opt, wait)
}

// needs are those of the workers: of the heap, what belongs to no device is shared equally.
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
func (c *clusterRun) dryEndpoint(rank int) dryEndpoint {
	links := make([]wire.Link, c.spec.Cluster.Workers)
	for q := range links {
		switch {
		case q == rank:
		case c.spec.Cluster.Servers > 1 && serverOf(&c.spec, q) != serverOf(&c.spec, rank):
			links[q] = wire.BetweenServers
		case !c.spec.Goroutines():
			links[q] = wire.SameHost
		}
	}
	return dryEndpoint{rank: rank, links: links}
}
