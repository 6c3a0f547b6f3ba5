package run

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"starling/cost"
	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/netsim"
	"starling/partition"
	"starling/sample"
	"starling/spec"
	"starling/tensor"
	"starling/train"
)

// PlanOptions say what to plan for.
type PlanOptions struct {
	spec.Spec
	Rate, Delay  string   // of links between servers; "": as measured
	Sharing      int      // workers on one machine; 0: those of a server
	Memory       string   // of a worker; "": what is free here, shared
	RatesFile    string   // "": that of this user
	Measure      bool     // the rates again
	Approximate  bool     // may be picked
	Ways         bool     // also the cards and networks of this host that were not asked for
	Partitioners []string // to try with a dataset
	Strategies   []string // only these, as comparisons write them; none: all with the options that plans try
	Links        LinkOptions
	HTML         string
	Given        string // flags of training as they were given, for commands

	slowness float64           // of the model's steps, where a test gives it
	links    []cost.ServerLink // that the file has
	given    train.Settings    // of strategies: each choice takes those that are for it
}

// DefaultPlan is a plan without any flag.
func DefaultPlan() PlanOptions { return PlanOptions{Spec: spec.Default()} }

// PlanChoices predicts what every strategy and its options would take, and ranks them.
func PlanChoices(ctx context.Context, o PlanOptions, events event.Listener) (*Choices, error) {
	events = event.All(events)
	if err := o.complete(); err != nil {
		return nil, err
	}
	known, err := o.rates(ctx, events)
	if err != nil {
		return nil, err
	}
	out := &Choices{Model: o.Model.Name, Mode: o.Mode, Workers: o.Cluster.Workers, Servers: max(o.Cluster.Servers, 1),
		Machine: known.Machine, Between: known.Between}
	for _, method := range o.methods() {
		if err := o.planCut(ctx, method, known, out, events); err != nil {
			return nil, err
		}
	}
	out.rank(&o)
	return out, nil
}

// complete checks the settings that a plan is for.
func (o *PlanOptions) complete() error {
	o.given, o.Settings = o.Settings, nil
	if err := o.Complete(); err != nil {
		return err
	}
	of := o.Spec
	of.Settings = o.given
	o.Settings = of.ForStrategy(o.Strategy).Settings
	if err := o.checkSettings(); err != nil {
		return err
	}
	if o.Cluster.Workers < 2 {
		return spec.Mistake("--workers", fmt.Sprint(o.Cluster.Workers), "how many workers to plan for",
			"for example --workers 4 --servers 2, or a partition folder")
	}
	if o.Cluster.Servers < 2 && (o.Rate != "" || o.Delay != "") {
		return graph.Apart("--rate", fmt.Sprintf("all %d workers on one server", o.Cluster.Workers),
			"it is that of the links between servers, and there are none", "group the workers with --servers, or leave it out")
	}
	if o.Sharing == 0 {
		o.Sharing = o.Cluster.Workers / max(o.Cluster.Servers, 1)
	}
	if o.Sharing < 1 || o.Sharing > o.Cluster.Workers {
		return spec.Mistake("--sharing", fmt.Sprint(o.Sharing), fmt.Sprintf("1 to %d workers per machine",
			o.Cluster.Workers), "")
	}
	return nil
}

// checkSettings refuses options that no strategy of the mode has.
func (o *PlanOptions) checkSettings() error {
	for _, option := range train.AllOptions() {
		of := func(name string) bool { return slices.Contains(train.NamesOf(train.Mode(o.Mode)), name) }
		if _, given := o.given[option.Name]; given && !slices.ContainsFunc(option.Strategies, of) {
			return graph.Apart(option.Flag(), "--mode "+o.Mode, "a setting without effect", "it is only for --strategy "+
				strings.Join(option.Strategies, ", "))
		}
	}
	return nil
}

// methods are how the dataset is cut; one empty: it is a partition already.
func (o *PlanOptions) methods() []string {
	switch {
	case o.PartitionFolder() != "":
		return []string{""}
	case len(o.Partitioners) > 0:
		return o.Partitioners
	}
	return []string{o.Cluster.Partitioner}
}

// planner predicts choices on the parts of one cut.
type planner struct {
	*PlanOptions
	known    *cost.Known
	parts    *parts
	open     []*partition.Part
	method   string // "": the only one
	slowness float64
	memory   int64 // of a worker; 0: unknown
	rates    cost.Rates
	done     map[string]*dryRunOf // dry runs, by what tells them apart
	crossing float64              // of links between many servers, that are used at once
	all      []way
	caches   map[string]*cached // by policy and what else decides
	accesses map[string][]*sample.Access
}

