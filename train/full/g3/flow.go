package g3

import (
	"slices"
	"time"

	"starling/coflow"
	"starling/event"
	"starling/exchange"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// flow is the exchange of the rows of one synchronisation point in one direction, one
// message per chunk.
type flow struct {
	g        *g3
	o        *order
	t        exchange.Tag
	parts    []flowPart // the rows, and attention's scores
	sent     []chunk    // what leaves, what comes
	coming   []chunk
	arrivals []int // tasks of coming
	leaving  []*wire.Pending
	owned    []tensor.Matrix
	ready    *ready // of the point's vertices, or nil

	missing     int // chunks on their way to us
	first, last time.Time
}

// flowPart are rows that travel beside others: in has a row for every arriving one, out
// for every one that leaves.
type flowPart struct {
	t       exchange.Tag
	in, out tensor.Matrix
	own     tensor.Matrix      // forward: rows that out is gathered from; backward: those that in is added to
	x       *exchange.Transfer // of in and out, as they travel
}

// arriving is a chunk on its way to us.
type arriving struct {
	flow    *flow
	i       int
	pending []*wire.Pending
}

// forwardFlow brings the halo rows of a synchronisation point.
func (g *g3) forwardFlow(point int, arrivals []int) *flow {
	b := g.halo
	o := g.order(point)
	f := &flow{g: g, o: o, t: exchange.Tag{Kind: wire.Activation}, sent: o.sends, coming: o.halos, arrivals: arrivals}
	if g.run.SyncPoint(point) == nn.SumPoint {
		s := g.run.Sums(point)
		f.t.Layer = s.Layer
		f.add(f.scratch(s.Src, b.HaloRows()), f.scratch(s.Src, o.send.Len()), s.Src)
		f.parts[0].x.ReverseAt(o.haloBack, o.sendBack)
	} else {
		op := g.run.Edgewise(point)
		f.t.Layer, f.t.EdgeOp = op.Layer(), true
		for _, m := range op.Sent() {
			f.add(m.Slice(b.Src, m.Rows), f.scratch(m, o.send.Len()), m.Slice(0, b.Src))
		}
	}
	f.receive()
	return f
}

// backwardFlow returns the gradients of halo rows, and brings those of own rows.
func (g *g3) backwardFlow(point int, arrivals []int) *flow {
	b := g.halo
	o := g.points[point].owned
	f := &flow{g: g, o: o, t: exchange.Tag{Backward: true, Kind: wire.Gradient}, sent: o.halos, coming: o.sends,
		arrivals: arrivals}
	if g.run.SyncPoint(point) == nn.SumPoint {
		s := g.run.SumGrads(point)
		f.t.Layer = s.Layer
		f.add(f.scratch(s.Src, o.send.Len()), f.scratch(s.Src, b.HaloRows()), s.Src)
	} else {
		op := g.run.EdgewiseGrad(point)
		f.t.Layer, f.t.EdgeOp = op.Layer(), true
		for _, m := range op.SentGrads() {
			f.add(f.scratch(m, o.send.Len()), m.Slice(b.Src, m.Rows), m.Slice(0, b.Src))
		}
	}
	f.receive()
	return f
}

func (f *flow) add(in, out, own tensor.Matrix) {
	t := f.t
	t.Scores = len(f.parts) > 0
	f.parts = append(f.parts, flowPart{t, in, out, own, f.g.rows.Transfer(t, in, out)})
}

// scratch is a buffer for rows like those of m.
func (f *flow) scratch(m tensor.Matrix, rows int) tensor.Matrix {
	s := f.g.W.Dev.Scratch(m.Type(), rows, m.Cols)
	f.owned = append(f.owned, s)
	return s
}

// key is the key of a chunk's message; exchanges of whole layers have the steps below.
func (f *flow) key(t exchange.Tag, c chunk) wire.Key {
	step := exchange.FreeSteps + uint32(2*f.o.message(c))
	if t.Scores {
		step++
	}
	return wire.Key{Step: step, Coflow: f.g.rows.Coflow(t, coflow.Rows)}
}

// receive asks for all chunks.
func (f *flow) receive() {
	f.first = f.g.W.Now()
	f.last = f.first
	f.missing = len(f.coming)
	for i, c := range f.coming {
		pending := make([]*wire.Pending, len(f.parts))
		for k, p := range f.parts {
			pending[k] = p.x.Ask(c.peer, f.key(p.t, c), c.lo, c.hi)
		}
		f.g.coming = append(f.g.coming, arriving{f, i, pending})
	}
}

// send lets a chunk leave.
func (f *flow) send(i int) {
	c := f.sent[i]
	for _, p := range f.parts {
		f.leaving = append(f.leaving, f.g.W.End.Send(c.peer, f.key(p.t, c), p.t.Kind, p.x.Bytes(c.lo, c.hi)))
	}
}

// sendTogether lets chunks of a range leave, those of the next ranks first; leaves says which. Their rows are gathered
// and encoded at once.
func (f *flow) sendTogether(chunks [2]int, leaves func(i int) bool) {
	var turns []int
	for i := chunks[0]; i < chunks[1]; i++ {
		if leaves(i) {
			turns = append(turns, i)
		}
	}
	lo, hi := f.sent[chunks[0]].lo, f.sent[chunks[1]-1].hi
	for _, p := range f.parts {
		if !p.t.Backward {
			f.g.W.Dev.GatherRows(p.out.Slice(lo, hi), p.own, f.o.send.Slice(lo, hi))
		}
		if len(turns) == chunks[1]-chunks[0] && !p.x.SkipsZeros() {
			p.x.Bytes(lo, hi)
		}
	}
	slices.SortStableFunc(turns, func(i, j int) int { return f.g.turn(f.sent[i]) - f.g.turn(f.sent[j]) })
	for _, i := range turns {
		f.send(i)
	}
}

// relay lets a chunk of rows leave that have arrived, in the form they arrived in.
func (f *flow) relay(i int) {
	c := f.sent[i]
	for _, p := range f.parts {
		rows := f.o.places[c.lo:c.hi]
		from := f.coming[slices.IndexFunc(f.coming, func(k chunk) bool {
			return k.lo <= int(rows[0]) &&
				int(rows[0]) < k.hi
		})]
		if p.x.SkipsZeros() && (f.g.W.MemoryOnly || f.g.rows.Err() != nil) {
			continue // nothing has arrived
		}
		out := p.x.RelayBytes(c.lo, c.hi, rows, from.lo, from.hi)
		f.leaving = append(f.leaving, f.g.W.End.Send(c.peer, f.key(p.t, c), p.t.Kind, out))
	}
}

// addRelayed adds, to gradients of the halo rows of a chunk, those of workers that the rows
// were relayed to, in rank order.
func (f *flow) addRelayed(i int) {
	for _, k := range f.o.relays[i] {
		c := f.coming[k]
		for _, p := range f.parts {
			f.g.W.Dev.ScatterAdd(p.out, p.in.Slice(c.lo, c.hi), f.o.send.Slice(c.lo, c.hi))
		}
	}
}

// addReturned adds the gradients that peers computed for the rows of an own bin, in rank
// order: by owner the chunks of a bin follow each other.
func (f *flow) addReturned(bin int) {
	for of := f.o.sendsOf[bin]; len(of) > 0; {
		n := 1
		for n < len(of) && f.coming[of[n]].lo == f.coming[of[n-1]].hi {
			n++
		}
		lo, hi := f.coming[of[0]].lo, f.coming[of[n-1]].hi
		for _, p := range f.parts {
			f.g.W.Dev.ScatterAdd(p.own, p.in.Slice(lo, hi), f.o.send.Slice(lo, hi))
		}
		of = of[n:]
	}
}

// land notes that a chunk has arrived, and tells the timeline when it was the last.
func (f *flow) land(c arriving) {
	for k, p := range f.parts {
		p.x.Decode(f.coming[c.i].lo, f.coming[c.i].hi, c.pending[k])
		if at := c.pending[k].At(); at.After(f.last) {
			f.last = at
		}
	}
	f.ready.arrived(c.i)
	if f.missing--; f.missing == 0 {
		// Neighbouring layers may be on their way at the same time.
		f.g.W.Events.On(event.Span{Name: f.t.String(), Kind: "transfer", Lane: 1 + max(f.t.Layer, 0)%2, Start: f.first,
			Dur: f.last.Sub(f.first)})
	}
}

// left reports whether all that was sent has left.
func (f *flow) left() bool {
	return !slices.ContainsFunc(f.leaving, func(p *wire.Pending) bool { return !p.IsDone() })
}

// close waits until all has left, and frees.
func (f *flow) close() {
	for _, p := range f.leaving {
		if err := p.Wait(f.g.W.Ctx); err != nil {
			f.g.rows.Fail(err)
		}
	}
	for _, p := range f.parts {
		p.x.Free()
	}
	for _, m := range f.owned {
		f.g.W.Dev.Free(m)
	}
}
