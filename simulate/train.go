package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"starling/coflow"
	"starling/cost"
	"starling/event"
	"starling/graph"
	"starling/netsim"
	"starling/partition"
	"starling/plan"
	"starling/report"
	"starling/setup"
	"starling/spec"
	"starling/supervise"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/train"
	"starling/watch"
	"starling/wire"
	"starling/worker"
)

// Options say which strategies train over which simulated network.
type Options struct {
	spec.Compare
	Topology       string // text form or a file
	Rate, Delay    string // of links; "": the topology's
	Level          string
	Background     float64 // load
	BackgroundSeed uint64
	// Computing is measured, none, or the text form of cost.Compute.
	Computing string
	// SkipComputing leaves out the numbers: times and bytes are the same as in a run that computes.
	SkipComputing bool
	RatesFile     string // that keeps measured rates; "": this user's
	Measure       bool   // the rates again
	// Sharing is how many workers have the machine that rates are measured on: each has its part.
	Sharing int
	// Passes is how many packets per second pass the pipeline of a switch that adds; Steady hosts
	// do not slow down when packets are marked.
	Passes float64
	Steady bool
	// Strawman times an exchange of the switch, and without its blocks.
	Strawman bool
	Charts   int // ports whose queue and utilisation over time are kept
	// Events is a folder that gets a file of events per strategy; "": none. Command is the one that repeats the run.
	Events, Command string
	Simulated       func(Row)

	measure func() (cost.Compute, error) // where a test gives it
}

// Default trains eight workers on a star.
func Default() Options {
	o := Options{Compare: spec.DefaultCompare(), Topology: "star", Level: "packet", Computing: "measured",
		Charts: 8, Sharing: 1, Passes: netsim.DefaultPasses}
	o.Cluster.Workers, o.Training.Epochs, o.Papers = 8, 3, false
	return o
}

// forever is the timeout of a simulated wait: where nothing can happen any more, it passes at
// once.
const forever = 10 * 24 * time.Hour

// Train trains one case after the other on simulated workers, in virtual time.
func Train(ctx context.Context, o Options, events event.Listener) (*Simulated, error) {
	events = event.Locked(setup.MinorNotesOnce(onlyNotes(event.All(events))))
	if err := o.CheckValues(); err != nil {
		return nil, err
	}
	if o.Sharing < 1 {
		return nil, spec.Mistake("--sharing", fmt.Sprint(o.Sharing), "1 or more workers per machine", "")
	}
	for _, f := range []struct{ flag, path string }{{"--json", o.Output.JSON}, {"--html", o.HTML}} {
		if err := spec.CheckFile(f.flag, f.path); err != nil {
			return nil, err
		}
	}
	if partition.IsPartition(o.Dataset) || o.Cluster.Partition != "" {
		o.Cluster.Workers = 0 // one for each part
	}
	o.Cluster.InProcess = true // no processes, no listeners
	cases, err := o.Cases()
	if err != nil {
		return nil, err
	}
	files, err := o.eventFiles(cases)
	if err != nil {
		return nil, err
	}
	remove, err := setup.CutForCases(ctx, cases, events)
	defer remove()
	if err != nil {
		return nil, err
	}
	from, err := o.chargeBy(ctx, &cases[0].Spec, events)
	if err != nil {
		return nil, err
	}
	out := &Simulated{From: from, Skipped: o.SkipComputing}
	for i := range cases {
		if ctx.Err() != nil {
			return out, report.ErrInterrupted
		}
		row := o.row(ctx, &cases[i], files[i], events)
		if out.Rows = append(out.Rows, row); o.Simulated != nil {
			o.Simulated(row)
		}
	}
	return out, nil
}

// onlyNotes leaves out epochs: their rate would be of virtual time.
func onlyNotes(l event.Listener) event.Listener {
	return event.Func(func(e event.Event) {
		if _, ok := e.(event.Note); ok {
			l.On(e)
		}
	})
}

// row simulates one case. A case that fails is a row with its error.
func (o *Options) row(ctx context.Context, c *spec.Case, file *eventFile, events event.Listener) Row {
	row := Row{Strategy: c.Name}
	if err := o.simulate(ctx, c, &row, file, events); err != nil {
		row.Error, row.err = err.Error(), err
	}
	return row
}

func (o *Options) simulate(ctx context.Context, c *spec.Case, row *Row, file *eventFile,
	events event.Listener) (err error) {
	s, err := o.prepare(ctx, c.Spec, events)
	if err != nil {
		return err
	}
	defer s.parts.Remove()
	if file != nil {
		s.watched()
		defer func() { err = errors.Join(err, file.write(s, row, err)) }()
	}
	began := time.Now()
	var shares []*worker.Share
	row.Network, err = s.scenario.Run(func(ends []wire.Endpoint) (err error) {
		shares, err = worker.Together(ends, func(end wire.Endpoint) (*worker.Share, error) {
			return s.worker(ctx, end, events)
		})
		return err
	})
	if err != nil {
		return err
	}
	r, err := worker.JoinShares(shares)
	if err != nil {
		return err
	}
	row.Run, row.Computing = s.run().Report(shares, r, time.Since(began)), o.Computing
	return nil
}

// simulation is a run over simulated links.
type simulation struct {
	spec     spec.Spec
	parts    *setup.Parts
	scenario netsim.Scenario
	rates    cost.Compute
	skip     bool
	watch    *watch.Virtual // nil: nothing shows what workers do
}

// prepare checks all that can be checked before the workers start.
func (o *Options) prepare(ctx context.Context, one spec.Spec, events event.Listener) (*simulation, error) {
	s := &simulation{spec: one, skip: o.SkipComputing}
	if err := setup.Check(&s.spec); err != nil {
		return nil, err
	}
	var err error
	if s.parts, err = setup.FindParts(ctx, &s.spec, events); err != nil {
		return nil, err
	}
	s.spec.ForData(&s.parts.Meta, simd.Best().String())
	err = s.parts.Suits(&s.spec)
	if err == nil {
		s.scenario, err = o.scenario(&s.spec, setup.ServersOf(&s.spec))
	}
	if err == nil {
		s.rates, err = o.rates()
	}
	if err == nil {
		s.scenario.Options.Host = hostOptions(s.rates, s.spec.Cluster.Workers)
	}
	if err == nil && s.skip {
		err = s.checkSkipped()
	}
	if err != nil {
		s.parts.Remove()
		return nil, err
	}
	return s, nil
}

// run is the run as workers get it, and as it is reported.
func (s *simulation) run() *supervise.Run { return &supervise.Run{Spec: s.spec, Parts: s.parts} }

// checkSkipped refuses strategies that send what depends on the numbers.
func (s *simulation) checkSkipped() error {
	part, err := s.run().Task().OpenPart(0, "")
	if err != nil {
		return err
	}
	defer part.Close()
	opt, err := setup.Options(&s.spec, &s.parts.Meta)
	if err != nil {
		return err
	}
	var p plan.Plan
	if err := (&plan.Run{Spec: &s.spec, Parts: s.parts}).AddSent(&p, part, opt); err != nil || !p.AtMost {
		return err
	}
	return spec.Mistake("--skip-computing", "it with "+s.spec.Strategy+" and these settings",
		"a strategy whose bytes do not depend on the numbers", "leave the flag out")
}

// scenario is the network of a run. Workers of one server are at one host where there are as
// many hosts as servers; else each has a host of its own.
func (o *Options) scenario(s *spec.Spec, servers []int) (netsim.Scenario, error) {
	top, err := o.topology(s.Cluster.Workers)
	if err != nil {
		return netsim.Scenario{}, err
	}
	opt := wire.DefaultOptions()
	opt.Timeout, opt.ServerOf, opt.Order = forever, servers, coflow.OrderNamed(s.Cluster.SendOrder)
	out := netsim.Scenario{Topology: top, Level: o.Level, Workers: s.Cluster.Workers, Charted: o.Charts, Links: true,
		Background: netsim.Background{Load: o.Background, Seed: o.BackgroundSeed}, Options: netsim.Options{Options: opt,
			Switch: &netsim.SwitchOptions{Passes: o.Passes, Steady: o.Steady,
				Strawman: o.Strawman}}}
	switch hosts := top.HostCount(); {
	case hosts >= s.Cluster.Workers:
	case servers != nil && hosts == s.Cluster.Servers:
		out.Hosts = servers
	default:
		return out, spec.Mistake("--topology", fmt.Sprintf("a network of %d hosts", hosts),
			fmt.Sprintf("one with a host for each of %d workers", s.Cluster.Workers),
			"docs/simulator.md lists networks; a plain "+
				"star is as large as needed")
	}
	if err := out.Validate(); err != nil {
		return out, spec.Mistake("--level, --background", graph.Sentence(err.Error()), "a simulation", "")
	}
	return out, nil
}

// topology is the network with the rate and the delay that were given.
func (o *Options) topology(workers int) (netsim.Topology, error) {
	text := o.Topology
	if words := strings.Fields(text); len(words) > 0 && words[0] == "star" && !strings.Contains(text, "hosts=") {
		text += fmt.Sprintf(" hosts=%d", workers)
	}
	t, err := netsim.ReadTopology(text)
	if err != nil {
		return t, spec.Mistake("--topology", graph.Sentence(err.Error()), "a network", "docs/simulator.md lists them")
	}
	if o.Rate != "" {
		if t.Rate, err = netsim.ParseRate(o.Rate); err != nil {
			return t, spec.Mistake("--rate", fmt.Sprintf("%q", o.Rate), "a rate", "for example 25Gbps")
		}
	}
	if o.Delay != "" {
		if t.Delay, err = netsim.ParseTime(o.Delay); err != nil {
			return t, spec.Mistake("--delay", fmt.Sprintf("%q", o.Delay), "a time", "for example 1us")
		}
	}
	return t, nil
}

// hostOptions are what messages take of the workers' processors at these rates.
func hostOptions(c cost.Compute, workers int) netsim.HostOptions {
	h := netsim.HostOptions{Send: c.Send, Recv: c.Recv, Message: time.Duration(c.Message * 1e9)}
	for range workers {
		h.Processors = append(h.Processors, netsim.NewProcessor(nil))
	}
	return h
}

// worker trains as the rank of an endpoint, in virtual time.
func (s *simulation) worker(ctx context.Context, end wire.Endpoint, events event.Listener) (*worker.Share, error) {
	part, err := s.run().Task().OpenPart(end.Rank(), "")
	if err != nil {
		return nil, err
	}
	defer part.Close()
	opt, err := setup.Options(&s.spec, &s.parts.Meta)
	if err != nil {
		return nil, err
	}
	dev := s.device(end)
	defer dev.Close()
	m := watch.NewMeter(end.Ledger())
	peers := train.NewGroup(context.WithoutCancel(ctx), end, dev, part.Book.Servers)
	all := event.All(m, worker.OwnEvents(end.Rank(), events))
	if s.watch != nil {
		var l event.Listener
		l, opt.Planned = s.watch.Worker(end)
		all = event.All(all, l)
	}
	r, err := train.Worker(ctx, dev, part, end, peers, opt, all)
	if err != nil {
		return nil, err
	}
	if s.watch != nil {
		s.watch.Ended(end.Rank())
	}
	out := worker.NewShare(r, nil, m, end)
	out.Threads = 1
	return out, nil
}

// device is what a worker computes with: it computes on one thread, or not at all, and takes virtual time.
func (s *simulation) device(end wire.Endpoint) tensor.Device {
	one := s.spec
	one.Machine.Threads = 1
	var dev tensor.Device
	if s.skip {
		dev = plan.NewDryDevice(&one)
	} else {
		dev = setup.HostDevice(&one)
	}
	return cost.Charged(dev, s.rates, s.scenario.Options.Host.Processors[end.Rank()].Charge)
}

// Err is the error of the first case that failed.
func (t *Simulated) Err() error {
	i := slices.IndexFunc(t.Rows, func(r Row) bool { return r.err != nil })
	if i < 0 {
		return nil
	}
	return errors.Join(fmt.Errorf("%s: %w", t.Rows[i].Strategy, t.Rows[i].err))
}
