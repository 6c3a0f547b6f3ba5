package train

import (
	"starling/collective"
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

// Plan is what a worker will send, stated before it does. The ledger of an exact
// strategy agrees with it to the byte.
type Plan struct {
	// Once is sent during the first training pass, OnceMeasured during the first
	// measuring pass; Epoch in every training pass; Measure in every measuring pass;
	// Begin at the top of every epoch and once more where a run ends early.
	Once, OnceMeasured, Epoch, Measure, Begin map[Sent]int64
}

// Total is the bytes of a run.
func (p *Plan) Total(epochs, measured, begun int) map[Sent]int64 {
	out := map[Sent]int64{}
	for _, part := range []struct {
		bytes map[Sent]int64
		times int
	}{{p.Once, min(epochs, 1)}, {p.OnceMeasured, min(measured, 1)}, {p.Epoch, epochs}, {p.Measure, measured}, {p.Begin, begun}} {
		for k, b := range part.bytes {
			add(out, k, b*int64(part.times))
		}
	}
	return out
}

// PlanHalo is what the worker of part will send under Halo.
func PlanHalo(part *partition.Part, end wire.Endpoint, dev tensor.Device, model *nn.Model, opt Options, splitCounts int) *Plan {
	p := &Plan{Once: map[Sent]int64{}, OnceMeasured: map[Sent]int64{}, Epoch: map[Sent]int64{}, Measure: map[Sent]int64{}, Begin: map[Sent]int64{}}
	sparse := part.Book.Features != nil && part.Features.Indptr != nil
	row, number := dev.RowType(opt.Rows).Size(), dev.Type().Size()
	bytes := func(w nn.Width) int64 { return int64(w.Rows*row + w.Scores*number) }
	for q := range end.Size() {
		link := end.Link(q)
		out, back := part.SendPtr[q+1]-part.SendPtr[q], part.HaloPtr[q+1]-part.HaloPtr[q]
		measuring := model.Traffic(sparse, opt.CacheFirst, false)
		for i, t := range model.Traffic(sparse, opt.CacheFirst, true) {
			layer, m := int16(t.Layer), measuring[i]
			add(p.Once, Sent{wire.Feature, -1, link}, out*int64(t.Once*row))
			add(p.OnceMeasured, Sent{wire.Feature, -1, link}, out*int64((m.Once-t.Once)*row))
			add(p.Epoch, Sent{wire.Activation, layer, link}, out*bytes(t.Forward))
			add(p.Epoch, Sent{wire.Gradient, layer, link}, back*bytes(t.Backward))
			add(p.Measure, Sent{wire.Activation, layer, link}, out*bytes(m.Forward))
		}
	}
	p.sums(end, wire.Parameter, model.Size(), number, p.Epoch)
	p.sums(end, wire.Control, 1, 8, p.Epoch) // the loss
	p.sums(end, wire.Control, 1, 8, p.Begin) // whether to stop
	p.sums(end, wire.Control, splitCounts, 8, p.Measure)
	for _, width := range model.NormSums() {
		p.sums(end, wire.Control, 2*width, 8, p.Epoch)
		p.sums(end, wire.Control, 2*width, 8, p.Epoch)
	}
	return p
}

// sums plans an all-reduce in rank order.
func (p *Plan) sums(end wire.Endpoint, kind wire.Kind, count, width int, into map[Sent]int64) {
	for q, t := range collective.AllReduceSent(collective.Ordered, end.Rank(), end.Size(), count, width) {
		add(into, Sent{kind, -1, end.Link(q)}, t.Bytes)
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