// planCut plans all candidates on the parts that a method cuts.
func (o *PlanOptions) planCut(ctx context.Context, method string, known *cost.Known, out *Choices,
	events event.Listener) error {
	p := &planner{PlanOptions: o, known: known, done: map[string]*dryRunOf{}, caches: map[string]*cached{},
		accesses: map[string][]*sample.Access{}}
	one := o.Spec
	if method != "" {
		one.Cluster.Partitioner = method
	}
	if len(o.Partitioners) > 1 {
		p.method = method
	}
	var err error
	if p.parts, err = findParts(ctx, &one, events); err != nil {
		return err
	}
	defer p.parts.remove()
	if err := p.openParts(); err != nil {
		return err
	}
	defer p.close()
	if err := p.calibrate(events); err != nil {
		return err
	}
	if p.memory, err = p.workerMemory(); err != nil {
		return err
	}
	began := time.Now()
	if p.crossing, err = p.simulateLinks(); err != nil {
		return err
	}
	out.Computing = p.known.Compute.Slower(p.slowness).WithSending(p.known.Handling(), p.known.Cores).String()
	out.Dataset, out.Vertices, out.Edges = p.parts.book.Dataset, p.parts.book.Nodes, p.parts.book.Edges
	if p.all, err = p.ways(out); err != nil {
		return err
	}
	candidates := p.candidates(out)
	events.On(event.Note{Minor: true, Text: "planning " + Counted(len(candidates), "choice")})
	for _, s := range candidates {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		p.add(s, out)
	}
	out.Seconds += time.Since(began).Seconds()
	return nil
}

func (p *planner) openParts() error {
	for r := range p.Cluster.Workers {
		part, err := partition.OpenPart(p.parts.dir, r)
		if err != nil {
			p.close()
			return fmt.Errorf("rank %d: %w", r, err)
		}
		regroup(&p.Spec, part)
		p.open = append(p.open, part)
	}
	return nil
}

func (p *planner) close() {
	for _, part := range p.open {
		part.Close()
	}
}

// workerMemory is what a worker may use.
func (p *planner) workerMemory() (int64, error) {
	if p.Memory != "" {
		return exchange.ParseBytes("--memory", p.Memory)
	}
	return tensor.MemoryFree() / int64(p.Sharing), nil
}

// candidates are the strategies of the mode with every combination of the options that plans try. What is left out
// is told with its reason.
func (p *planner) candidates(out *Choices) (list []spec.Spec) {
	all := p.Spec
	all.Settings = p.given
	for _, text := range p.Strategies {
		one, err := plainly(all.ForStrategy(text))
		if err != nil {
			out.drop(text, p.method, reason(err))
			continue
		}
		list = append(list, one)
	}
	if len(p.Strategies) > 0 {
		return list
	}
	for _, d := range train.Strategies() {
		switch {
		case d.Mode != train.Mode(p.Mode):
			continue
		case d.Needs != "" && p.given["switch"] == nil:
			out.drop(d.Name, p.method, "needs "+d.Needs)
			continue
		}
		for _, given := range p.settingsOf(d) {
			one := all // first, since what is given may be for options that are tried
			for name, value := range given {
				one.Settings = one.Settings.With(d.Option(name), value)
			}
			list = append(list, one.ForStrategy(d.Name))
		}
	}
	return list
}

// plainly is s with the options that follow its strategy's name among the settings.
func plainly(s spec.Spec) (spec.Spec, error) {
	choice, err := s.Choice()
	if err != nil || choice.Descriptor == nil {
		return s, err
	}
	s.Strategy = choice.Name()
	for _, o := range choice.Descriptor.Options() {
		s.Settings = s.Settings.With(o, choice.Get(o))
	}
	return s, nil
}

// settingsOf are the combinations of the values that plans try.
func (p *planner) settingsOf(d *train.Descriptor) []train.Settings {
	list := []train.Settings{{}}
	for _, o := range d.Options() {
		if _, given := p.given[o.Name]; given || o.Try == nil {
			continue
		}
		next := slices.Clone(list)
		for _, text := range o.Try {
			value, err := o.Parse(text)
			if err != nil || value == o.Default {
				continue
			}
			for _, s := range list {
				next = append(next, s.With(o, value))
			}
		}
		list = next
	}
	return list
}

// add predicts a candidate, or tells why it cannot be.
func (p *planner) add(s spec.Spec, out *Choices) {
	name := candidateName(&s)
	choice, err := s.Choice()
	if err != nil {
		out.drop(name, p.method, reason(err))
		return
	}
	demands, err := p.demands(&s)
	if err != nil {
		out.drop(name, p.method, reason(err))
		return
	}
	for i := range p.all {
		p.addWay(&p.all[i], s, name, demands, choice, out)
	}
}

