package plan

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"starling/cluster"
	"starling/cost"
	"starling/event"
	"starling/exchange"
	"starling/partition"
	"starling/sample"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/train"
)

// Choose predicts what every strategy and its options would take, and ranks them.
func Choose(ctx context.Context, o Options, events event.Listener) (*Choices, error) {
	events = event.All(events)
	if err := o.complete(); err != nil {
		return nil, err
	}
	known, err := o.rates(ctx, events)
	if err != nil {
		return nil, err
	}
	out := &Choices{Model: o.Model.Name, Mode: o.Mode, Workers: o.Cluster.Workers, Servers: max(o.Cluster.Servers, 1),
		Machine: known.Machine, Between: known.Between, Cores: o.Machine.CoresOf(o.Sharing), All: o.All || len(o.Strategies) > 0}
	for _, method := range o.methods() {
		if err := o.planCut(ctx, method, known, out, events); err != nil {
			return nil, err
		}
	}
	if len(out.Rows) == 0 {
		return nil, out.noneLeft()
	}
	out.rank(&o)
	return out, nil
}

// noneLeft is why no choice can be: the reasons, at most three.
func (c *Choices) noneLeft() error {
	const shown = 3
	var why []string
	for _, d := range c.Dropped[:min(shown, len(c.Dropped))] {
		why = append(why, named(d.Name, d.Partitioner)+": "+d.Reason)
	}
	if more := len(c.Dropped) - len(why); more > 0 {
		why = append(why, event.Counted(more, "other reason"))
	}
	return spec.Mistake("plan", "no choice that can be", strings.Join(why, "; "), "")
}

// planCut plans all candidates on the parts that a method cuts.
func (o *Options) planCut(ctx context.Context, method string, known *cost.Known, out *Choices,
	events event.Listener) error {
	p := &planner{Options: o, known: known, done: map[string]*dryRunOf{}, caches: map[string]*cached{},
		accesses: map[string][]*sample.Access{}}
	one := o.Spec
	if method != "" {
		one.Cluster.Partitioner = method
	}
	if len(o.Partitioners) > 1 {
		p.method = method
	}
	var err error
	if p.parts, err = setup.FindParts(ctx, &one, events); err != nil {
		return err
	}
	defer p.parts.Remove()
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
	out.Dataset, out.Vertices, out.Edges = p.parts.Book.Dataset, p.parts.Book.Nodes, p.parts.Book.Edges
	if p.all, err = p.ways(out); err != nil {
		return err
	}
	candidates := p.candidates(out)
	events.On(event.Note{Minor: true, Text: "planning " + event.Counted(len(candidates), "choice")})
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
		part, err := partition.OpenPart(p.parts.Dir, r)
		if err != nil {
			p.close()
			return fmt.Errorf("rank %d: %w", r, err)
		}
		setup.Regroup(&p.Spec, part)
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
// is listed with its reason.
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
		case d.Needs() != "" && p.given["switch"] == nil:
			out.drop(d.Name, p.method, "needs "+d.Needs())
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
	counted := cost.Predict(known, at, demands, cost.Overlap(choice.Descriptor.Overlap), slowness)
	predicted := counted
	if w.computes == nil {
		predicted = predicted.Scaled(p.known.Factor(learntKind(&s)))
	}
	if short := p.fits(w, &predicted); short != "" {
		out.drop(name, p.method, short)
		return
	}
	out.Rows = append(out.Rows, Planned{Name: name, Partitioner: p.method, Exact: choice.Exact(), Flags: w.flags,
		Published: choice.Descriptor.Paper != nil && len(s.Settings.Without("rates").Without("memory_budget")) == 0,
		Predicted: predicted, counted: counted, Strategy: s.Strategy, Settings: s.Settings, Command: p.command(&s, w.flags)})
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
	for _, given := range p.Given {
		words = append(words, cluster.Quote(given))
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
