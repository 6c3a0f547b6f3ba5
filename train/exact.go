package train

import (
	"fmt"
	"time"

	"starling/coflow"
	"starling/event"
	"starling/tensor"
	"starling/wire"
)

// exact moves every row of a border in every pass: one message a peer, layer and
// direction.
type exact struct {
	*site
	epoch    int
	training bool
	first    error
	rest     map[transfer]tensor.Matrix // what rounding took, see wire_dtype.go
	forwards map[there]*zeros           // whose gradients are to come, see sparse_rows.go
}

func (m *exact) begin(epoch int, training bool) { m.epoch, m.training = epoch, training }

func (m *exact) err() error    { return m.first }
func (m *exact) finish() error { return m.first }

// fail keeps the first failure; the rows computed after it mean nothing.
func (m *exact) fail(err error) {
	if m.first == nil {
		m.first = err
	}
}

func (m *exact) rows(t transfer, b *border, peer, _ int, _ bool) int64 {
	ptr := b.sendPtr
	if t.backward {
		ptr = b.farPtr
	}
	n := ptr[peer+1] - ptr[peer]
	if b.relay != nil {
		n += m.rows(t, b.relay.border(), peer, 0, true)
	}
	return n
}

func (m *exact) rowBytes(t transfer, numbers tensor.DType, cols int, training bool) int64 {
	if m.leavesZeros(t) {
		return int64((&zeros{known: t.backward}).most(numbers, cols))
	}
	if f := m.packed(t, numbers, cols, training); f != tensor.Unpacked {
		return int64(f.RowBytes(cols))
	}
	return int64(numbers.Size() * cols)
}

// The steps of a layer's coflow. Measuring passes are told apart from training ones.
const (
	stepRows uint32 = iota
	stepScores
	stepMeasure     // added to the above
	stepRelayed = 4 // added to all of them
	stepMeans   = 1 // of coflow.Control
	stepBins    = 8 // and more: of bins
)

// key is that of a transfer in this pass.
func (m *exact) key(t transfer) wire.Key {
	if t.layer < 0 { // once in a run, for training or for measuring
		return wire.Key{Step: m.step(t, stepRows), Coflow: coflow.ID{Type: coflow.Bulk, Layer: -1}}
	}
	step, urgency := stepRows, coflow.Rows
	if t.scores {
		step = stepScores
	}
	switch {
	case t.mean:
		step, urgency = stepMeans, coflow.Control
	case t.late:
		urgency = coflow.Bulk
	}
	return wire.Key{Step: m.step(t, step), Coflow: coflow.ID{Epoch: uint32(m.epoch), Type: urgency, Layer: int16(t.layer), Backward: t.backward}}
}

func (m *exact) step(t transfer, s uint32) uint32 {
	if !m.training {
		s += stepMeasure
	}
	if t.relayed {
		s += stepRelayed
	}
	return s
}

func (m *exact) fetchStraight(t transfer, b *border, into, src tensor.Matrix) *exchange {
	x := m.exchange(t, into, m.dev.Scratch(src.Type(), int(b.sendPtr[len(b.sendPtr)-1]), src.Cols))
	x.slots, x.owned = b.sendSlots, append(x.owned, x.out)
	x.receive(b.farPtr)
	m.dev.GatherRows(x.out, src, b.send)
	x.send(b.sendPtr)
	return x
}

func (m *exact) giveBackStraight(t transfer, b *border, rows, dst tensor.Matrix) *exchange {
	x := m.takeBack(t, b, rows, dst)
	x.send(b.farPtr)
	return x
}

// takeBack is a giveBackStraight of which nothing has left yet.
func (m *exact) takeBack(t transfer, b *border, rows, dst tensor.Matrix) *exchange {
	x := m.exchange(t, m.dev.Scratch(rows.Type(), int(b.sendPtr[len(b.sendPtr)-1]), rows.Cols), rows)
	x.slots, x.owned = b.farSlots, append(x.owned, x.in)
	x.receive(b.sendPtr)
	x.arrived = func() { m.addTheirs(b, dst, x.in) }
	return x
}

// homecoming is gradients on their way to those whose rows they are of.
type homecoming interface {
	arrival
	// instead is done with those that peers sent, in place of adding them.
	instead(use func(theirs tensor.Matrix))
}

func (x *exchange) instead(use func(theirs tensor.Matrix)) { x.arrived = func() { use(x.in) } }

