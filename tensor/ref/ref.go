// Package ref is the reference device: float64, one core, plain loops. It is the definition
// of what every operation computes. Tests compare the other devices with it, check layers
// against finite differences on it, and hold distributed training to 1e-9 with it. It is not
// meant to be fast.
package ref

import (
	"math"
	"sync/atomic"

	"starling/tensor"
)

// Device is the reference device.
type Device struct{ inUse, peak atomic.Int64 }

var _ tensor.Device = (*Device)(nil)

// New is a reference device.
func New() *Device { return &Device{} }

func (r *Device) Type() DType                { return F64 }
func (r *Device) RowType(DType) DType        { return F64 }
func (r *Device) Chunk() int                 { return 1 << 21 }
func (r *Device) Usage() (inUse, peak int64) { return r.inUse.Load(), r.peak.Load() }
func (r *Device) Sync()                      {}
func (r *Device) Err() error                 { return nil }
func (r *Device) Close()                     {}

// New is a matrix of float64, whatever numbers are asked for; row numbers stay what they are.
func (r *Device) New(t DType, rows, cols int) (m Matrix) {
	if t == U32 {
		m = tensor.FromSlice(rows, cols, make([]uint32, rows*cols))
	} else {
		m = tensor.FromSlice(rows, cols, make([]float64, rows*cols))
	}
	r.peak.Store(max(r.peak.Load(), r.inUse.Add(m.Bytes())))
	return m
}

// Scratch is filled with NaN, so that a result that was not written is seen at once.
func (r *Device) Scratch(t DType, rows, cols int) Matrix {
	m := r.New(t, rows, cols)
	for i := range m.Rows {
		for j := range m.Cols {
			if t != U32 {
				rowOf(m, i)[j] = math.NaN()
			}
		}
	}
	return m
}

func (r *Device) Free(m Matrix) { r.inUse.Add(-m.Bytes()) }

func (r *Device) FromHost(rows, cols int, host any) Matrix {
	switch h := host.(type) {
	case []float32:
		m := r.New(F64, rows, cols)
		tensor.CopyIn(m, h)
		return m
	case []uint16:
		m := r.New(F64, rows, cols)
		r.Copy(m, tensor.FromSlice(rows, cols, h))
		return m
	}
	return tensor.FromAny(rows, cols, host)
}

func (r *Device) Upload(dst Matrix, host any) { tensor.CopyIn(dst, host) }
func (r *Device) Download(host any, m Matrix) { tensor.CopyOut(host, m) }

func (r *Device) Staging(bytes int) (Matrix, []byte) {
	m := r.Scratch(F64, (bytes+7)/8, 1)
	return m, tensor.Memory(m)[:bytes]
}

// rowOf is row i of a float64 matrix.
func rowOf(m Matrix, i int) []float64 { return tensor.Row[float64](m, i) }

func entriesOf(x Index) []uint32 { return tensor.Entries(x) }

// ptrOf, indexOf and permOf are what a sparse matrix is made of.
func ptrOf(s *Sparse) []int64    { return tensor.Numbers[int64](tensor.PartsOf(s).Ptr) }
func indexOf(s *Sparse) []uint32 { return tensor.Entries(tensor.PartsOf(s).Index) }

func (r *Device) MatMul(dst, a, b Matrix, op MatMul) {
	tensor.NeedMatMul(dst, a, b, op)
	cols := linesOf(b, !op.TransB)
	for i, row := range linesOf(a, op.TransA) {
		d := rowOf(dst, i)
		for j, col := range cols {
			s := 0.0
			for l, x := range row {
				s += x * col[l]
			}
			if op.Add {
				s += d[j]
			}
			d[j] = s
		}
	}
	r.Activate(dst, dst, op.Epilogue)
}

// lines are the rows of a float64 matrix, or copies of its columns.
func linesOf(m Matrix, columns bool) [][]float64 {
	if !columns {
		lines := make([][]float64, m.Rows)
		for i := range lines {
			lines[i] = rowOf(m, i)
		}
		return lines
	}
	lines := make([][]float64, m.Cols)
	for j := range lines {
		lines[j] = make([]float64, m.Rows)
		for i := range m.Rows {
			lines[j][i] = rowOf(m, i)[j]
		}
	}
	return lines
}

func (r *Device) ColumnSum(dst, src Matrix, add bool) {
	d := rowOf(dst, 0)
	if !add {
		clear(d)
	}
	for i := range src.Rows {
		for j, x := range rowOf(src, i) {
			d[j] += x
		}
	}
}

func (r *Device) Zero(m Matrix) {
	for i := range m.Rows {
		clear(rowOf(m, i))
	}
}

func (r *Device) Copy(dst, src Matrix) {
	host := make([]float64, src.Rows*src.Cols)
	tensor.CopyOut(host, src)
	tensor.CopyIn(dst, host)
}

func (r *Device) Combine(dst Matrix, a float64, x Matrix, b float64, y Matrix) {
	for i := range dst.Rows {
		d, xr := rowOf(dst, i), rowOf(x, i)
		for j := range d {
			v := a * xr[j]
			if !y.IsZero() {
				v += b * rowOf(y, i)[j]
			}
			d[j] = v
		}
	}
}

