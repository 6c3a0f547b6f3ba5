package train

import (
	"cmp"
	"slices"

	"starling/tensor"
	"starling/wire"
)

// Rows may travel in fewer bytes than they are computed in (--wire-dtype): bfloat16,
// or 8-bit integers with a scale a row. What rounding takes from a row is kept by
// its sender and added to the row the next time it leaves (error feedback, Seide et
// al., "1-Bit Stochastic Gradient Descent", Interspeech 2014, §2), so that over
// epochs nothing is lost:
//
//	sent(t) = round(z(t) + r(t-1));   r(t) = z(t) + r(t-1) - sent(t)
//
// for the rows of each layer, forwards and backwards, and for the scores of
// attention. Measuring passes and features that never change travel as they are,
// and so does what would not become smaller.

// wireTypes are what a Choice may name.
var wireTypes = map[string]tensor.Packed{"": tensor.Unpacked, "bf16": tensor.PackBF16, "int8": tensor.PackInt8}

// packed is the form in which rows of a transfer travel.
func (m *exact) packed(t transfer, numbers tensor.DType, cols int, training bool) tensor.Packed {
	f := wireTypes[m.opt.Strategy.WireRows]
	if f == tensor.Unpacked || !training || t.layer < 0 || t.mean || f.RowBytes(cols) >= numbers.Size()*cols {
		return tensor.Unpacked
	}
	return f
}

// restOf is what earlier rows of a transfer have left: zeros at first.
func (m *exact) restOf(t transfer, rows, cols int) tensor.Matrix {
	r, ok := m.rest[t]
	if ok && (r.Rows != rows || r.Cols != cols) {
		m.dev.Free(r)
		ok = false
	}
	if !ok {
		r = m.dev.New(m.dev.Type(), rows, cols)
		m.recall(restName(t), r)
		if m.rest == nil {
			m.rest = map[transfer]tensor.Matrix{}
		}
		m.rest[t] = r
	}
	return r
}

func restName(t transfer) string { return "rest of " + t.String() }

// remember lists the rests.
func (m *exact) remember() (out []remembered) {
	for t, r := range m.rest {
		out = append(out, remembered{restName(t), r})
	}
	slices.SortFunc(out, func(a, b remembered) int { return cmp.Compare(a.name, b.name) })
	return out
}

// slots say which rows of a whole border a thinner one has, so that a row finds its
// rest again.
type slots struct {
	at tensor.Index
	of int // rows of the whole
}

// packing is the rows of an exchange, one way, where they do not travel as they are, or from
// where they are.
type packing struct {
	f     tensor.Packed
	each  int // bytes of room for a row
	bytes []byte
	rows  []packedRows
}

// packedRows are rows of one message.
type packedRows struct {
	lo, hi int
	bytes  []byte
}

// of is the room of rows lo to hi.
func (p *packing) of(lo, hi int) []byte { return p.bytes[lo*p.each : hi*p.each] }

// open makes room for the packed rows of m, if they are.
func (x *exchange) open(p *packing, m tensor.Matrix) bool {
	p.f = x.m.packed(x.t, m.Type(), m.Cols, x.training)
	switch {
	case x.zeros != nil:
		p.each = x.zeros.most(m.Type(), m.Cols)
	case p.f == tensor.Unpacked && x.m.dev.Bytes(m) != nil:
		return false
	case p.f == tensor.Unpacked:
		p.each = m.Type().Size() * m.Cols
	default:
		p.each = p.f.RowBytes(m.Cols)
	}
	if p.bytes == nil {
		var room tensor.Matrix
		room, p.bytes = x.m.dev.Room(m.Rows * p.each)
		x.owned = append(x.owned, room)
	}
	return true
}

// outBytes are rows lo to hi as they leave. Rows that go to several peers are packed
// once.
func (x *exchange) outBytes(lo, hi int) []byte {
	if !x.open(&x.packedOut, x.out) {
		return x.m.dev.Bytes(x.out.Slice(lo, hi))
	}
	for _, r := range x.packedOut.rows {
		if r.lo == lo && r.hi == hi {
			return r.bytes
		}
	}
	bytes := x.pack(x.packedOut.of(lo, hi), lo, hi)
	x.packedOut.rows = append(x.packedOut.rows, packedRows{lo, hi, bytes})
	return bytes
}

// pack writes rows lo to hi to their room, and returns what of it they take.
func (x *exchange) pack(bytes []byte, lo, hi int) []byte {
	if x.zeros != nil {
		return x.leaveOut(bytes, lo, hi)
	}
	var rest tensor.Matrix
	var at tensor.Index
	switch {
	case x.packedOut.f == tensor.Unpacked:
	case x.slots != nil:
		rest, at = x.m.restOf(x.t, x.slots.of, x.out.Cols), x.slots.at.Slice(lo, hi)
	default:
		rest = x.m.restOf(x.t, x.out.Rows, x.out.Cols).Slice(lo, hi)
	}
	x.m.dev.Pack(bytes, x.packedOut.f, x.out.Slice(lo, hi), rest, at)
	return bytes
}

// outRoom and inRoom are where all rows leave from and arrive, in the form they travel in.
func (x *exchange) outRoom() []byte { return x.room(&x.packedOut, x.out) }
func (x *exchange) inRoom() []byte  { return x.room(&x.packedIn, x.in) }

func (x *exchange) room(p *packing, m tensor.Matrix) []byte {
	if x.open(p, m) {
		return p.bytes
	}
	return x.m.dev.Bytes(m)
}

// inBytes is where rows lo to hi arrive.
func (x *exchange) inBytes(lo, hi int) []byte {
	if !x.open(&x.packedIn, x.in) {
		return x.m.dev.Bytes(x.in.Slice(lo, hi))
	}
	bytes := x.packedIn.of(lo, hi)
	if x.zeros != nil {
		bytes = bytes[:x.expected(lo, hi)]
	}
	x.packedIn.rows = append(x.packedIn.rows, packedRows{lo, hi, bytes})
	return bytes
}

// unpack turns what has arrived into rows.
func (x *exchange) unpack() {
	for i, r := range x.packedIn.rows {
		x.unpackRows(r.lo, r.hi, x.arriving[i])
	}
}

// unpackRows turns rows lo to hi, which have arrived, into rows.
func (x *exchange) unpackRows(lo, hi int, arrived *wire.Pending) {
	switch p := &x.packedIn; {
	case x.zeros != nil:
		x.putBack(lo, hi, arrived)
	case p.bytes != nil:
		x.m.dev.Unpack(x.in.Slice(lo, hi), p.f, p.of(lo, hi))
	}
}
