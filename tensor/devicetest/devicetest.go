// Package devicetest is what every device must pass: each operation of tensor.Device beside
// the reference device (tensor/ref), over random shapes, views with gaps between their rows,
// types, and empty inputs.
//
//	func TestDevice(t *testing.T) { devicetest.Run(t, func() tensor.Device { return cpu.New(2) }) }
//
// Numbers are mostly multiples of 1/16 between -2 and 2, which every type holds exactly: both
// devices then see the same inputs and agree on which side of a ReLU's bend a sum is. What an
// operation writes outside its view is found too.
package devicetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"starling/internal/testseed"
	"starling/tensor"
	"starling/tensor/ref"
)

// Run tests every operation of a device that open makes. The seed is printed, and
// STARLING_SEED gives it.
func Run(t *testing.T, open func() tensor.Device) { Results(t, testseed.New(t), open) }

// Results is Run with a seed. It returns all numbers that were computed, for devices whose
// results must be the same to the bit.
func Results(t *testing.T, seed uint64, open func() tensor.Device) (all []float64) {
	for i, op := range operations {
		t.Run(op.name, func(t *testing.T) {
			s := &suite{T: t, dev: open(), ref: ref.New(), r: rand.New(rand.NewPCG(seed, uint64(i)))}
			defer s.dev.Close()
			cases := op.cases
			if testing.Short() {
				cases = (cases + 3) / 4
			}
			for range cases {
				s.label, s.views, s.what = "", nil, nil
				op.run(s)
				if s.Failed() {
					return
				}
				s.free()
			}
			if inUse, _ := s.dev.Usage(); inUse != 0 && !s.copies() {
				t.Errorf("%d bytes are still in use", inUse)
			}
			all = append(all, s.results...)
		})
	}
	return all
}

// operations are all tests, by the operation they are of.
var operations = []struct {
	name  string
	cases int
	run   func(*suite)
}{
	{"Memory", 20, (*suite).memory}, {"Host", 20, (*suite).host}, {"Staging", 5, (*suite).staging},
	{"Transpose", 10, (*suite).transpose},
	{"MatMul", 75, (*suite).matMul}, {"ColumnSum", 15, (*suite).columnSum},
	{"Aggregate", 40, (*suite).aggregate}, {"AggregateMax", 15, (*suite).aggregateMax},
	{"HeadDot", 20, (*suite).headDot}, {"Attend", 30, (*suite).attend}, {"Rows", 20, (*suite).rows},
	{"SaturatedAttend", 20, (*suite).saturated}, {"SaturatedDynamicAttend", 20, (*suite).saturatedDynamic},
	{"DropoutValues", 15, (*suite).dropoutValues},
	{"EdgeDot", 20, (*suite).edgeDot}, {"JoinAttend", 20, (*suite).joinAttend}, {"GELU", 20, (*suite).gelu},
	{"DynamicAttend", 20, (*suite).dynamicAttend}, {"FilmMean", 15, (*suite).filmMean}, {"EdgeSum", 15,
		(*suite).edgeSum},
	{"Elements", 30, (*suite).elements}, {"Activate", 50, (*suite).activate},
	{"BatchNorm", 25, (*suite).batchNorm}, {"LayerNorm", 25, (*suite).layerNorm},
	{"Loss", 50, (*suite).loss}, {"CountMarks", 15, (*suite).countMarks}, {"Softmax", 20, (*suite).softmax},
	{"Adam", 10, (*suite).adam}, {"SGD", 10, (*suite).sgd},
	{"Pack", 40, (*suite).pack}, {"PackNonZero", 30, (*suite).packNonZero},
	{"TinyRowsTravel", 1, (*suite).packTiny},
}

// suite is one device beside the reference.
type suite struct {
	*testing.T
	dev   tensor.Device
	ref   *ref.Device
	r     *rand.Rand
	label string
	views []view
	what  []tensor.Matrix // of the device, to free

	results []float64
}

// pair is a matrix on the device, and the same on the reference.
type pair struct{ dev, ref tensor.Matrix }

// view is a matrix inside a larger one, what surrounds it, and what that held at first.
type view struct {
	all        tensor.Matrix
	row, col   int
	rows, cols int
	before     []float64
}

func (s *suite) describe(format string, args ...any) { s.label = fmt.Sprintf(format, args...) }

// copies reports whether what FromHost makes counts as memory in use, which is not freed.
func (s *suite) copies() bool {
	before, _ := s.dev.Usage()
	s.dev.FromHost(1, 1, []float32{1})
	after, _ := s.dev.Usage()
	return after > before
}

func (s *suite) free() {
	for _, m := range s.what {
		s.dev.Free(m)
	}
}

// size is a number of rows or columns: small, around the widths of vectors and tiles, or
// some hundreds.
func (s *suite) size(most int) int {
	switch s.r.IntN(3) {
	case 0:
		return min(most, s.r.IntN(9))
	case 1:
		return min(most, max(0, 16*(1+s.r.IntN(9))+s.r.IntN(3)-1))
	}
	return s.r.IntN(most + 1)
}

// shape is rows and columns: sometimes many rows, which several cores share.
func (s *suite) shape(rows, cols int) (int, int) {
	switch s.r.IntN(16) {
	case 0:
		return 3000 + s.r.IntN(100), min(cols, 1+s.r.IntN(16))
	case 1:
		return 400, min(cols, 129)
	case 2:
		return 2, 5000
	}
	return s.size(rows), s.size(cols)
}

// some is size, but at least one.
func (s *suite) some(most int) int { return max(1, s.size(most)) }

func (s *suite) yes() bool { return s.r.IntN(2) == 0 }