// value is act(x); slope is its derivative, from the result y = act(x).
func actOf(a Act, x float64) float64 {
	switch {
	case x > 0 || a == NoAct:
		return x
	case a == ELU:
		return math.Expm1(x)
	case a == LeakyReLU:
		return 0.01 * x
	case x != x:
		return x
	}
	return 0
}

func slopeOf(a Act, y float64) float64 {
	switch {
	case y > 0 || a == NoAct:
		return 1
	case a == ELU:
		return y + 1
	case a == LeakyReLU:
		return 0.01
	}
	return 0
}

// factor is what dropout multiplies (row, column) by.
func dropFactor(d Dropout, row int, column uint32) float64 {
	return dropOutcome(d, tensor.RowDraws(d, row).Keeps(column))
}

// outcome is what dropout multiplies a number by that is kept, or is not.
func dropOutcome(d Dropout, kept bool) float64 {
	if !kept {
		return 0
	}
	return d.Scale()
}

// factors are what dropout multiplies the numbers of a row by.
func dropFactors(d Dropout, f []float64, row int) {
	draws, scale := tensor.RowDraws(d, row), d.Scale()
	for j := range f {
		if f[j] = 0; draws.Keeps(uint32(j)) {
			f[j] = scale
		}
	}
}

func (r *Device) Activate(dst, src Matrix, epi Epilogue) {
	f := make([]float64, dst.Cols)
	for i := range dst.Rows {
		dropFactors(epi.Dropout, f, i)
		d, s := rowOf(dst, i), rowOf(src, i)
		for j := range d {
			x := s[j]
			if !epi.Bias.IsZero() {
				x += rowOf(epi.Bias, 0)[j]
			}
			d[j] = actOf(epi.Act, x) * f[j]
		}
	}
}

func (r *Device) ActivateGrad(dx, dy, y Matrix, epi Epilogue, dbias Matrix) {
	f, scale := make([]float64, dx.Cols), epi.Dropout.Scale()
	for i := range dx.Rows {
		dropFactors(epi.Dropout, f, i)
		d, g, out := rowOf(dx, i), rowOf(dy, i), rowOf(y, i)
		for j := range d {
			d[j] = g[j] * f[j] * slopeOf(epi.Act, out[j]/scale)
			if !dbias.IsZero() {
				rowOf(dbias, 0)[j] += d[j]
			}
		}
	}
}

func (r *Device) Multiply(dst, x, y Matrix) {
	for i := range dst.Rows {
		d, a, b := rowOf(dst, i), rowOf(x, i), rowOf(y, i)
		for j := range d {
			d[j] = a[j] * b[j]
		}
	}
}

func (r *Device) GELU(dst, src Matrix) {
	for i := range dst.Rows {
		for j, x := range rowOf(src, i) {
			rowOf(dst, i)[j] = x * normal(x)
		}
	}
}

func (r *Device) GELUGrad(dx, dy, x Matrix) {
	for i := range dx.Rows {
		for j, v := range rowOf(x, i) {
			rowOf(dx, i)[j] = rowOf(dy, i)[j] * (normal(v) + v*math.Exp(-v*v/2)/math.Sqrt(2*math.Pi))
		}
	}
}

// normal is the normal distribution's Φ.
func normal(x float64) float64 { return math.Erfc(-x/math.Sqrt2) / 2 }

func (r *Device) Dot(dst, x, y Matrix) {
	s := 0.0
	for i := range x.Rows {
		for j, v := range rowOf(x, i) {
			s += v * rowOf(y, i)[j]
		}
	}
	rowOf(dst, 0)[0] = s
}

func (r *Device) Adam(p, g, m, v Matrix, op Adam) {
	c1, c2 := 1-math.Pow(op.Beta1, float64(op.Step)), 1-math.Pow(op.Beta2, float64(op.Step))
	for i := range p.Rows {
		pr, gr, mr, vr := rowOf(p, i), rowOf(g, i), rowOf(m, i), rowOf(v, i)
		for j := range pr {
			grad := gr[j]
			if op.Decoupled {
				pr[j] -= op.LR * op.Decay * pr[j]
			} else {
				grad += op.Decay * pr[j]
			}
			mr[j] = op.Beta1*mr[j] + (1-op.Beta1)*grad
			vr[j] = op.Beta2*vr[j] + (1-op.Beta2)*grad*grad
			pr[j] -= op.LR * (mr[j] / c1) / (math.Sqrt(vr[j]/c2) + op.Eps)
		}
	}
}

func (r *Device) SGD(p, g, buf Matrix, op SGD) {
	for i := range p.Rows {
		pr, gr := rowOf(p, i), rowOf(g, i)
		for j := range pr {
			grad := gr[j] + op.Decay*pr[j]
			if op.Momentum != 0 {
				br := rowOf(buf, i)
				if op.Step == 1 {
					br[j] = grad
				} else {
					br[j] = op.Momentum*br[j] + grad
				}
				if op.Nesterov {
					grad += op.Momentum * br[j]
				} else {
					grad = br[j]
				}
			}
			pr[j] -= op.LR * grad
		}
	}
}
