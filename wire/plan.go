package wire

import (
	"errors"
	"maps"
)

// Class is what the ledger tells messages apart by, epochs aside.
type Class struct {
	Kind  Kind
	Layer int16 // -1: none
	Link  Link
}

// Bytes are bytes of payload by class.
type Bytes map[Class]int64

// Add counts bytes of a class; none leave no entry.
func (b Bytes) Add(c Class, bytes int64) {
	if bytes > 0 {
		b[c] += bytes
	}
}

// AddAll adds other bytes a number of times.
func (b Bytes) AddAll(o Bytes, times int) {
	for c, bytes := range o {
		b.Add(c, bytes*int64(times))
	}
}

// Sum is the bytes of all classes.
func (b Bytes) Sum() (sum int64) {
	for _, bytes := range b {
		sum += bytes
	}
	return sum
}

// Plan is what one worker will send in a run, stated before it does. The ledger agrees
// with it to the byte, unless the plan says AtMost.
type Plan struct {
	// Prepare is sent before the first epoch; Once during the first training pass and
	// OnceMeasured during the first measuring pass; Measure in every measuring pass;
	// Begin at the start of every epoch and once more where a run ends early.
	Prepare, Once, OnceMeasured, Measure, Begin Bytes
	// Shared: Once is sent in the first pass of either kind.
	Shared bool
	// End is sent once, after the last epoch.
	End Bytes
	// Epoch is sent in the training pass of an epoch; nil: nothing.
	Epoch func(epoch int) Bytes
	// AtMost: what is sent depends on the numbers that are computed, and may be less.
	AtMost bool
	// Drawn are bytes of an epoch that depend on random draws, as expected, and Deviation their
	// expected relative deviation from it; nil: there are none.
	Drawn     Bytes
	Deviation float64
	// Done is the share of the first epoch's draws that were made before the run was resumed.
	Done float64
}

// ErrUnplanned: what is sent depends on what workers tell each other first, so that a dry
// run has no plan.
var ErrUnplanned = errors.New("planned once the workers have joined")

// NewPlan is a plan of nothing, to be added to.
func NewPlan() *Plan {
	return &Plan{Prepare: Bytes{}, Once: Bytes{}, OnceMeasured: Bytes{}, Measure: Bytes{}, Begin: Bytes{}, End: Bytes{}}
}

// In is what the training pass of an epoch sends; the caller may add to it.
func (p *Plan) In(epoch int) Bytes {
	if p.Epoch == nil {
		return Bytes{}
	}
	return p.Epoch(epoch)
}

// Total is the bytes of a run from epoch first on.
func (p *Plan) Total(first, epochs, measured, begun int) Bytes {
	out := p.Beside(epochs, measured, begun)
	for e := range epochs {
		out.AddAll(p.In(first+e), 1)
	}
	return out
}

// Beside is Total without what is sent in the training passes of epochs alone.
func (p *Plan) Beside(epochs, measured, begun int) Bytes {
	out := maps.Clone(p.Prepare)
	if out == nil {
		out = Bytes{}
	}
	if epochs > 0 || p.Shared && measured > 0 {
		out.AddAll(p.Once, 1)
	}
	out.AddAll(p.OnceMeasured, min(measured, 1))
	out.AddAll(p.Measure, measured)
	out.AddAll(p.Begin, begun)
	out.AddAll(p.End, 1)
	for c, bytes := range p.Drawn {
		out.Add(c, bytes*int64(epochs)-int64(float64(bytes)*p.Done*float64(min(epochs, 1))))
	}
	return out
}

// SentBytes is what a ledger has seen leave, in the terms of a plan.
func (l *Ledger) SentBytes() Bytes {
	out := Bytes{}
	for e, c := range l.Counts() {
		if e.Sent {
			out.Add(Class{e.Kind, e.Layer, e.Link}, c.Bytes)
		}
	}
	return out
}