// rowType is the type of rows of vertices.
func (s *suite) rowType() tensor.DType {
	return s.dev.RowType([]tensor.DType{tensor.F32, tensor.BF16}[s.r.IntN(2)])
}

// values are multiples of 1/16 between -2 and 2.
func (s *suite) values(n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(s.r.IntN(65)-32) / 16
	}
	return x
}

// numbers is a matrix of such values in a view, of a type on the device.
func (s *suite) numbers(t tensor.DType, rows, cols int) pair {
	return s.of(t, rows, cols, s.values(rows*cols))
}

// of is a matrix of given values: with gaps between its rows, or without.
func (s *suite) of(t tensor.DType, rows, cols int, x []float64) pair {
	v := view{rows: rows, cols: cols}
	if s.yes() {
		v.row, v.col = s.r.IntN(3), s.r.IntN(40)
	}
	v.all = s.dev.New(t, rows+2*v.row, cols+2*v.col)
	s.what = append(s.what, v.all)
	v.before = s.values(v.all.Rows * v.all.Cols)
	s.dev.Upload(v.all, v.before)
	m := v.all.Slice(v.row, v.row+rows).Columns(v.col, v.col+cols)
	s.dev.Upload(m, x)
	s.views = append(s.views, v)
	r := s.ref.New(tensor.F64, rows, cols)
	s.ref.Upload(r, x)
	return pair{m, r}
}

// param is a matrix of the device's own type without gaps.
func (s *suite) param(rows, cols int) pair {
	x := s.values(rows * cols)
	p := pair{s.dev.New(s.dev.Type(), rows, cols), s.ref.New(tensor.F64, rows, cols)}
	s.what = append(s.what, p.dev)
	s.dev.Upload(p.dev, x)
	s.ref.Upload(p.ref, x)
	return p
}

// sums is a matrix of float64 without gaps.
func (s *suite) sums(rows, cols int) pair {
	p := pair{s.dev.New(tensor.F64, rows, cols), s.ref.New(tensor.F64, rows, cols)}
	s.what = append(s.what, p.dev)
	return p
}

// index is a list on both devices.
func (s *suite) index(list []uint32) (dev, reference tensor.Index) {
	return tensor.Indices(s.dev, list), tensor.Indices(s.ref, list)
}

// someRows are some of n rows, in any order or in ascending order; nil: all.
func (s *suite) someRows(n int) (dev, reference tensor.Index) {
	list := []uint32{}
	for i := range n {
		if s.r.IntN(3) > 0 {
			list = append(list, uint32(i))
		}
	}
	switch s.r.IntN(3) {
	case 0:
		s.r.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
	case 1:
		return tensor.Index{}, tensor.Index{}
	}
	return s.index(list)
}

// download is the numbers of a matrix.
func download(d tensor.Device, m tensor.Matrix) []float64 {
	x := make([]float64, m.Rows*m.Cols)
	d.Download(x, m)
	return x
}

// precision is the relative rounding of a type.
func precision(t tensor.DType) float64 { return [...]float64{1e-5, 1. / 200, 1e-12}[t] }

// same compares a result with the reference's, relative to the size of the numbers it was
// made of: 1 where they are of about that size.
func (s *suite) same(what string, p pair, size float64) {
	s.Helper()
	tol := precision(p.dev.Type())
	s.near(what, p, func(_ int, want float64) float64 { return tol * (size + math.Abs(want)) })
}

// near compares a result with the reference's, number by number.
func (s *suite) near(what string, p pair, tol func(i int, want float64) float64) {
	s.Helper()
	got, want := download(s.dev, p.dev), download(s.ref, p.ref)
	s.results = append(s.results, got...)
	for i, w := range want {
		if d := math.Abs(got[i] - w); !(d <= tol(i, w)) && !(math.IsNaN(w) && math.IsNaN(got[i])) && got[i] != w {
			s.Fatalf("%s: %s (%v): number %d of row %d is %g, want %g", s.label, what, p.dev, i%p.dev.Cols,
				i/p.dev.Cols, got[i], w)
		}
	}
}

// outside finds what was written beside the views.
func (s *suite) outside() {
	s.Helper()
	for _, v := range s.views {
		for k, x := range download(s.dev, v.all) {
			i, j := k/v.all.Cols-v.row, k%v.all.Cols-v.col
			if inside := i >= 0 && i < v.rows && j >= 0 && j < v.cols; !inside && x != v.before[k] {
				s.Fatalf("%s: %g was written beside a %dx%d view of %v, at %d, %d", s.label, x, v.rows, v.cols, v.all,
					i, j)
			}
		}
	}
}

// dropout is none, of a half, or of another share, with ids or without.
func (s *suite) dropout(rows int) (dev, reference tensor.Dropout) {
	d := tensor.Dropout{P: []float32{0, 0.5, 0.3}[s.r.IntN(3)], Key: s.r.Uint64(), First: uint32(s.r.IntN(1000))}
	e := d
	if s.yes() {
		d.IDs, e.IDs = s.index(s.ids(rows))
	}
	return d, e
}

// ids are vertex ids of rows.
func (s *suite) ids(rows int) []uint32 {
	ids := make([]uint32, rows)
	for i := range ids {
		ids[i] = s.r.Uint32()
	}
	return ids
}

// epilogue is any for rows of a number of columns.
func (s *suite) epilogue(rows, cols int, bias bool) (dev, reference tensor.Epilogue) {
	act := tensor.Act(s.r.IntN(4))
	e, f := tensor.Epilogue{Act: act}, tensor.Epilogue{Act: act}
	if bias && s.yes() {
		p := s.param(1, cols)
		e.Bias, f.Bias = p.dev, p.ref
	}
	e.Dropout, f.Dropout = s.dropout(rows)
	return e, f
}
