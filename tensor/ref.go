package tensor

import (
	"fmt"
	"math"
	"sync/atomic"
)

// Ref is the reference device: float64, one core, plain loops. It is the
// definition of what every operation computes. Tests compare the other devices
// with it, check layers against finite differences on it, and hold distributed
// training to 1e-9 with it. It is not meant to be fast.
type Ref struct{ inUse, peak atomic.Int64 }

// NewRef is a reference device.
func NewRef() *Ref { return &Ref{} }

func (r *Ref) Type() DType                 { return F64 }
func (r *Ref) RowType(DType) DType         { return F64 }
func (r *Ref) InUse() int64                { return r.inUse.Load() }
func (r *Ref) Peak() int64                 { return r.peak.Load() }
func (r *Ref) Close()                      {}
func (r *Ref) Bytes(m Matrix) []byte       { return m.bytes() }
func (r *Ref) Room(n int) (Matrix, []byte) { return roomOf(r, n) }
func (r *Ref) Indices(host []uint32) Index { return Index{nonNil(host)} }

func (r *Ref) New(_ DType, rows, cols int) Matrix {
	m := Matrix{Rows: rows, Cols: cols, dtype: F64, stride: cols, f64: make([]float64, rows*cols)}
	r.peak.Store(max(r.peak.Load(), r.inUse.Add(m.Bytes())))
	return m
}

// Scratch is filled with NaN, so that a result nobody wrote is seen at once.
func (r *Ref) Scratch(t DType, rows, cols int) Matrix {
	m := r.New(t, rows, cols)
	for i := range m.f64 {
		m.f64[i] = math.NaN()
	}
	return m
}

func (r *Ref) Free(m Matrix) { r.inUse.Add(-m.Bytes()) }

func (r *Ref) FromHost(rows, cols int, host []float32) Matrix {
	m := r.New(F64, rows, cols)
	upload(m, host)
	return m
}

func (r *Ref) FromHostBF16(rows, cols int, host []uint16) Matrix {
	m := r.New(F64, rows, cols)
	r.Copy(m, Matrix{Rows: rows, Cols: cols, dtype: BF16, stride: cols, b16: host})
	return m
}

func (r *Ref) Upload(dst Matrix, host []float64)   { upload(dst, host) }
func (r *Ref) Upload32(dst Matrix, host []float32) { upload(dst, host) }
func (r *Ref) Download(host []float64, m Matrix)   { download(host, m) }
func (r *Ref) Download32(host []float32, m Matrix) { download(host, m) }

func (r *Ref) SparseMatrix(rows, cols int, ptr []int64, index []uint32, value []float32) *Sparse {
	s := &Sparse{Rows: rows, Cols: cols, ptr: ptr, index: index}
	if value != nil {
		s.value = r.FromHost(len(value), 1, value)
	}
	return s
}

func (r *Ref) SparseTranspose(s *Sparse, ptr []int64, index []uint32, perm []uint32) *Sparse {
	t := &Sparse{Rows: s.Cols, Cols: s.Rows, ptr: ptr, index: index, perm: perm}
	if !s.value.IsZero() {
		t.value = r.New(F64, len(index), 1)
		permute(t.value.f64, s.value.f64, perm)
	}
	return t
}

