package exchange

import (
	"starling/tensor"
	"starling/wire"
)

// Rows may travel in fewer bytes than they are computed in (--wire-dtype): bfloat16, or
// 8-bit integers with a scale per row. What rounding takes from a row is kept by its
// sender and added to the row the next time it leaves (error feedback, Seide et al., "1-Bit
// Stochastic Gradient Descent", Interspeech 2014, §2), so that over epochs nothing is lost:
//
//	sent(t) = round(z(t) + r(t-1));   r(t) = z(t) + r(t-1) - sent(t)
//
// for the rows of each layer, forward and backward, and for the scores of attention.
// Measuring passes and features that never change travel as they are, and so does what
// would not become smaller.

// codecs are the values of RowOptions.WireDType.
var codecs = map[string]tensor.Packed{"none": tensor.Unpacked, "": tensor.Unpacked, "bf16": tensor.PackBF16,
	"int8": tensor.PackInt8}

// codec is the form in which rows of a transfer travel.
func (r *Rows) codec(t Tag, numbers tensor.DType, cols int, training bool) tensor.Packed {
	f := codecs[r.W.WireDType]
	if f == tensor.Unpacked || !training || t.Layer < 0 || t.mean || f.RowBytes(cols) >= numbers.Size()*cols {
		return tensor.Unpacked
	}
	return f
}

// residual is what earlier rows of a transfer have left: zeros at first.
func (r *Rows) residual(t Tag, rows, cols int) tensor.Matrix {
	m, ok := r.residuals[t]
	if ok && (m.Rows != rows || m.Cols != cols) {
		r.W.Dev.Free(m)
		ok = false
	}
	if !ok {
		m = r.W.Dev.New(r.W.Dev.Type(), rows, cols)
		r.W.Recall(residualName(t), m)
		if r.residuals == nil {
			r.residuals = map[Tag]tensor.Matrix{}
		}
		r.residuals[t] = m
	}
	return m
}

func residualName(t Tag) string { return "residual of " + t.String() }

// encoding is the rows of a transfer, one way, in the form they travel in, in a staging
// buffer.
type encoding struct {
	codec tensor.Packed
	each  int // bytes of the buffer for a row
	bytes []byte
	rows  []encodedRows
}

// encodedRows are rows of one message.
type encodedRows struct {
	lo, hi int
	bytes  []byte
}

// of is the buffer of rows lo to hi.
func (e *encoding) of(lo, hi int) []byte { return e.bytes[lo*e.each : hi*e.each] }

// open takes a staging buffer for the rows of m, if it has none yet.
func (x *Transfer) open(e *encoding, m tensor.Matrix) {
	if e.bytes != nil {
		return
	}
	e.codec = x.rows.codec(x.Tag, m.Type(), m.Cols, x.training)
	switch {
	case x.sparse != nil:
		e.each = x.sparse.most(m.Type(), m.Cols)
	case e.codec == tensor.Unpacked:
		e.each = m.Type().Size() * m.Cols
	default:
		e.each = e.codec.RowBytes(m.Cols)
	}
	var buffer tensor.Matrix
	buffer, e.bytes = x.rows.W.Dev.Staging(m.Rows * e.each)
	x.owned = append(x.owned, buffer)
}

// encode is rows lo to hi of Out as they travel. Rows that go to several peers are encoded
// once.
func (x *Transfer) encode(lo, hi int) []byte {
	x.open(&x.encodedOut, x.Out)
	for _, r := range x.encodedOut.rows {
		switch {
		case r.lo == lo && r.hi == hi:
			return r.bytes
		case r.lo <= lo && hi <= r.hi && x.sparse == nil:
			return x.encodedOut.of(lo, hi)
		}
	}
	bytes := x.encodedOut.of(lo, hi)
	if x.sparse != nil {
		bytes = x.skipZeros(bytes, lo, hi)
	} else {
		x.round(bytes, lo, hi)
	}
	x.encodedOut.rows = append(x.encodedOut.rows, encodedRows{lo, hi, bytes})
	return bytes
}

// round writes rows lo to hi to their buffer, with what earlier rounding left.
func (x *Transfer) round(bytes []byte, lo, hi int) {
	var residual tensor.Matrix
	var at tensor.Index
	switch {
	case x.encodedOut.codec == tensor.Unpacked:
	case x.slots != nil:
		residual, at = x.rows.residual(x.Tag, x.slots.Of, x.Out.Cols), x.slots.At.Slice(lo, hi)
	default:
		residual = x.rows.residual(x.Tag, x.Out.Rows, x.Out.Cols).Slice(lo, hi)
	}
	x.rows.W.Dev.Pack(bytes, x.Out.Slice(lo, hi), tensor.Packing{Form: x.encodedOut.codec, Residual: residual, At: at})
}

// encodedRows is where rows lo to hi of In arrive, to be decoded.
func (x *Transfer) encodedRows(lo, hi int) []byte {
	x.open(&x.encodedIn, x.In)
	bytes := x.encodedIn.of(lo, hi)
	if x.sparse != nil {
		bytes = bytes[:x.expected(lo, hi)]
	}
	x.encodedIn.rows = append(x.encodedIn.rows, encodedRows{lo, hi, bytes})
	return bytes
}

// Decode makes rows lo to hi of In of what has arrived, unless they arrived in place.
func (x *Transfer) Decode(lo, hi int, arrived *wire.Pending) {
	switch e := &x.encodedIn; {
	case x.sparse != nil:
		x.restoreZeros(lo, hi, arrived)
	case e.bytes != nil:
		x.rows.W.Dev.Unpack(x.In.Slice(lo, hi), e.of(lo, hi), tensor.Packing{Form: e.codec})
	}
}

// decodeAll makes rows of all that has arrived. Rows that follow each other are made together.
func (x *Transfer) decodeAll() {
	e := &x.encodedIn
	for i := 0; i < len(e.rows); {
		first, next := e.rows[i], i+1
		for hi := first.hi; x.sparse == nil && next < len(e.rows) && e.rows[next].lo == hi; next++ {
			hi = e.rows[next].hi
		}
		x.Decode(first.lo, e.rows[next-1].hi, x.arriving[i])
		i = next
	}
}

// travelling is all rows of a side in the form they travel in.
func (x *Transfer) travelling(e *encoding, m tensor.Matrix) []byte {
	if x.inPlace(m) {
		return m.HostBytes()
	}
	x.open(e, m)
	return e.bytes
}
