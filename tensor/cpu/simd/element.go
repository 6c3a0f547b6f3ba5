package simd

import (
	"math"

	"starling/tensor/draw"
)

// Activation functions, numbered as package tensor numbers them.
const (
	NoAct uint8 = iota
	ReLU
	ELU
	LeakyReLU
)

const leakySlope = 0.01

// Drop is dropout of a block: which draws and what they decide. The draw itself
// is defined in package tensor's dropout.go.
type Drop struct {
	IDs       *uint32 // vertex ids of the rows, or nil: row i has id First+i
	Key       uint64
	First     uint32
	Threshold uint16 // keep when the draw is at least this; at a half, by the row's bits
	Scale     float32
	Keep      float32 // 1/Scale
	On        bool
	// Bits, if given, says what is kept instead of draws (see Kept): a bit a number, rows BitStride bytes apart.
	// AVX2 does not do it, and whole vectors of sixteen numbers make up a row.
	Bits      *byte
	BitStride int
}

// Rows is the dropout of the rows from i on.
func (d Drop) Rows(i int) Drop {
	if d.IDs != nil {
		d.IDs = at(d.IDs, i)
	}
	d.First += uint32(i)
	return d
}

// rowDraws are the draws of one row, from its first column to its last.
type rowDraws struct {
	*Drop
	row  int
	id   uint32
	bits uint64 // of this block of columns from this one on; or the row's key
}

func (d *Drop) draws(row int) rowDraws {
	if !d.On {
		return rowDraws{}
	}
	r := rowDraws{Drop: d, row: row, id: d.First + uint32(row)}
	if d.IDs != nil {
		r.id = *at(d.IDs, row)
	}
	r.bits = draw.RowKey(d.Key, r.id)
	return r
}

// keeps draws for the next column.
func (r *rowDraws) keeps(column int) bool {
	switch {
	case r.Bits != nil:
		return *at(r.Bits, r.row*r.BitStride+column/8)>>(column%8)&1 != 0
	case r.Threshold != draw.Half:
		return draw.Column(r.bits, uint32(column)) >= r.Threshold
	case column%64 == 0:
		r.bits = draw.RowBits(r.Key, r.id, uint32(column/64))
	}
	keep := r.bits&1 != 0
	r.bits >>= 1
	return keep
}

// Map computes each number of Dst from the number of Src in the same place, by
// those of these steps that are asked for, in this order:
//
//	x = Alpha·x                 if Combine
//	x = x + Beta·other          if Combine and Other is given
//	x = (x - mean_i)·rdev_i     if Stat: pairs of mean and 1/deviation, one per row;
//	                            if Moments, Src's own are stored there first
//	x = x - Center_j            if Center
//	x = x·Scale_j               if Scale
//	x = x + Bias_j              if Bias
//	x = act(x); x = dropout(x)
//
// Copies, conversions, sums of matrices, activations and both norms are all this
// one pass. Dst may be Src or Other.
type Map struct {
	Dst, Src, Other     Block
	Rows, Cols          int
	Stat                *float32
	StatStride          int // bytes
	Center, Scale, Bias *float32
	Drop                Drop
	Alpha, Beta         float32
	Eps                 float32 // added to the variance, see Moments
	Combine, Moments    bool
	Act                 uint8
}

// Run computes the block with the instructions of a level.
func (m *Map) Run(l Level) {
	if m.Rows > 0 && m.Cols > 0 {
		runMap(l, m)
	}
}

func mapGeneric(m *Map) {
	for i := range m.Rows {
		if m.Moments {
			m.moments(i)
		}
		draws := m.Drop.draws(i)
		for j := range m.Cols {
			x := activate(m.Act, m.before(i, j))
			if m.Drop.On {
				if draws.keeps(j) {
					x *= m.Drop.Scale
				} else {
					x = 0
				}
			}
			m.Dst.Set(i, j, x)
		}
	}
}

