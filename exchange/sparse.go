package exchange

import (
	"fmt"

	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// With RowOptions.SparseRows the rows of hidden layers travel without their zeros, of which
// ReLU and dropout leave many: with a dropout of a half about three of four numbers.
// Nothing is rounded. A message of rows is
//
//	[ one bit per number, each row in words of 32 | the numbers whose bit is set, row after row ]
//
// The gradients of such rows return without bits. Behind the ReLU they are zero wherever
// the row was, whatever they are before it, so only the others travel, and both ends know
// which: they keep the bits from the exchange to the reverse exchange.
//
// That needs gradients of the rows themselves (nn.Pass.Masked), and rows and gradients of
// one pass. Where gradients are stale, or blocks are sent whole, they travel as they are:
// Worker.Masked is false.

// sendsZeros reports whether some layer of a model does.
func sendsZeros(c *nn.Config) bool {
	for layer := range c.Layers {
		if c.SendsZeros(layer) {
			return true
		}
	}
	return false
}

// skipsZeros reports whether the rows of a transfer leave their zeros out.
func (r *Rows) skipsZeros(t Tag) bool {
	return r.W.SparseRows && !t.mean && r.W.Model.SendsZeros(t.Layer) && (!t.Backward || r.W.Masked)
}

// sparse is what a transfer needs to leave zeros out.
type sparse struct {
	known   bool // bits do not travel: the bits of in and out are kept
	in, out bitRows
}

// bitRows are the bits of rows, from the exchange to the reverse exchange.
type bitRows struct {
	buffer tensor.Matrix // none: they are not kept
	bits   []byte
	each   int
	at     []uint32 // places of rows in the reverse exchange; nil: the same
}

// forwardKey names an exchange whose reverse is to come.
type forwardKey struct {
	layer   int
	relayed bool
}

// newSparse is for a transfer of in and out. A reverse exchange takes the one of its exchange.
func (r *Rows) newSparse(t Tag, in, out tensor.Matrix) *sparse {
	if !r.skipsZeros(t) {
		return nil
	}
	at := forwardKey{t.Layer, t.relayed}
	if t.Backward {
		z, ok := r.bits[at]
		if !ok { // after a failure: what is computed means nothing
			z = &sparse{in: r.bitRows(out), out: r.bitRows(in)}
		}
		delete(r.bits, at)
		return &sparse{known: true, in: z.out, out: z.in}
	}
	z := &sparse{}
	if r.Training && r.W.Masked {
		z.in, z.out = r.bitRows(in), r.bitRows(out)
		if r.bits == nil {
			r.bits = map[forwardKey]*sparse{}
		}
		r.bits[at] = z
	}
	return z
}

// bitRows is a buffer for the bits of rows. None is set before the rows are there.
func (r *Rows) bitRows(rows tensor.Matrix) bitRows {
	buffer, bits := r.W.Dev.Staging(tensor.BitBytes(rows.Rows, rows.Cols))
	if !r.W.MemoryOnly { // which touches no memory
		clear(bits)
	}
	return bitRows{buffer: buffer, bits: bits, each: tensor.BitBytes(1, rows.Cols)}
}

func (b *bitRows) of(lo, hi int) []byte { return b.bits[lo*b.each : hi*b.each] }

// keep takes the bits of rows from lo on.
func (b *bitRows) keep(bits []byte, lo int) {
	switch {
	case b.buffer.IsZero():
	case b.at == nil:
		copy(b.bits[lo*b.each:], bits)
	default:
		for k := range len(bits) / b.each {
			copy(b.of(int(b.at[lo+k]), int(b.at[lo+k])+1), bits[k*b.each:])
		}
	}
}

// ReverseAt says where rows of In and Out are in the reverse exchange, where that is in
// other places.
func (x *Transfer) ReverseAt(in, out []uint32) {
	if x.sparse != nil {
		x.sparse.in.at, x.sparse.out.at = in, out
	}
}

// owned are the buffers that a transfer gives back: gradients are the last to need bits.
func (z *sparse) owned() []tensor.Matrix {
	if z == nil || !z.known {
		return nil
	}
	return []tensor.Matrix{z.in.buffer, z.out.buffer}
}

// most is what a row may take.
func (z *sparse) most(numbers tensor.DType, cols int) int {
	if z.known {
		return numbers.Size() * cols
	}
	return (tensor.BitBytes(1, cols) + numbers.Size()*cols + 3) &^ 3 // words of bits begin at words
}

// skipZeros are rows lo to hi of Out as they leave. buffer is large enough for all their
// numbers.
func (x *Transfer) skipZeros(buffer []byte, lo, hi int) []byte {
	dev, z, rows := x.rows.W.Dev, x.sparse, x.Out.Slice(lo, hi)
	if z.known {
		return buffer[:dev.Pack(buffer, rows, tensor.Packing{Form: tensor.PackNonZero, Mask: z.out.of(lo, hi)})]
	}
	n := dev.Pack(buffer, rows, tensor.Packing{Form: tensor.PackNonZero})
	z.out.keep(buffer[:tensor.BitBytes(rows.Rows, rows.Cols)], lo)
	return buffer[:n]
}

// expected is how many bytes of rows lo to hi arrive, or the most that may.
func (x *Transfer) expected(lo, hi int) int {
	if !x.sparse.known || x.rows.W.MemoryOnly {
		return (hi - lo) * x.encodedIn.each
	}
	n, _ := tensor.CountBits(x.sparse.in.of(lo, hi), x.In.Cols)
	return n * x.In.Type().Size()
}

// restoreZeros makes rows lo to hi of In of what has arrived.
func (x *Transfer) restoreZeros(lo, hi int, p *wire.Pending) {
	w, rows, buffer := x.rows.W, x.In.Slice(lo, hi), x.encodedIn.of(lo, hi)
	if p.Err() != nil || w.MemoryOnly {
		return
	}
	if x.sparse.known {
		w.Dev.Unpack(rows, buffer[:p.Bytes()], tensor.Packing{Form: tensor.PackNonZero, Mask: x.sparse.in.of(lo, hi)})
		return
	}
	n, err := x.bitsIn(buffer[:p.Bytes()], hi-lo)
	if err != nil {
		err = fmt.Errorf("%v from rank %d: %w", x.Tag, p.Peer(), err)
		x.rows.Fail(err)
		w.End.Fail(err)
		return
	}
	x.sparse.in.keep(buffer[:n], lo)
	w.Dev.Unpack(rows, buffer[:p.Bytes()], tensor.Packing{Form: tensor.PackNonZero})
}

// bitsIn is how many bytes of a message of rows are bits, whose numbers follow.
func (x *Transfer) bitsIn(message []byte, rows int) (int, error) {
	n := tensor.BitBytes(rows, x.In.Cols)
	if len(message) < n {
		return 0, fmt.Errorf("%d bytes arrived where the bits of %d rows alone are %d", len(message), rows, n)
	}
	set, ok := tensor.CountBits(message[:n], x.In.Cols)
	switch numbers := len(message) - n; {
	case !ok:
		return 0, fmt.Errorf("a bit is set beyond the %d columns that rows have", x.In.Cols)
	case numbers != set*x.In.Type().Size():
		return 0, fmt.Errorf("%d bytes of numbers arrived where bits stand for %d", numbers, set*x.In.Type().Size())
	}
	return n, nil
}

// sparseRow is where the parts of an arrived row are: its bits, and its numbers.
type sparseRow struct{ bits, numbers []byte }

// arrivedRows are the rows of a message of rows lo to hi, in order.
func (x *Transfer) arrivedRows(lo, hi int) []sparseRow {
	buffer, each := x.encodedIn.of(lo, hi), tensor.BitBytes(1, x.In.Cols)
	out, numbers := make([]sparseRow, hi-lo), buffer[(hi-lo)*each:]
	for i := range out {
		bits := buffer[i*each : (i+1)*each]
		set, _ := tensor.CountBits(bits, x.In.Cols)
		set *= x.In.Type().Size()
		out[i], numbers = sparseRow{bits, numbers[:set]}, numbers[set:]
	}
	return out
}

// relaySparse are rows lo to hi of Out as they leave, which arrived without their zeros.
func (x *Transfer) relaySparse(lo, hi int, row func(k int) sparseRow) []byte {
	buffer, each := x.encodedOut.of(lo, hi), tensor.BitBytes(1, x.Out.Cols)
	n := (hi - lo) * each
	for k := range hi - lo {
		r := row(lo + k)
		copy(buffer[k*each:], r.bits)
		n += copy(buffer[n:], r.numbers)
	}
	x.sparse.out.keep(buffer[:(hi-lo)*each], lo)
	return buffer[:n]
}