func (r *Ref) MatMul(dst, a, b Matrix, op MatMul) {
	n, k := a.Rows, a.Cols
	if op.TransA {
		n, k = k, n
	}
	kb, p := b.Rows, b.Cols
	if op.TransB {
		kb, p = p, kb
	}
	if k != kb || dst.Rows != n || dst.Cols != p {
		panic(fmt.Sprintf("tensor: MatMul %v = %v · %v (%+v)", dst, a, b, op))
	}
	cols := b.lines(!op.TransB)
	for i, row := range a.lines(op.TransA) {
		d := dst.row64(i)
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
	r.Activate(dst, dst, op.After)
}

// lines are the rows of a float64 matrix, or copies of its columns.
func (m Matrix) lines(columns bool) [][]float64 {
	if !columns {
		lines := make([][]float64, m.Rows)
		for i := range lines {
			lines[i] = m.row64(i)
		}
		return lines
	}
	lines := make([][]float64, m.Cols)
	for j := range lines {
		lines[j] = make([]float64, m.Rows)
		for i := range m.Rows {
			lines[j][i] = m.row64(i)[j]
		}
	}
	return lines
}

func (r *Ref) ColumnSum(dst, src Matrix, add bool) {
	d := dst.row64(0)
	if !add {
		clear(d)
	}
	for i := range src.Rows {
		for j, x := range src.row64(i) {
			d[j] += x
		}
	}
}

func (r *Ref) Zero(m Matrix) {
	for i := range m.Rows {
		clear(m.row64(i))
	}
}

func (r *Ref) Copy(dst, src Matrix) {
	host := make([]float64, src.Rows*src.Cols)
	download(host, src)
	upload(dst, host)
}

func (r *Ref) Combine(dst Matrix, a float64, x Matrix, b float64, y Matrix) {
	for i := range dst.Rows {
		d, xr := dst.row64(i), x.row64(i)
		for j := range d {
			v := a * xr[j]
			if !y.IsZero() {
				v += b * y.row64(i)[j]
			}
			d[j] = v
		}
	}
}

// value is act(x); slope is its derivative, from the result y = act(x).
func (a Act) value(x float64) float64 {
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

func (a Act) slope(y float64) float64 {
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
func (d Dropout) factor(row int, column uint32) float64 { return d.outcome(d.row(row).keeps(column)) }

// outcome is what dropout multiplies a number by that is kept, or is not.
func (d Dropout) outcome(kept bool) float64 {
	if !kept {
		return 0
	}
	return d.scale()
}

// factors are what dropout multiplies the numbers of a row by.
func (d Dropout) factors(f []float64, row int) {
	draws, scale := d.row(row), d.scale()
	for j := range f {
		if f[j] = 0; draws.keeps(uint32(j)) {
			f[j] = scale
		}
	}
}

func (r *Ref) Activate(dst, src Matrix, after After) {
	f := make([]float64, dst.Cols)
	for i := range dst.Rows {
		after.Dropout.factors(f, i)
		d, s := dst.row64(i), src.row64(i)
		for j := range d {
			x := s[j]
			if !after.Bias.IsZero() {
				x += after.Bias.row64(0)[j]
			}
			d[j] = after.Act.value(x) * f[j]
		}
	}
}

func (r *Ref) ActivateGrad(dx, dy, y Matrix, after After, dbias Matrix) {
	f, scale := make([]float64, dx.Cols), after.Dropout.scale()
	for i := range dx.Rows {
		after.Dropout.factors(f, i)
		d, g, out := dx.row64(i), dy.row64(i), y.row64(i)
		for j := range d {
			d[j] = g[j] * f[j] * after.Act.slope(out[j]/scale)
			if !dbias.IsZero() {
				dbias.row64(0)[j] += d[j]
			}
		}
	}
}

func (r *Ref) Dot(x, y Matrix) float64 {
	s := 0.0
	for i := range x.Rows {
		for j, v := range x.row64(i) {
			s += v * y.row64(i)[j]
		}
	}
	return s
}

func (r *Ref) Finite(m Matrix) bool {
	for i := range m.Rows {
		for _, x := range m.row64(i) {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return false
			}
		}
	}
	return true
}

func (r *Ref) Adam(p, g, m, v Matrix, op Adam) {
	c1, c2 := 1-math.Pow(op.Beta1, float64(op.Step)), 1-math.Pow(op.Beta2, float64(op.Step))
	for i := range p.Rows {
		pr, gr, mr, vr := p.row64(i), g.row64(i), m.row64(i), v.row64(i)
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

func (r *Ref) SGD(p, g, buf Matrix, op SGD) {
	for i := range p.Rows {
		pr, gr := p.row64(i), g.row64(i)
		for j := range pr {
			grad := gr[j] + op.Decay*pr[j]
			if op.Momentum != 0 {
				br := buf.row64(i)
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