// addTheirs adds the gradients that peers computed for our rows, in rank order.
func (m *exact) addTheirs(b *border, dst, in tensor.Matrix) {
	for q := range m.end.Size() {
		if lo, hi := int(b.sendPtr[q]), int(b.sendPtr[q+1]); lo < hi {
			m.dev.ScatterAdd(dst, in.Slice(lo, hi), b.send.Slice(lo, hi))
		}
	}
}

// exchange is one all-to-all of rows under way. It belongs to the pass it began in.
type exchange struct {
	m        *exact
	t        transfer
	key      wire.Key
	training bool
	in, out  tensor.Matrix // what is received, what is sent, by peer
	slots    *slots        // where out's rows find their rests; nil: in order
	owned    []tensor.Matrix
	arriving []*wire.Pending
	leaving  []*wire.Pending
	arrived  func()
	start    time.Time

	packedIn, packedOut packing
	zeros               *zeros // that rows leave out; nil: none
}

func (m *exact) exchange(t transfer, in, out tensor.Matrix) *exchange {
	z := m.newZeros(t, in, out)
	return &exchange{m: m, t: t, key: m.key(t), training: m.training, in: in, out: out, zeros: z, owned: z.owned(), start: time.Now()}
}

// receive asks each peer for its rows, at ptr[peer] to ptr[peer+1] of in.
func (x *exchange) receive(ptr []int64) {
	for q := range x.m.end.Size() {
		if lo, hi := int(ptr[q]), int(ptr[q+1]); lo < hi {
			x.arriving = append(x.arriving, x.ask(q, x.key, lo, hi))
		}
	}
}

// ask asks a peer for rows lo to hi of in.
func (x *exchange) ask(peer int, key wire.Key, lo, hi int) *wire.Pending {
	if x.zeros != nil && !x.zeros.known {
		return x.m.end.RecvAtMost(peer, key, x.t.kind, x.inBytes(lo, hi))
	}
	return x.m.end.Recv(peer, key, x.t.kind, x.inBytes(lo, hi))
}

// send starts with the next rank and goes round, so that not all send to rank 0 first.
func (x *exchange) send(ptr []int64) { x.sendAs(ptr, x.outBytes) }

// sendAs sends rows as given bytes.
func (x *exchange) sendAs(ptr []int64, bytes func(lo, hi int) []byte) {
	n := x.m.end.Size()
	for i := range n {
		q := (x.m.end.Rank() + 1 + i) % n
		if lo, hi := int(ptr[q]), int(ptr[q+1]); lo < hi {
			x.leaving = append(x.leaving, x.m.end.Send(q, x.key, x.t.kind, bytes(lo, hi)))
		}
	}
}

func (x *exchange) wait() {
	x.m.await(x.t, x.start, x.arriving)
	x.unpack()
	if x.arrived != nil {
		x.arrived()
	}
}

// awaitAll returns when all have arrived, and reports how long they travelled and how
// much of that was waited for.
func (s *site) awaitAll(name string, start time.Time, arriving []*wire.Pending) error {
	if len(arriving) == 0 {
		return nil
	}
	waiting := time.Now()
	last := start
	var first error
	for _, p := range arriving {
		err := p.Wait(s.ctx)
		switch {
		case err == nil && p.At().After(last):
			last = p.At()
		case err != nil && first == nil:
			first = err
			s.end.Fail(err) // the others end too, and no buffer is written to any more
			p.Wait(s.ctx)
		}
	}
	if first != nil {
		return first
	}
	s.events.On(event.Span{Name: name, Kind: "transfer", Lane: 1, Start: start, Dur: last.Sub(start)})
	s.events.On(event.Span{Name: name, Kind: "wait", Start: waiting, Dur: time.Since(waiting)})
	return nil
}

func (m *exact) await(t transfer, start time.Time, arriving []*wire.Pending) {
	if err := m.awaitAll(t.String(), start, arriving); err != nil {
		m.fail(err)
	}
}

// String is what timelines call a transfer.
func (t transfer) String() string {
	what := "rows"
	if t.scores {
		what = "scores"
	}
	if t.backward {
		what = "gradients of " + what
	}
	if t.relayed {
		what += " passed on"
	}
	if t.mean {
		what = "means of " + what
	}
	if t.layer < 0 {
		return "features"
	}
	return fmt.Sprintf("%s, layer %d", what, t.layer)
}

// done waits until the rows sent have left and gives buffers back.
func (x *exchange) done() {
	for _, p := range x.leaving {
		if err := p.Wait(x.m.ctx); err != nil {
			x.m.fail(err)
		}
	}
	for _, m := range x.owned {
		x.m.dev.Free(m)
	}
}
