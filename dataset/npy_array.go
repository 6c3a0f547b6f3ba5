package dataset

import (
	"errors"
	"fmt"
	"io"
	"math"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// check tells whether data has as many bytes as the shape needs.
func (a *ndarray) check() error {
	n, size := int64(1), table.ItemSizes[a.descr]
	for _, d := range a.shape {
		if d != 0 && n > int64(len(a.data))/d+1 {
			return fmt.Errorf("%s for shape %v", event.Tally(len(a.data), "byte"), a.shape)
		}
		n *= d
	}
	if size == 0 {
		return fmt.Errorf("an array of %q", a.descr)
	}
	if n*int64(size) != int64(len(a.data)) {
		return fmt.Errorf("%s for shape %v of %s", event.Tally(len(a.data), "byte"), a.shape, a.descr)
	}
	return nil
}

// int64s, uint32s and float32s convert; values that do not fit are errors.
func (a *ndarray) int64s() ([]int64, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	out := make([]int64, len(a.data)/table.ItemSizes[a.descr])
	err := table.EachInteger(a.descr, a.data, func(i int, x int64) error {
		out[i] = x
		return nil
	})
	return out, err
}

func (a *ndarray) uint32s() ([]uint32, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	out := make([]uint32, len(a.data)/table.ItemSizes[a.descr])
	err := table.EachInteger(a.descr, a.data, func(i int, x int64) error {
		if x < 0 || x > math.MaxUint32 {
			return fmt.Errorf("%d at position %d where an index belongs", x, i)
		}
		out[i] = uint32(x)
		return nil
	})
	return out, err
}

func (a *ndarray) float32s() ([]float32, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	out := make([]float32, len(a.data)/table.ItemSizes[a.descr])
	return out, table.EachReal(a.descr, a.data, func(i int, x float64) { out[i] = float32(x) })
}

// sparse combines the three arrays of a scipy CSR matrix and checks them.
func sparse(indptr, indices, data *ndarray, rows, cols int64) (f *graph.Features, err error) {
	if rows < 0 || cols < 0 || rows > graph.MaxNodes || cols > math.MaxInt32 {
		return nil, fmt.Errorf("a matrix of %d×%d", rows, cols)
	}
	f = &graph.Features{Rows: int(rows), Cols: int(cols)}
	if f.Indptr, err = indptr.int64s(); err != nil {
		return nil, err
	}
	if f.Indices, err = indices.uint32s(); err != nil {
		return nil, err
	}
	if f.Values, err = data.float32s(); err != nil {
		return nil, err
	}
	err = f.Validate()
	if err == nil {
		err = f.CheckFinite()
	}
	var in *graph.InputError
	if errors.As(err, &in) { // under the names in the file
		in.Field = map[string]string{"features_indptr": "indptr", "features_indices": "indices",
			"features_values": "data"}[in.Field]
	}
	return f, err
}

// readArray reads an npy stream of size bytes. Memory grows with the bytes that
// arrive, not with the header's claim.
func readArray(r io.Reader, size int64) (*ndarray, error) {
	h, err := table.ReadHeader(r, size)
	if err != nil {
		return nil, err
	}
	a := &ndarray{descr: h.Descr[1:], shape: h.Shape}
	a.data, err = io.ReadAll(io.LimitReader(r, h.DataBytes()))
	if err == nil && int64(len(a.data)) != h.DataBytes() {
		err = io.ErrUnexpectedEOF
	}
	return a, err
}
