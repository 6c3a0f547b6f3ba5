package plan

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"starling/cost"
	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/train"
	"starling/wire"
)

// travels are the options that change how rows travel and nothing that is computed. A dry run for each would take
// most of a plan's time.
var travels = []string{"relay", "sparse_rows", "wire_dtype", "pull_dtype"}

// demands are what the workers do in an epoch of a candidate.
func (p *planner) demands(s *spec.Spec) ([]cost.Demand, error) {
	if err := setup.Check(s); err != nil {
		return nil, err
	}
	choice, err := s.Choice()
	if err != nil {
		return nil, err
	}
	predicted := p.predicted(s, choice.Descriptor)
	plain := p.plain(s, choice, predicted)
	key := plain.Strategy + fmt.Sprint(plain.Settings)
	if p.done[key] == nil {
		one := &dryRunOf{}
		one.demands, one.settings, one.err = p.dryRun(&plain)
		p.done[key] = one
	}
	base := p.done[key]
	if base.err != nil {
		return nil, base.err
	}
	var cache *cached
	if predicted {
		if cache, err = p.cache(s, choice, base.demands[0].Steps); err != nil {
			return nil, err
		}
	}
	settings := maps.Clone(base.settings)
	maps.Copy(settings, s.Settings)
	s.Settings = settings
	list := slices.Clone(base.demands)
	for r := range list {
		cache.applyTo(&list[r], r)
		p.pack(&list[r], s)
		list[r].Messages = p.messages(s, r, list[r].Sent)
		list[r].Sent = p.travelling(s, r, list[r].Sent)
	}
	return list, nil
}

// plain is the candidate whose dry run s shares: rows travel as they are, nothing is
// cached where what that saves is predicted, and of strategies that differ in their defaults alone it is one.
func (p *planner) plain(s *spec.Spec, c train.Choice, predicted bool) spec.Spec {
	plain, on := *s, c.Descriptor
	if like := train.Find(on.Like()); like != nil {
		plain.Strategy, on = like.Name, like
	}
	plain.Settings = maps.Clone(s.Settings)
	for _, o := range c.Descriptor.Options() {
		plain.Settings = plain.Settings.Without(o.Name)
		value := c.Get(o)
		switch {
		case slices.Contains(travels, o.Name), predicted && o.Name == "cache_budget":
			continue
		case predicted && o.Name == "cache":
			value = "none"
		}
		plain.Settings = plain.Settings.With(on.Option(o.Name), value)
	}
	return plain
}

// dryRun is the dry run of a candidate, and the settings that were decided for it.
func (p *planner) dryRun(s *spec.Spec) ([]cost.Demand, train.Settings, error) {
	one := *s
	c := &Run{Spec: &one, Parts: p.parts, counts: make([]*workCounter, p.Cluster.Workers)}
	c.Spec.Machine.Threads = s.Machine.CoresOf(p.Sharing)
	p.decide(c)
	decided := train.Settings{}
	for name, value := range c.Spec.Settings {
		if _, given := s.Settings[name]; !given {
			decided[name] = value
		}
	}
	c.Spec.ForData(&c.Parts.Meta, simd.Best().String())
	if err := c.Parts.Suits(c.Spec); err != nil {
		return nil, nil, err
	}
	all := &Plan{}
	needs, err := c.dryRuns(p.open, all, event.All())
	if err != nil {
		return nil, nil, err
	}
	if all.AtLeast {
		return nil, nil, errors.New("what it does is known only once its workers have joined")
	}
	list := make([]cost.Demand, len(needs))
	for r, n := range needs {
		work := c.counts[r].epoch().Times(float64(n.Steps) / float64(max(n.DrySteps, 1)))
		list[r] = cost.Demand{Work: work, Sent: epochBytes(n.Plan, p.Training.Epochs), Steps: n.Steps,
			Memory: n.matrices + n.graph(s.Mode == "mini") + n.Early + n.weights() + processBytes, Mapped: p.mapped(r)}
	}
	return list, decided, nil
}

