package graph

import (
	"fmt"
	"math"

	"starling/event"
)

// FeatureKind says how features are stored.
type FeatureKind string

// The kinds of features.
const (
	Dense    FeatureKind = "float32"
	BFloat16 FeatureKind = "bfloat16"
	Sparse   FeatureKind = "sparse"
)

// Features holds one row per vertex, in exactly one of three forms: F32 (Rows×Cols,
// row by row), BF16 (the same, each value the upper half of a float32), or
// sparse rows (row v has Values[i] in column Indices[i] for i in
// Indptr[v]..Indptr[v+1]).
type Features struct {
	Rows, Cols int
	F32        []float32
	BF16       []uint16
	Indptr     []int64
	Indices    []uint32
	Values     []float32
}

// Kind reports which form is present.
func (f *Features) Kind() FeatureKind {
	switch {
	case f.Indptr != nil:
		return Sparse
	case f.BF16 != nil:
		return BFloat16
	}
	return Dense
}

// CopyRow writes row v to dst, which must have Cols elements.
func (f *Features) CopyRow(dst []float32, v uint32) {
	dst = dst[:f.Cols]
	at := int(v) * f.Cols
	switch f.Kind() {
	case Dense:
		copy(dst, f.F32[at:])
	case BFloat16:
		for i, b := range f.BF16[at : at+f.Cols] {
			dst[i] = FromBF16(b)
		}
	case Sparse:
		clear(dst)
		for i := f.Indptr[v]; i < f.Indptr[v+1]; i++ {
			dst[f.Indices[i]] += f.Values[i]
		}
	}
}

// Picked are some rows, in single precision.
func (f *Features) Picked(rows []uint32) *Features {
	out := &Features{Rows: len(rows), Cols: f.Cols, F32: make([]float32, len(rows)*f.Cols)}
	Parallel(int64(len(rows)), 1024, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			f.CopyRow(out.F32[int(i)*f.Cols:], rows[i])
		}
	})
	return out
}

// Validate checks lengths, offsets and columns, but not the values themselves.
func (f *Features) Validate() error {
	switch f.Kind() {
	case Dense:
		return f.checkLength("features", len(f.F32))
	case BFloat16:
		return f.checkLength("features", len(f.BF16))
	}
	if len(f.Indptr) != f.Rows+1 {
		return &InputError{Field: "features_indptr", Found: event.Tally(len(f.Indptr), "offset"),
			Want: fmt.Sprintf("%d, one more than the rows", f.Rows+1), Fix: "import the dataset again"}
	}
	if len(f.Values) != len(f.Indices) {
		return &InputError{Field: "features_values", Found: event.Tally(len(f.Values), "value"),
			Want: fmt.Sprintf("one per column index (%d)", len(f.Indices)), Fix: "import the dataset again"}
	}
	if err := checkIndptr("features_indptr", f.Indptr, int64(len(f.Indices)), "features_indices"); err != nil {
		return err
	}
	return checkIndices("features_indices", f.Indices, f.Cols,
		"a row names an absent column: import the dataset again or correct its source")
}

func (f *Features) checkLength(field string, n int) error {
	if f.Rows < 0 || f.Cols < 0 || (f.Cols > 0 && n/f.Cols != f.Rows) || n != f.Rows*f.Cols {
		return &InputError{Field: field, Found: event.Tally(n, "value"),
			Want: fmt.Sprintf("%s of %d", event.Tally(f.Rows, "row"), f.Cols), Fix: "give every vertex one row"}
	}
	return nil
}

// CheckFinite reports the first NaN or infinity, with its row and column.
func (f *Features) CheckFinite() error {
	switch f.Kind() {
	case Dense:
		return checkFinite("features", f.F32, f.Cols)
	case Sparse:
		return checkFinite("features_values", f.Values, 1)
	}
	return parallelErr(int64(len(f.BF16)), 1<<18, func(lo, hi int64) error {
		for i, b := range f.BF16[lo:hi] {
			if b&0x7f80 == 0x7f80 {
				return notFinite("features", FromBF16(b), lo+int64(i), f.Cols)
			}
		}
		return nil
	})
}

// RowNormalize returns features of the same kind in which the absolute values
// of every row sum to 1; a row of zeros stays. This is what the GCN paper does to
// bags of words.
func (f *Features) RowNormalize() *Features {
	out := *f
	switch f.Kind() {
	case Dense:
		out.F32 = make([]float32, len(f.F32))
	case BFloat16:
		out.BF16 = make([]uint16, len(f.BF16))
	case Sparse:
		out.Values = make([]float32, len(f.Values))
	}
	Parallel(int64(f.Rows), 1024, func(lo, hi int64) {
		wide := make([]float32, f.Cols)
		for v := lo; v < hi; v++ {
			a, b := v*int64(f.Cols), (v+1)*int64(f.Cols)
			switch f.Kind() {
			case Dense:
				normalize(out.F32[a:b], f.F32[a:b])
			case Sparse:
				a, b = f.Indptr[v], f.Indptr[v+1]
				normalize(out.Values[a:b], f.Values[a:b])
			case BFloat16:
				f.CopyRow(wide, uint32(v))
				normalize(wide, wide)
				for i, x := range wide {
					out.BF16[a+int64(i)] = ToBF16(x)
				}
			}
		}
	})
	return &out
}

func normalize(dst, src []float32) {
	var sum float64
	for _, x := range src {
		sum += math.Abs(float64(x))
	}
	if sum == 0 {
		sum = 1
	}
	for i, x := range src {
		dst[i] = float32(float64(x) / sum)
	}
}

// ToBF16 rounds to the nearest bfloat16, ties to even; NaN stays NaN.
func ToBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// FromBF16 widens a bfloat16, exactly.
func FromBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }
