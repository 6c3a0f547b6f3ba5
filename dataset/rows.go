package dataset

import (
	"fmt"
	"math"

	"starling/graph"
)

// rowFeed is where dense features come from, when they are written as they are
// read: put takes any number of whole rows, in the order of the vertices.
type rowFeed struct {
	file       string
	rows, cols int
	each       func(put func(x []float32) error) error
}

func (r *rowFeed) write(w *graph.Writer) error {
	a, err := w.DenseFeatures(graph.Dense, r.rows, r.cols)
	if err != nil {
		return err
	}
	var at int64
	err = r.each(func(x []float32) error {
		if at+int64(len(x)) > int64(r.rows)*int64(r.cols) {
			return badFile(r.file, "rows", "more", fmt.Sprintf("one a vertex (%d)", r.rows), "the files are not of one dataset: download them again")
		}
		for i, v := range x {
			if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
				pos := at + int64(i)
				return badFile(r.file, fmt.Sprintf("row %d, column %d", pos/int64(r.cols), pos%int64(r.cols)), fmt.Sprint(v), "finite numbers", "replace missing values before importing")
			}
		}
		at += int64(len(x))
		return graph.WriteSlice(a, x)
	})
	if err == nil && at != int64(r.rows)*int64(r.cols) {
		err = badFile(r.file, "rows", fmt.Sprint(at/int64(r.cols)), fmt.Sprintf("one a vertex (%d)", r.rows), "the files are not of one dataset: download them again")
	}
	if err != nil {
		a.Abort()
		return err
	}
	return a.Close()
}

// standardised is the same rows with every column brought to mean 0 and variance 1
// over the given vertices, as GraphSAINT's authors do; a constant column is only
// centred. The rows are read twice.
func (r *rowFeed) standardised(over []uint32) (*rowFeed, error) {
	chosen := make([]bool, r.rows)
	for _, v := range over {
		chosen[v] = true
	}
	mean, square := make([]float64, r.cols), make([]float64, r.cols)
	v, count := 0, 0.0
	err := r.each(func(x []float32) error {
		for ; len(x) > 0; x, v = x[r.cols:], v+1 {
			if v >= r.rows || !chosen[v] {
				continue
			}
			// Welford's update: no cancellation between large sums.
			count++
			for c, y := range x[:r.cols] {
				d := float64(y) - mean[c]
				mean[c] += d / count
				square[c] += d * (float64(y) - mean[c])
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for c := range square {
		if square[c] = math.Sqrt(square[c] / max(count, 1)); square[c] == 0 {
			square[c] = 1
		}
	}
	out := *r
	out.each = func(put func(x []float32) error) error {
		return r.each(func(x []float32) error {
			for i, y := range x {
				c := i % r.cols
				x[i] = float32((float64(y) - mean[c]) / square[c])
			}
			return put(x)
		})
	}
	return &out, nil
}