// mapped is the size of a part's files.
func (p *planner) mapped(rank int) (bytes int64) {
	for _, a := range p.open[rank].Meta.Arrays {
		bytes += a.Bytes
	}
	return bytes
}

// epochBytes is what a worker sends in an epoch's training: the mean of a dozen after the first, in which strategies
// with stale rows send all of them, and which measured epochs leave out too.
func epochBytes(plan *wire.Plan, epochs int) wire.Bytes {
	first := min(1, max(epochs-1, 0))
	sent := meanEpochs(plan, first, first+min(max(epochs-first, 1), 12))
	sent.AddAll(plan.Begin, 1)
	sent.AddAll(plan.Drawn, 1)
	return sent
}

// travelling are the bytes of a worker whose rows travel as s says.
func (p *planner) travelling(s *spec.Spec, rank int, sent wire.Bytes) wire.Bytes {
	out := wire.Bytes{}
	for class, bytes := range sent {
		if isRow(class.Kind) {
			bytes = int64(math.Round(float64(bytes) * p.rowShare(s, class)))
		}
		out.Add(class, bytes)
	}
	if s.Settings["relay"] == true {
		return p.relayed(rank, out)
	}
	return out
}

// sparsePasses is how often the bytes of rows are read or written to leave their zeros out, and put them in again.
const sparsePasses = 4

// pack adds what making rows smaller takes, and making them large again.
func (p *planner) pack(d *cost.Demand, s *spec.Spec) {
	rows := float64(rowBytes(d.Sent))
	switch s.Settings["wire_dtype"] {
	case "int8":
		d.Work.Int8 += rows
	case "bf16":
		d.Work.BF16 += rows
	}
	switch s.Settings["pull_dtype"] {
	case "int8":
		d.Host += rows * p.known.PullInt8
	case "bf16":
		d.Host += rows * p.known.PullBF16
	}
	if s.Settings["sparse_rows"] == true {
		d.Work.Memory += sparsePasses * rows
	}
}

// rowBytes are the bytes of rows of vertices.
func rowBytes(sent wire.Bytes) (sum int64) {
	for class, bytes := range sent {
		if isRow(class.Kind) {
			sum += bytes
		}
	}
	return sum
}

// rowShare is what is left of a row's bytes.
func (p *planner) rowShare(s *spec.Spec, class wire.Class) float64 {
	wired := packings[s.Settings["wire_dtype"]]
	switch {
	case class.Kind == wire.Feature:
		return packedShare(packings[s.Settings["pull_dtype"]], width{4, p.featureDim()})
	case wired != tensor.Unpacked:
		return packedShare(wired, p.widthsOf(s, class)...)
	case s.Settings["sparse_rows"] == true && class.Layer > 0:
		return 1.0/32 + 0.5*(1-max(s.Model.Dropout, 0)) // about half of what a ReLU gives is zero
	}
	return 1
}

// packings are the forms of rows that settings name.
var packings = map[any]tensor.Packed{"bf16": tensor.PackBF16, "int8": tensor.PackInt8}

// width is numbers of some bytes each.
type width struct{ size, numbers int }

// packedShare is what a form leaves of the bytes of rows, each packed by itself where that makes it smaller.
func packedShare(form tensor.Packed, rows ...width) float64 {
	packed, plain := 0, 0
	for _, w := range rows {
		bytes := w.size * w.numbers
		plain += bytes
		if form != tensor.Unpacked && w.numbers > 0 {
			bytes = min(bytes, form.RowBytes(w.numbers))
		}
		packed += bytes
	}
	if plain == 0 {
		return 1
	}
	return float64(packed) / float64(plain)
}

// widthsOf are the widths of a class's rows in a training pass, and of the scores of attention that go with them.
func (p *planner) widthsOf(s *spec.Spec, class wire.Class) []width {
	one := *s
	one.ForData(&p.parts.Meta, simd.Best().String())
	opt, err := setup.Options(&one, &p.parts.Meta)
	if err != nil {
		return nil
	}
	dev := NewDryDevice(&one)
	defer dev.Close()
	for _, t := range p.layers(dev, &opt) {
		of := t.Forward
		if class.Kind == wire.Gradient {
			of = t.Backward
		}
		if t.Layer == int(class.Layer) {
			return []width{{dev.RowType(opt.Rows).Size(), of.Rows}, {dev.Type().Size(), of.Scores}}
		}
	}
	return nil
}

