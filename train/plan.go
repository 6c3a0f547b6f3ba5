package train

import (
	"context"
	"fmt"
	"maps"

	"starling/collective"
	"starling/event"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// Sent says what one worker sends: bytes of payload by kind, layer and link.
type Sent struct {
	Kind  wire.Kind
	Layer int16 // -1: none
	Link  wire.Link
}

// Plan is what a worker will send, stated before it does. The ledger agrees with it
// to the byte, unless the plan says AtMost.
type Plan struct {
	// Prepare is sent before the first epoch; Once during the first training pass and
	// OnceMeasured during the first measuring pass; Measure in every measuring pass;
	// Begin at the top of every epoch and once more where a run ends early.
	Prepare, Once, OnceMeasured, Measure, Begin map[Sent]int64
	// Epoch is sent in the training pass of an epoch.
	Epoch func(epoch int) map[Sent]int64
	// AtMost: what is sent depends on the numbers that are computed, and may be less.
	AtMost bool
}

// Total is the bytes of a run from epoch first on.
func (p *Plan) Total(first, epochs, measured, begun int) map[Sent]int64 {
	out := maps.Clone(p.Prepare)
	if out == nil {
		out = map[Sent]int64{}
	}
	for _, part := range []struct {
		bytes map[Sent]int64
		times int
	}{{p.Once, min(epochs, 1)}, {p.OnceMeasured, min(measured, 1)}, {p.Measure, measured}, {p.Begin, begun}} {
		for k, b := range part.bytes {
			add(out, k, b*int64(part.times))
		}
	}
	for e := range epochs {
		for k, b := range p.Epoch(first + e) {
			add(out, k, b)
		}
	}
	return out
}

// PlanOnPaper is the plan of the worker of part, made without the other workers.
// end need only know who is where.
func PlanOnPaper(part *partition.Part, end wire.Endpoint, dev tensor.Device, model *nn.Model, task nn.Task, opt Options) (*Plan, error) {
	if opt.Inductive {
		return nil, fmt.Errorf("inductive training: %w", ErrUnplanned)
	}
	s, err := newStrategy(&site{ctx: context.Background(), dev: dev, part: used(part, opt), end: end, opt: opt, events: event.All(), paper: true})
	if err != nil {
		return nil, err
	}
	return s.Plan(model, task), nil
}

// Plan is what the worker will send.
func (x *exchanging) Plan(model *nn.Model, task nn.Task) *Plan {
	p := &Plan{AtMost: x.opt.Strategy.SparseRows, Prepare: x.prepare, Once: map[Sent]int64{}, OnceMeasured: map[Sent]int64{}, Measure: map[Sent]int64{}, Begin: map[Sent]int64{}}
	sparse := x.part.Book.Features != nil && x.part.Features.Indptr != nil
	training, measuring := model.Traffic(sparse, x.opt.CacheFirst, true), model.Traffic(sparse, x.opt.CacheFirst, false)
	for i, t := range training {
		x.planRows(p.Once, transfer{layer: -1, kind: wire.Feature}, nn.Width{Rows: t.Once}, 0, true)
		x.planRows(p.OnceMeasured, transfer{layer: -1, kind: wire.Feature}, nn.Width{Rows: measuring[i].Once - t.Once}, 0, false)
		x.planRows(p.Measure, transfer{layer: t.Layer, kind: wire.Activation}, measuring[i].Forward, 0, false)
	}
	always := map[Sent]int64{}
	buckets, _ := gradientBuckets(collective.New(x.end), x.dev, x.part.Book.Servers, model.Params)
	for q, t := range buckets.Plan() {
		add(always, Sent{wire.Parameter, -1, x.end.Link(q)}, t.Bytes)
	}
	x.planSums(always, 1)  // the loss
	x.planSums(p.Begin, 1) // whether to stop
	x.planSums(p.Measure, 3*task.Width())
	for _, width := range model.NormSums() {
		x.planSums(always, 2*width)
		x.planSums(always, 2*width)
	}
	p.Epoch = func(epoch int) map[Sent]int64 {
		out := maps.Clone(always)
		for _, t := range training {
			prompt := x.isPrompt(t.Layer)
			x.planRows(out, transfer{layer: t.Layer, prompt: prompt, kind: wire.Activation}, t.Forward, epoch, true)
			x.planRows(out, transfer{layer: t.Layer, prompt: prompt, backward: true, kind: wire.Gradient}, t.Backward, epoch, true)
		}
		return out
	}
	return p
}

// planRows plans the rows and the scores of a transfer.
func (x *exchanging) planRows(into map[Sent]int64, t transfer, w nn.Width, epoch int, training bool) {
	b := x.border(max(t.layer, 0))
	for q := range x.end.Size() {
		link := Sent{t.kind, int16(t.layer), x.end.Link(q)}
		if w.Rows > 0 {
			add(into, link, x.move.rows(t, b, q, epoch, training)*x.move.rowBytes(t, x.dev.RowType(x.opt.Rows), w.Rows, training))
			if m, ok := x.move.(averaging); ok && !t.always(training) {
				add(into, Sent{wire.Control, int16(t.layer), link.Link}, m.means(t, b, q, epoch)*int64(w.Rows*x.dev.Type().Size()))
			}
		}
		if w.Scores > 0 {
			t := t
			t.scores = true
			add(into, link, x.move.rows(t, b, q, epoch, training)*x.move.rowBytes(t, x.dev.Type(), w.Scores, training))
		}
	}
}

// planSums plans Peers.AddUp of so many numbers.
func (x *exchanging) planSums(into map[Sent]int64, count int) {
	for q, t := range collective.AllReduceSent(collective.Ordered, x.end.Rank(), x.end.Size(), count, 8) {
		add(into, Sent{wire.Control, -1, x.end.Link(q)}, t.Bytes)
	}
}

func add(m map[Sent]int64, k Sent, bytes int64) {
	if bytes > 0 {
		m[k] += bytes
	}
}

// Counted is what a ledger has seen leave, in the terms of a plan.
func Counted(l *wire.Ledger) map[Sent]int64 {
	out := map[Sent]int64{}
	for e, c := range l.Counts() {
		if e.Sent && c.Bytes > 0 {
			out[Sent{e.Kind, e.Layer, e.Link}] += c.Bytes
		}
	}
	return out
}