// moments stores the mean and 1/sqrt(variance+Eps) of a row.
func (m *Map) moments(i int) {
	var sum, square float64
	for j := range m.Cols {
		sum += float64(m.Src.At(i, j))
	}
	mean := sum / float64(m.Cols)
	for j := range m.Cols {
		d := float64(m.Src.At(i, j)) - mean
		square += d * d
	}
	s := at(m.Stat, i*(m.StatStride/4))
	*s = float32(mean)
	*at(s, 1) = float32(1 / math.Sqrt(square/float64(m.Cols)+float64(m.Eps)))
}

// before is the number the activation function is given.
func (m *Map) before(i, j int) float32 {
	x := m.Src.At(i, j)
	if m.Combine {
		x *= m.Alpha
		if m.Other.Data != nil {
			x += m.Beta * m.Other.At(i, j)
		}
	}
	if m.Stat != nil {
		s := at(m.Stat, i*(m.StatStride/4))
		x = (x - *s) * *at(s, 1)
	}
	if m.Center != nil {
		x -= *at(m.Center, j)
	}
	if m.Scale != nil {
		x *= *at(m.Scale, j)
	}
	if m.Bias != nil {
		x += *at(m.Bias, j)
	}
	return x
}

func activate(act uint8, x float32) float32 {
	if x < 0 {
		switch act {
		case ReLU:
			return 0
		case ELU:
			return float32(math.Expm1(float64(x)))
		case LeakyReLU:
			return x * leakySlope
		}
	}
	return x
}

// ActGrad computes the gradient before an activation and dropout from the
// gradient Dy after them and their result Y. ReLU needs no draw: what was dropped
// is zero in Y. The others recover act' from Y without the dropout's scale and
// draw again. Sums, if given, gets the sum of each column of Dx added; it has space
// for Cols rounded up to 16.
type ActGrad struct {
	Dx, Dy, Y  Block
	Rows, Cols int
	Sums       *float32
	Drop       Drop
	Act        uint8
}

// Run computes the block with the instructions of a level.
func (g *ActGrad) Run(l Level) {
	if g.Rows > 0 && g.Cols > 0 {
		runActGrad(l, g)
	}
}

func actGradGeneric(g *ActGrad) {
	drops := g.Drop.On && g.Act != ReLU
	scale, keep := float32(1), float32(1)
	if g.Drop.On {
		scale, keep = g.Drop.Scale, g.Drop.Keep
	}
	for i := range g.Rows {
		draws := g.Drop.draws(i)
		for j := range g.Cols {
			x := g.Dy.At(i, j)
			if g.Act != NoAct {
				x *= slope(g.Act, g.Y.At(i, j)*keep)
			}
			x *= scale
			if drops && !draws.keeps(j) {
				x = 0
			}
			g.Dx.Set(i, j, x)
			if g.Sums != nil {
				*at(g.Sums, j) += x
			}
		}
	}
}

// slope is the derivative of an activation function where its value is y.
func slope(act uint8, y float32) float32 {
	switch {
	case y > 0:
		return 1
	case act == ReLU:
		return 0
	case act == ELU:
		return y + 1
	}
	return leakySlope
}

// Dot is the sum of products of the numbers of two blocks, in float64.
type Dot struct {
	X, Y       Block
	Rows, Cols int
	Sum        float64
}

// Run adds the block's sum to Sum.
func (d *Dot) Run(l Level) {
	if d.Rows > 0 && d.Cols > 0 {
		runDot(l, d)
	}
}

func dotGeneric(d *Dot) {
	for i := range d.Rows {
		for j := range d.Cols {
			d.Sum += float64(d.X.At(i, j)) * float64(d.Y.At(i, j))
		}
	}
}

// Finite looks for numbers that are not finite.
type Finite struct {
	X          Block
	Rows, Cols int
	Bad        bool // set when there is one
}

// Run looks through the block.
func (f *Finite) Run(l Level) {
	if f.Rows > 0 && f.Cols > 0 {
		runFinite(l, f)
	}
}

func finiteGeneric(f *Finite) {
	for i := range f.Rows {
		for j := range f.Cols {
			if x := f.X.At(i, j); x-x != 0 {
				f.Bad = true
				return
			}
		}
	}
}
