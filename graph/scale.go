package graph

import (
	"fmt"
	"math"
	"slices"

	"starling/event"
)

// Scale is how features were standardized: column c of a vertex became
//
//	(x - Mean[c]) / Deviation[c]
//
// A column that was left as it was has mean 0 and deviation 1. Sparse features are divided only,
// so that zeros stay zeros.
type Scale struct {
	Mean      []float64 `json:"mean"`
	Deviation []float64 `json:"deviation"`
}

// NewScale is one that changes nothing.
func NewScale(dim int) *Scale {
	s := &Scale{Mean: make([]float64, dim), Deviation: make([]float64, dim)}
	for c := range s.Deviation {
		s.Deviation[c] = 1
	}
	return s
}

// Validate checks that there are dim finite means, and as many deviations above 0.
func (s *Scale) Validate(dim int) error {
	if len(s.Mean) != dim || len(s.Deviation) != dim {
		return badMeta("features.scale", fmt.Sprintf("%s and %s", event.Tally(len(s.Mean), "mean"),
			event.Tally(len(s.Deviation), "deviation")),
			fmt.Sprint(dim))
	}
	for c := range s.Mean {
		if m, d := s.Mean[c], s.Deviation[c]; math.IsNaN(m) || math.IsInf(m, 0) || !(d > 0) || math.IsInf(d, 0) {
			return badMeta("features.scale", fmt.Sprintf("mean %g and deviation %g of column %d", m, d, c),
				"finite numbers, the deviation above 0")
		}
	}
	return nil
}

// Apply standardizes a row (or several) in place. A nil scale changes nothing.
func (s *Scale) Apply(x []float32) {
	if s == nil {
		return
	}
	for i, y := range x {
		c := i % len(s.Mean)
		x[i] = float32((float64(y) - s.Mean[c]) / s.Deviation[c])
	}
}

// Undo turns standardized rows back into what they were, up to rounding.
func (s *Scale) Undo(x []float32) {
	if s == nil {
		return
	}
	for i, y := range x {
		c := i % len(s.Mean)
		x[i] = float32(float64(y)*s.Deviation[c] + s.Mean[c])
	}
}

// Equal reports whether two scales do the same; nil is the scale that changes nothing.
func (s *Scale) Equal(o *Scale) bool {
	if s == nil || o == nil {
		return s.none() && o.none()
	}
	return slices.Equal(s.Mean, o.Mean) && slices.Equal(s.Deviation, o.Deviation)
}

func (s *Scale) none() bool { return s == nil || s.Equal(NewScale(len(s.Mean))) }

// centred reports whether some mean is not 0.
func (s *Scale) centred() bool {
	return slices.ContainsFunc(s.Mean, func(m float64) bool { return m != 0 })
}

// Rescaled are features that were standardized by one scale as if they had been by another;
// the same features where the two are equal. Sparse features cannot get or lose a mean.
func (f *Features) Rescaled(from, to *Scale) (*Features, error) {
	if from.Equal(to) {
		return f, nil
	}
	if f.Kind() == Sparse {
		return f.rescaledSparse(from, to)
	}
	out := &Features{Rows: f.Rows, Cols: f.Cols, F32: make([]float32, f.Rows*f.Cols)}
	Parallel(int64(f.Rows), 1024, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			row := out.F32[v*int64(f.Cols) : (v+1)*int64(f.Cols)]
			f.CopyRow(row, uint32(v))
			from.Undo(row)
			to.Apply(row)
		}
	})
	return out, nil
}

func (f *Features) rescaledSparse(from, to *Scale) (*Features, error) {
	for _, s := range []*Scale{from, to} {
		if s != nil && s.centred() {
			return nil, &InputError{Field: "features", Found: "sparse features, and a scale with means",
				Want: "dense features, or a scale of deviations only", Fix: "import both datasets in the same format"}
		}
	}
	factor := make([]float64, f.Cols)
	for c := range factor {
		factor[c] = 1
		if from != nil {
			factor[c] *= from.Deviation[c]
		}
		if to != nil {
			factor[c] /= to.Deviation[c]
		}
	}
	out := *f
	out.Values = make([]float32, len(f.Values))
	for i, x := range f.Values {
		out.Values[i] = float32(float64(x) * factor[f.Indices[i]])
	}
	return &out, nil
}