// layers are what the layers of a model send for a row. They are kept: to make a model takes a while.
func (p *planner) layers(dev tensor.Device, opt *train.Options) []nn.Traffic {
	key := fmt.Sprint(opt.Model, opt.CacheFirst)
	if _, ok := p.traffic[key]; !ok {
		if p.traffic == nil {
			p.traffic = map[string][]nn.Traffic{}
		}
		f := p.parts.Book.Features
		first := nn.Computed
		if opt.CacheFirst { // strategies with copies of features send less, and ask for less
			first = nn.Kept
		}
		p.traffic[key] = nn.New(dev, opt.Model, 1).Traffic(f != nil && f.Kind == graph.Sparse, first, true)
	}
	return p.traffic[key]
}

// relayed sends rows that several workers of a server need there once, and from there on inside the server.
func (p *planner) relayed(rank int, sent wire.Bytes) wire.Bytes {
	rows, once := exchange.BetweenServers(p.open[rank])
	if rows == 0 {
		return sent
	}
	out := wire.Bytes{}
	for class, bytes := range sent {
		if class.Link == wire.BetweenServers && isRow(class.Kind) {
			left := bytes * once / rows
			out.Add(wire.Class{Kind: class.Kind, Layer: class.Layer, Link: wire.SameHost}, bytes-left)
			bytes = left
		}
		out.Add(class, bytes)
	}
	return out
}

// decide gives the rates of this plan to a strategy that chooses by rates, so that it will choose what was planned.
func (p *planner) decide(c *Run) {
	if chooses, err := c.Chooses(); err != nil || !chooses {
		return
	}
	choice, err := c.Spec.Choice()
	if err != nil {
		return
	}
	budget := p.memory / 4
	for _, o := range choice.Descriptor.Options() {
		switch o.Name {
		case "rates":
			c.Spec.Settings = c.Spec.Settings.With(o, p.rates.String())
		case "memory_budget":
			c.Spec.Settings = c.Spec.Settings.With(o, fmt.Sprintf("%dMiB", max(budget>>20, 1)))
		}
	}
}

// messages is how many a worker of a full-graph strategy sends for the rows of an epoch: one, or as many as its strategy
// says, to each peer that needs some, for each layer and direction.
func (p *planner) messages(s *spec.Spec, rank int, sent wire.Bytes) float64 {
	if s.Mode != string(train.FullGraph) {
		return 0
	}
	descriptor, exchanges := train.Find(s.StrategyName()), map[wire.Class]bool{}
	for class := range sent {
		if isRow(class.Kind) {
			exchanges[wire.Class{Kind: class.Kind, Layer: class.Layer}] = true
		}
	}
	part, peers := p.open[rank], 0
	for q := range part.Book.Parts {
		if q != rank && len(part.SendTo(q)) > 0 {
			peers++
		}
	}
	n := 0.0
	for class := range exchanges {
		n += descriptor.Messages(part.Book, p.rowBytes(s, int(class.Layer))) * float64(peers)
	}
	return n
}

// rowBytes is about how many bytes a row has that leaves in a layer: the narrower of its input and output.
func (p *planner) rowBytes(s *spec.Spec, layer int) int {
	in, out := s.Model.Hidden, s.Model.Hidden
	if layer <= 0 && p.featureDim() > 0 {
		in = p.featureDim()
	}
	if classes := p.parts.Book.Classes; layer == s.Model.Layers-1 && classes > 0 {
		out = int(classes)
	}
	return 4 * max(min(in, out), 1)
}

// isRow reports whether bytes of a kind are rows of vertices.
func isRow(k wire.Kind) bool { return k == wire.Feature || k == wire.Activation || k == wire.Gradient }
