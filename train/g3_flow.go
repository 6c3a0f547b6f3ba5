package train

import (
	"slices"
	"time"

	"starling/coflow"
	"starling/event"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// flow is the exchange of one joint's rows in one direction, a message a chunk.
type flow struct {
	g        *g3
	o        *order
	t        transfer
	parts    []flowPart // the rows, and attention's scores
	sent     []chunk    // what leaves, what comes
	coming   []chunk
	arrivals []int // tasks of coming
	leaving  []*wire.Pending
	owned    []tensor.Matrix

	missing     int // chunks on their way to us
	first, last time.Time
}

// flowPart are rows that travel beside others: in has a row for every coming one, out
// for every one that leaves.
type flowPart struct {
	t       transfer
	in, out tensor.Matrix
	own     tensor.Matrix // forwards: rows that out is packed from; backwards: those that in is added to
	bytes   *exchange     // of in and out, as they travel
}

// comer is a chunk on its way to us.
type comer struct {
	flow    *flow
	i       int
	pending []*wire.Pending
}

// forwardFlow brings the far rows of a joint.
func (g *g3) forwardFlow(joint int, arrivals []int) *flow {
	b := g.border(0)
	o := g.order(joint)
	f := &flow{g: g, o: o, t: transfer{kind: wire.Activation}, sent: o.sends, coming: o.fars, arrivals: arrivals}
	if g.run.Joint(joint) == nn.Summed {
		s := g.run.Sums(joint)
		f.t.layer = s.Layer
		f.add(f.scratch(s.Src, b.farRows()), f.scratch(s.Src, o.send.Len()), s.Src)
		if z := f.parts[0].bytes.zeros; z != nil {
			z.in.at, z.out.at = o.farHome, o.sendHome
		}
	} else {
		op := g.run.Across(joint)
		f.t.layer, f.t.across = op.Layer(), true
		for _, m := range op.Sent() {
			f.add(m.Slice(b.src, m.Rows), f.scratch(m, o.send.Len()), m.Slice(0, b.src))
		}
	}
	f.receive()
	return f
}

// backwardFlow takes the gradients of far rows home, and brings those of own rows.
func (g *g3) backwardFlow(joint int, arrivals []int) *flow {
	b := g.border(0)
	o := g.owned
	f := &flow{g: g, o: o, t: transfer{backward: true, kind: wire.Gradient}, sent: o.fars, coming: o.sends, arrivals: arrivals}
	if g.run.Joint(joint) == nn.Summed {
		s := g.run.SumGrads(joint)
		f.t.layer = s.Layer
		f.add(f.scratch(s.Src, o.send.Len()), f.scratch(s.Src, b.farRows()), s.Src)
	} else {
		op := g.run.AcrossGrad(joint)
		f.t.layer, f.t.across = op.Layer(), true
		for _, m := range op.SentGrads() {
			f.add(f.scratch(m, o.send.Len()), m.Slice(b.src, m.Rows), m.Slice(0, b.src))
		}
	}
	f.receive()
	return f
}

func (f *flow) add(in, out, own tensor.Matrix) {
	t := f.t
	t.scores = len(f.parts) > 0
	f.parts = append(f.parts, flowPart{t, in, out, own, f.g.moves.exchange(t, in, out)})
}

// scratch is room for rows like those of m.
func (f *flow) scratch(m tensor.Matrix, rows int) tensor.Matrix {
	s := f.g.dev.Scratch(m.Type(), rows, m.Cols)
	f.owned = append(f.owned, s)
	return s
}

// key is that of a chunk's message; exchanges of whole layers have the steps below.
func (f *flow) key(t transfer, c chunk) wire.Key {
	step := stepBins + uint32(2*f.o.message(c))
	if t.scores {
		step++
	}
	return wire.Key{Step: step, Coflow: coflow.ID{Epoch: uint32(f.g.epoch), Type: coflow.Rows, Layer: int16(t.layer), Backward: t.backward}}
}

// receive asks for all chunks.
func (f *flow) receive() {
	f.first = time.Now()
	f.last = f.first
	f.missing = len(f.coming)
	for i, c := range f.coming {
		pending := make([]*wire.Pending, len(f.parts))
		for k, p := range f.parts {
			pending[k] = p.bytes.ask(c.peer, f.key(p.t, c), c.lo, c.hi)
		}
		f.g.coming = append(f.g.coming, comer{f, i, pending})
	}
}

// send lets a chunk leave.
func (f *flow) send(i int) {
	c := f.sent[i]
	for _, p := range f.parts {
		if !p.t.backward {
			f.g.dev.GatherRows(p.out.Slice(c.lo, c.hi), p.own, f.o.send.Slice(c.lo, c.hi))
		}
		f.leaving = append(f.leaving, f.g.end.Send(c.peer, f.key(p.t, c), p.t.kind, p.bytes.outBytes(c.lo, c.hi)))
	}
}

// pass lets a chunk of rows leave that have come, in the form they came in.
func (f *flow) pass(i int) {
	c := f.sent[i]
	for _, p := range f.parts {
		if p.bytes.zeros != nil {
			f.passSparse(p, c)
			continue
		}
		out := p.bytes.outRoom()
		each := len(out) / p.out.Rows
		out = out[c.lo*each : c.hi*each]
		passRows(out, p.bytes.inRoom(), f.o.places[c.lo:c.hi])
		f.leaving = append(f.leaving, f.g.end.Send(c.peer, f.key(p.t, c), p.t.kind, out))
	}
}

// passSparse is pass of rows that came without their zeros, all in one chunk.
func (f *flow) passSparse(p flowPart, c chunk) {
	if f.g.rehearsed || f.g.moves.err() != nil {
		return // nothing has come
	}
	places := f.o.places[c.lo:c.hi]
	i := slices.IndexFunc(f.coming, func(k chunk) bool { return k.lo <= int(places[0]) && int(places[0]) < k.hi })
	p.bytes.outRoom()
	came, first := p.bytes.rowsAt(f.coming[i].lo, f.coming[i].hi), f.coming[i].lo
	out := p.bytes.passSparse(c.lo, c.hi, func(k int) rowAt { return came[int(f.o.places[k])-first] })
	f.leaving = append(f.leaving, f.g.end.Send(c.peer, f.key(p.t, c), p.t.kind, out))
}

// addPassed adds, to gradients of the far rows of a chunk, those of workers that the rows
// were passed on to, in rank order.
func (f *flow) addPassed(i int) {
	for _, k := range f.o.passes[i] {
		c := f.coming[k]
		for _, p := range f.parts {
			f.g.dev.ScatterAdd(p.out, p.in.Slice(c.lo, c.hi), f.o.send.Slice(c.lo, c.hi))
		}
	}
}

// addTheirs adds the gradients that peers computed for the rows of an own bin, in rank
// order.
func (f *flow) addTheirs(bin int) {
	for _, i := range f.o.sendsOf[bin] {
		c := f.coming[i]
		for _, p := range f.parts {
			f.g.dev.ScatterAdd(p.own, p.in.Slice(c.lo, c.hi), f.o.send.Slice(c.lo, c.hi))
		}
	}
}

// land notes that a chunk has come, and tells the timeline when it was the last.
func (f *flow) land(c comer) {
	for k, p := range f.parts {
		p.bytes.unpackRows(f.coming[c.i].lo, f.coming[c.i].hi, c.pending[k])
		if at := c.pending[k].At(); at.After(f.last) {
			f.last = at
		}
	}
	if f.missing--; f.missing == 0 {
		// Neighbouring layers may be on their way at the same time.
		f.g.events.On(event.Span{Name: f.t.String(), Kind: "transfer", Lane: 1 + max(f.t.layer, 0)%2, Start: f.first, Dur: f.last.Sub(f.first)})
	}
}

// left reports whether all that was sent has left.
func (f *flow) left() bool {
	for _, p := range f.leaving {
		select {
		case <-p.Done():
		default:
			return false
		}
	}
	return true
}

// close waits until all has left, and frees.
func (f *flow) close() {
	for _, p := range f.leaving {
		if err := p.Wait(f.g.ctx); err != nil {
			f.g.moves.fail(err)
		}
	}
	for _, p := range f.parts {
		f.owned = append(f.owned, p.bytes.owned...)
	}
	for _, m := range f.owned {
		f.g.dev.Free(m)
	}
}
