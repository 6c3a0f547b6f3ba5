package dataset

import (
	"fmt"
	"math"

	"starling/dataset/table"
	"starling/graph"
)

// What is done to features after any importer: missing values are filled in, and columns are
// standardized to mean 0 and variance 1 over the training vertices, as GraphSAINT's authors do
// (over all vertices where there are no splits). Columns of zeros and ones that --one-hot made stay
// as they are. The scale is kept in the dataset, so that other data gets the same.

// prepares tells whether anything is to be done.
func (o ImportOptions) prepares() bool {
	return o.Standardize || o.Missing == missingZero || o.Missing == missingMean
}

func (r *read) prepare(opt ImportOptions) (err error) {
	if !opt.prepares() {
		return nil
	}
	switch {
	case r.features == nil && r.rows == nil:
		flag := "missing"
		if opt.Standardize {
			flag = "standardize"
		}
		return badParam(flag, "a setting without effect: there are no features", "it only with features")
	case r.features != nil && r.features.Kind() == graph.Sparse:
		return r.prepareSparse(opt)
	case r.features != nil:
		r.rows, r.features = inMemory(r.featureFile, r.features), nil
	}
	var s *ColumnStats
	if s, err = r.rows.stats(r.splits.Train); err != nil {
		return err
	}
	fill := make([]float32, r.rows.cols)
	if opt.Missing == missingMean {
		for c := range fill {
			fill[c] = float32(s.Mean[c])
		}
	}
	filled := opt.Missing == missingZero || opt.Missing == missingMean
	if filled && s.Missing > 0 {
		r.notes = append(r.notes, fmt.Sprintf("missing features, filled in with %s: %d", map[string]string{
			missingZero: "0", missingMean: "the mean of their column"}[opt.Missing], s.Missing))
	}
	if opt.Standardize {
		r.scale = s.Scale(r.rows.cols - r.oneHot)
		r.notes = append(r.notes, "features standardized by "+s.over)
	}
	r.rows = r.rows.changed(filled, fill, r.scale)
	return nil
}

// inMemory is features as a source of rows.
func inMemory(file string, f *graph.Features) *rowFeed {
	return &rowFeed{file: file, rows: f.Rows, cols: f.Cols, each: func(put func(x []float32) error) error {
		step := max(1, table.PieceNumbers/f.Cols) * f.Cols
		for at := 0; at < len(f.F32); at += step {
			if err := put(f.F32[at:min(at+step, len(f.F32))]); err != nil {
				return err
			}
		}
		return nil
	}}
}

// ColumnStats are the mean and deviation of every column.
type ColumnStats struct {
	Mean    []float64
	Missing int64 // NaN among all rows

	square, count []float64 // square: summed squares of differences from the mean
	over          string
}

// NewColumnStats are stats of no rows yet.
func NewColumnStats(cols int) *ColumnStats {
	return &ColumnStats{Mean: make([]float64, cols), square: make([]float64, cols), count: make([]float64, cols)}
}

// stats reads all rows once. Those of the given vertices count, or all if there are none.
func (r *rowFeed) stats(over []uint32) (*ColumnStats, error) {
	s := NewColumnStats(r.cols)
	s.over = fmt.Sprintf("the %d training vertices", len(over))
	chosen := make([]bool, r.rows)
	for _, v := range over {
		chosen[v] = true
	}
	if len(over) == 0 {
		s.over = "all vertices"
	}
	v := 0
	return s, r.each(func(x []float32) error {
		for ; len(x) >= r.cols; x, v = x[r.cols:], v+1 {
			s.Add(x[:r.cols], v < r.rows && (len(over) == 0 || chosen[v]))
		}
		return nil
	})
}

// Add counts one row, of a vertex that is chosen or not. Values that are not finite are left to the check of what is written.
func (s *ColumnStats) Add(row []float32, chosen bool) {
	for c, y := range row {
		x := float64(y)
		switch {
		case y != y:
			s.Missing++
		case chosen && !math.IsInf(x, 0):
			// Welford's update: no cancellation between large sums.
			s.count[c]++
			d := x - s.Mean[c]
			s.Mean[c] += d / s.count[c]
			s.square[c] += d * (x - s.Mean[c])
		}
	}
}

// Scale returns the scale of the first columns; the others are unchanged. A constant column is
// only centred.
func (s *ColumnStats) Scale(columns int) *graph.Scale {
	out := graph.NewScale(len(s.Mean))
	for c := range columns {
		out.Mean[c] = s.Mean[c]
		if d := math.Sqrt(s.square[c] / max(s.count[c], 1)); d > 0 {
			out.Deviation[c] = d
		}
	}
	return out
}

// changed are the same rows with missing values filled in, then scaled.
func (r *rowFeed) changed(filled bool, fill []float32, scale *graph.Scale) *rowFeed {
	out := *r
	out.each = func(put func(x []float32) error) error {
		return r.each(func(x []float32) error {
			for i, y := range x {
				if filled && y != y {
					x[i] = fill[i%r.cols]
				}
			}
			scale.Apply(x)
			return put(x)
		})
	}
	return &out
}

// prepareSparse divides by the deviation and does not centre: zeros stay zeros.
func (r *read) prepareSparse(opt ImportOptions) error {
	f := r.features
	if opt.Missing == missingMean {
		return badParam("missing", "mean of sparse features", "zero, which keeps them sparse")
	}
	values := make([]float32, len(f.Values))
	missing := 0
	for i, x := range f.Values {
		if x != x && opt.Missing == missingZero {
			x = 0
			missing++
		}
		values[i] = x
	}
	f.Values = values
	if missing > 0 {
		r.notes = append(r.notes, fmt.Sprintf("missing features, filled in with 0: %d", missing))
	}
	if !opt.Standardize {
		return nil
	}
	r.scale = sparseScale(f, r.splits.Train)
	for i := range f.Values {
		f.Values[i] = float32(float64(f.Values[i]) / r.scale.Deviation[f.Indices[i]])
	}
	r.notes = append(r.notes, "features divided by their deviation over the training vertices (over all where there "+
		"are no splits) and not centred, as they are sparse")
	return nil
}

// sparseScale has the deviation of every column over the given vertices, or all.
func sparseScale(f *graph.Features, over []uint32) *graph.Scale {
	sum, square, n := make([]float64, f.Cols), make([]float64, f.Cols), float64(len(over))
	add := func(v uint32) {
		for i := f.Indptr[v]; i < f.Indptr[v+1]; i++ {
			x := float64(f.Values[i])
			sum[f.Indices[i]] += x
			square[f.Indices[i]] += x * x
		}
	}
	for _, v := range over {
		add(v)
	}
	if len(over) == 0 {
		n = float64(f.Rows)
		for v := range f.Rows {
			add(uint32(v))
		}
	}
	s := graph.NewScale(f.Cols)
	for c := range s.Deviation {
		mean := sum[c] / n
		if d := math.Sqrt(max(square[c]/n-mean*mean, 0)); d > 0 {
			s.Deviation[c] = d
		}
	}
	return s
}