// addWay predicts a candidate that computes and sends in one of the ways.
func (p *planner) addWay(w *way, s spec.Spec, name string, demands []cost.Demand, choice train.Choice, out *Choices) {
	if w.flags != "" {
		name += " " + w.flags
	}
	s, err := w.goes(s)
	if err != nil {
		out.drop(name, p.method, reason(err))
		return
	}
	at := cost.Site{Workers: p.Cluster.Workers, Servers: max(p.Cluster.Servers, 1), Sharing: p.Sharing}
	if choice.Descriptor.HaloRows {
		at.Crossing = p.crossing
	}
	known, slowness := w.known(p.known, p.slowness)
	predicted := cost.Predict(known, at, demands, cost.Overlap(choice.Descriptor.Overlap), slowness)
	if w.computes == nil {
		predicted = predicted.Scaled(p.known.Factor(learntKind(&s)))
	}
	if short := p.fits(w, &predicted); short != "" {
		out.drop(name, p.method, short)
		return
	}
	out.Rows = append(out.Rows, Planned{Name: name, Partitioner: p.method, Exact: choice.Exact(), Flags: w.flags,
		Published: choice.Descriptor.Paper != nil && len(s.Settings.Without("rates").Without("memory_budget")) == 0,
		Predicted: predicted, Strategy: s.Strategy, Settings: s.Settings, Command: p.command(&s, w.flags)})
}

// learntKind is what predictions are corrected by, once runs have been seen.
func learntKind(s *spec.Spec) string { return s.Mode + " " + s.Model.Name + " " + s.StrategyName() }

// decide gives a strategy that chooses by rates those of this plan, so that it will choose what was planned.
func (p *planner) decide(c *clusterRun) {
	if chooses, err := c.chooses(); err != nil || !chooses {
		return
	}
	choice, err := c.spec.Choice()
	if err != nil {
		return
	}
	budget := p.memory / 4
	for _, o := range choice.Descriptor.Options() {
		switch o.Name {
		case "rates":
			c.spec.Settings = c.spec.Settings.With(o, p.rates.String())
		case "memory_budget":
			c.spec.Settings = c.spec.Settings.With(o, fmt.Sprintf("%dMiB", max(budget>>20, 1)))
		}
	}
}

// candidateName is a strategy with what differs from its defaults, as comparisons write it.
func candidateName(s *spec.Spec) string {
	name := s.StrategyName()
	for _, o := range train.Find(name).Options() {
		value, ok := s.Settings[o.Name]
		switch {
		case !ok || o.Name == "rates" || o.Name == "memory_budget":
		case o.Suffix == "*":
			name += "+" + fmt.Sprint(value)
		case o.Suffix != "":
			name += "+" + o.Suffix
		case o.Main:
			name += ":" + fmt.Sprint(value)
		}
	}
	return name
}

// command runs a candidate.
func (p *planner) command(s *spec.Spec, more string) string {
	words := []string{"starling", "train", p.Dataset}
	if p.Dataset == "" {
		words = []string{"starling", "train", p.Cluster.Partition}
	}
	if p.Given != "" {
		words = append(words, p.Given)
	}
	if p.method != "" && p.method != spec.Default().Cluster.Partitioner {
		words = append(words, "--partitioner", p.method)
	}
	if more != "" {
		words = append(words, more)
	}
	words = append(words, "--strategy", s.StrategyName())
	choice, _ := s.Choice()
	for _, o := range choice.Descriptor.Options() {
		value, ok := s.Settings[o.Name]
		switch {
		case !ok:
		case value == true:
			words = append(words, o.Flag())
		default:
			words = append(words, o.Flag(), fmt.Sprint(value))
		}
	}
	return strings.Join(words, " ")
}

// reason is an error in one line.
func reason(err error) string {
	return strings.ReplaceAll(err.Error(), "\n", " ")
}

// linkOf is a link of a given rate and delay.
func linkOf(rate, delay string, l cost.Link) (cost.Link, error) {
	if rate != "" {
		r, err := netsim.ParseRate(rate)
		if err != nil {
			return l, spec.Mistake("--rate", fmt.Sprintf("%q", rate), "a rate", "for example 25gbit")
		}
		l.Rate = float64(r) / 8
	}
	if delay != "" {
		d, err := netsim.ParseTime(delay)
		if err != nil {
			return l, spec.Mistake("--delay", fmt.Sprintf("%q", delay), "a time", "for example 50us")
		}
		l.Delay = float64(d) / float64(netsim.Second)
	}
	if math.IsNaN(l.Rate) || l.Rate <= 0 {
		return l, spec.Mistake("--rate", "none, and workers on several servers", "the rate of the links between them",
			"for example --rate 1gbit")
	}
	return l, nil
}
