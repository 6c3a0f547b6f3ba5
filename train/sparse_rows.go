package train

import (
	"fmt"

	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// With Choice.SparseRows the rows of hidden layers travel without their zeros, of which ReLU
// and dropout leave many: with a dropout of a half about three of four numbers. Nothing is
// rounded. A message of rows is
//
//	[ a bit a number, each row in words of 32 | the numbers whose bit is set, row after row ]
//
// The gradients of such rows go back without bits. Behind the ReLU they are zero wherever the
// row was, whatever they are before it, so only the others travel, and both ends know which:
// they keep the bits from the way forwards to the way back.
//
// That needs gradients of the rows themselves (nn.Pass.Masked), and rows and gradients of one
// pass. Where gradients are late or old, or blocks are sent whole, they travel as they are.

// masks reports whether gradients travel only where their rows are not zero.
func (c *Choice) masks() bool {
	switch c.Name {
	case "", "halo", "g3", "granndis", "neutronstar":
		return c.SparseRows
	case "bns":
		return c.SparseRows && !c.Cached
	case "pipegcn":
		return c.SparseRows && c.Late == 0
	}
	return false
}

// checkSparse refuses models whose rows have no zeros.
func (s *site) checkSparse() error {
	if !s.opt.Strategy.SparseRows || sendsZeros(&s.opt.Model) {
		return nil
	}
	return mistaken("--sparse-rows leaves out the zeros of hidden layers' rows, and %s of %d layers sends no such rows; it is for gcn and sage from 3 layers on, gin, resgcn+ and ressage+", s.opt.Model.Model, s.opt.Model.Layers)
}

// sendsZeros reports whether some layer of a model does.
func sendsZeros(c *nn.Config) bool {
	for layer := range c.Layers {
		if c.SendsZeros(layer) {
			return true
		}
	}
	return false
}

// leavesZeros reports whether the rows of a transfer leave their zeros out.
func (m *exact) leavesZeros(t transfer) bool {
	c := &m.opt.Strategy
	return c.SparseRows && !t.mean && m.opt.Model.SendsZeros(t.layer) && (!t.backward || c.masks())
}

// zeros is what an exchange needs to leave them out.
type zeros struct {
	known   bool // bits do not travel: those of in and out are kept
	in, out bitRows
}

// bitRows are the bits of rows, from the way forwards to the way back.
type bitRows struct {
	room tensor.Matrix // none: they are not kept
	bits []byte
	each int
	at   []uint32 // places of rows on the way back; nil: the same
}

// there names an exchange on the way forwards.
type there struct {
	layer   int
	relayed bool
}

// newZeros is for an exchange of in and out. Backwards it is that of the way forwards.
func (m *exact) newZeros(t transfer, in, out tensor.Matrix) *zeros {
	if !m.leavesZeros(t) {
		return nil
	}
	at := there{t.layer, t.relayed}
	if t.backward {
		z, ok := m.forwards[at]
		if !ok { // after a failure: what is computed means nothing
			z = &zeros{in: m.bitRows(out), out: m.bitRows(in)}
		}
		delete(m.forwards, at)
		return &zeros{known: true, in: z.out, out: z.in}
	}
	z := &zeros{}
	if m.training && m.opt.Strategy.masks() {
		z.in, z.out = m.bitRows(in), m.bitRows(out)
		if m.forwards == nil {
			m.forwards = map[there]*zeros{}
		}
		m.forwards[at] = z
	}
	return z
}

// bitRows makes room for the bits of rows. None is set before the rows are there.
func (m *exact) bitRows(rows tensor.Matrix) bitRows {
	room, bits := m.dev.Room(tensor.BitBytes(rows.Rows, rows.Cols))
	if !m.rehearsed { // which touches no memory
		clear(bits)
	}
	return bitRows{room: room, bits: bits, each: tensor.BitBytes(1, rows.Cols)}
}

func (b *bitRows) of(lo, hi int) []byte { return b.bits[lo*b.each : hi*b.each] }

// keep takes the bits of rows from lo on.
func (b *bitRows) keep(bits []byte, lo int) {
	switch {
	case b.room.IsZero():
	case b.at == nil:
		copy(b.bits[lo*b.each:], bits)
	default:
		for k := range len(bits) / b.each {
			copy(b.of(int(b.at[lo+k]), int(b.at[lo+k])+1), bits[k*b.each:])
		}
	}
}

// owned are the matrices that an exchange gives back: gradients are the last to need bits.
func (z *zeros) owned() []tensor.Matrix {
	if z == nil || !z.known {
		return nil
	}
	return []tensor.Matrix{z.in.room, z.out.room}
}

// most is what a row may take.
func (z *zeros) most(numbers tensor.DType, cols int) int {
	if z.known {
		return numbers.Size() * cols
	}
	return (tensor.BitBytes(1, cols) + numbers.Size()*cols + 3) &^ 3 // words of bits begin at words
}

// leaveOut are rows lo to hi as they leave. room has place for all their numbers.
func (x *exchange) leaveOut(room []byte, lo, hi int) []byte {
	z, rows := x.zeros, x.out.Slice(lo, hi)
	if z.known {
		return room[:x.m.dev.Compress(room, rows, z.out.of(lo, hi))]
	}
	n := tensor.BitBytes(rows.Rows, rows.Cols)
	x.m.dev.NotZero(room[:n], rows)
	z.out.keep(room[:n], lo)
	return room[:n+x.m.dev.Compress(room[n:], rows, room[:n])]
}

// expected is how many bytes of rows lo to hi come, or the most that may.
func (x *exchange) expected(lo, hi int) int {
	if !x.zeros.known || x.m.rehearsed {
		return (hi - lo) * x.packedIn.each
	}
	n, _ := tensor.CountBits(x.zeros.in.of(lo, hi), x.in.Cols)
	return n * x.in.Type().Size()
}

// putBack makes rows lo to hi of what has come.
func (x *exchange) putBack(lo, hi int, p *wire.Pending) {
	rows, room := x.in.Slice(lo, hi), x.packedIn.of(lo, hi)
	if p.Err() != nil || x.m.rehearsed {
		return
	}
	if x.zeros.known {
		x.m.dev.Expand(rows, room[:p.Bytes()], x.zeros.in.of(lo, hi))
		return
	}
	n, err := x.bitsIn(room[:p.Bytes()], hi-lo)
	if err != nil {
		err = fmt.Errorf("%v from rank %d: %w", x.t, p.Peer(), err)
		x.m.fail(err)
		x.m.end.Fail(err)
		return
	}
	x.zeros.in.keep(room[:n], lo)
	x.m.dev.Expand(rows, room[n:p.Bytes()], room[:n])
}

// bitsIn is how many bytes of a message of rows are bits, whose numbers follow.
func (x *exchange) bitsIn(message []byte, rows int) (int, error) {
	n := tensor.BitBytes(rows, x.in.Cols)
	if len(message) < n {
		return 0, fmt.Errorf("%d bytes came where the bits of %d rows alone are %d", len(message), rows, n)
	}
	set, ok := tensor.CountBits(message[:n], x.in.Cols)
	switch numbers := len(message) - n; {
	case !ok:
		return 0, fmt.Errorf("a bit is set beyond the %d columns that rows have", x.in.Cols)
	case numbers != set*x.in.Type().Size():
		return 0, fmt.Errorf("%d bytes of numbers came where bits stand for %d", numbers, set*x.in.Type().Size())
	}
	return n, nil
}

// rowAt is where a row that has come lies: its bits, and its numbers.
type rowAt struct{ bits, numbers []byte }

// rowsAt are those of a message of rows lo to hi, which is in order.
func (x *exchange) rowsAt(lo, hi int) []rowAt {
	room, each := x.packedIn.of(lo, hi), tensor.BitBytes(1, x.in.Cols)
	out, numbers := make([]rowAt, hi-lo), room[(hi-lo)*each:]
	for i := range out {
		bits := room[i*each : (i+1)*each]
		set, _ := tensor.CountBits(bits, x.in.Cols)
		set *= x.in.Type().Size()
		out[i], numbers = rowAt{bits, numbers[:set]}, numbers[set:]
	}
	return out
}

// passSparse are rows lo to hi as they leave that have come without their zeros.
func (x *exchange) passSparse(lo, hi int, row func(k int) rowAt) []byte {
	room, each := x.packedOut.of(lo, hi), tensor.BitBytes(1, x.out.Cols)
	n := (hi - lo) * each
	for k := range hi - lo {
		r := row(lo + k)
		copy(room[k*each:], r.bits)
		n += copy(room[n:], r.numbers)
	}
	x.zeros.out.keep(room[:(hi-lo)*each], lo)
	return room[:n]
}
