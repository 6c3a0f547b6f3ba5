package dataset

import (
	"fmt"
	"math"

	"starling/graph"
)

// rowFeed is a source of dense features that are written while they are
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
			return badFile(r.file, "rows", "more", fmt.Sprintf("one per vertex (%d)", r.rows),
				"the files are not of one dataset: download them again")
		}
		for i, v := range x {
			if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
				pos := at + int64(i)
				return badFile(r.file, fmt.Sprintf("row %d, column %d", pos/int64(r.cols), pos%int64(r.cols)),
					fmt.Sprint(v), "finite numbers", fillIn)
			}
		}
		at += int64(len(x))
		return graph.WriteSlice(a, x)
	})
	if err == nil && at != int64(r.rows)*int64(r.cols) {
		err = badFile(r.file, "rows", fmt.Sprint(at/int64(r.cols)), fmt.Sprintf("one per vertex (%d)", r.rows),
			"the files are not of one dataset: download them again")
	}
	if err != nil {
		a.Abort()
		return err
	}
	return a.Close()
}
