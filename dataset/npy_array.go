package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"starling/graph"
)

// fromHalf widens a float of 16 bits: sign, 5 of the exponent, 10 of the fraction.
func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0: // below the least exponent: a multiple of 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)/(1<<24)))
	case 31: // infinity, NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// itemSizes are the element types arrays may have, by numpy's name without the
// byte order.
var itemSizes = map[string]int{"i1": 1, "u1": 1, "b1": 1, "i2": 2, "u2": 2, "i4": 4, "u4": 4, "f2": 2, "f4": 4,
	"i8": 8, "u8": 8, "f8": 8}

// integers decode little-endian integers of a type; u8 is saturated at the largest int64.
var integers = map[string]func(b []byte) int64{
	"b1": func(b []byte) int64 { return int64(b[0]) },
	"u1": func(b []byte) int64 { return int64(b[0]) },
	"i1": func(b []byte) int64 { return int64(int8(b[0])) },
	"i2": func(b []byte) int64 { return int64(int16(binary.LittleEndian.Uint16(b))) },
	"u2": func(b []byte) int64 { return int64(binary.LittleEndian.Uint16(b)) },
	"i4": func(b []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(b))) },
	"u4": func(b []byte) int64 { return int64(binary.LittleEndian.Uint32(b)) },
	"i8": func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) },
	"u8": func(b []byte) int64 { return int64(min(binary.LittleEndian.Uint64(b), math.MaxInt64)) },
}

// reals decode little-endian numbers that are not exact as int64.
var reals = map[string]func(b []byte) float64{
	"f2": func(b []byte) float64 { return float64(fromHalf(binary.LittleEndian.Uint16(b))) },
	"f4": func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) },
	"f8": func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) },
	"u8": func(b []byte) float64 { return float64(binary.LittleEndian.Uint64(b)) },
}

// eachInteger decodes little-endian integers and calls f with each.
func eachInteger(descr string, data []byte, f func(i int, x int64) error) error {
	if len(data) == 0 {
		return nil
	}
	decode, ok := integers[descr]
	if !ok && reals[descr] != nil {
		return fmt.Errorf("real numbers where integers belong")
	}
	if !ok {
		return fmt.Errorf("an array of %q", descr)
	}
	size := itemSizes[descr]
	for i := range len(data) / size {
		if err := f(i, decode(data[i*size:])); err != nil {
			return err
		}
	}
	return nil
}

// eachReal decodes little-endian numbers and calls f with each.
func eachReal(descr string, data []byte, f func(i int, x float64)) error {
	size := itemSizes[descr]
	if decode := reals[descr]; decode != nil {
		for i := range len(data) / size {
			f(i, decode(data[i*size:]))
		}
		return nil
	}
	return eachInteger(descr, data, func(i int, x int64) error {
		f(i, float64(x))
		return nil
	})
}

// check tells whether data has as many bytes as the shape needs.
func (a *ndarray) check() error {
	n, size := int64(1), itemSizes[a.descr]
	for _, d := range a.shape {
		if d != 0 && n > int64(len(a.data))/d+1 {
			return fmt.Errorf("%d bytes for shape %v", len(a.data), a.shape)
		}
		n *= d
	}
	if size == 0 {
		return fmt.Errorf("an array of %q", a.descr)
	}
	if n*int64(size) != int64(len(a.data)) {
		return fmt.Errorf("%d bytes for shape %v of %s", len(a.data), a.shape, a.descr)
	}
	return nil
}

// int64s, uint32s and float32s convert; values that do not fit are errors.
func (a *ndarray) int64s() ([]int64, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	out := make([]int64, len(a.data)/itemSizes[a.descr])
	err := eachInteger(a.descr, a.data, func(i int, x int64) error {
		out[i] = x
		return nil
	})
	return out, err
}

func (a *ndarray) uint32s() ([]uint32, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	out := make([]uint32, len(a.data)/itemSizes[a.descr])
	err := eachInteger(a.descr, a.data, func(i int, x int64) error {
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
	out := make([]float32, len(a.data)/itemSizes[a.descr])
	return out, eachReal(a.descr, a.data, func(i int, x float64) { out[i] = float32(x) })
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
	h, err := readHeader(r, size)
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

// readHeader reads the header of an npy of size bytes: plain values, row-major, as
// many as it claims.
func readHeader(r io.Reader, size int64) (*graph.NPYHeader, error) {
	h, err := graph.ReadNPYHeader(r)
	if err != nil {
		return nil, err
	}
	switch {
	case h.Descr == "|O":
		return nil, fmt.Errorf("objects of Python, which are not read")
	case h.Descr[:min(1, len(h.Descr))] == ">":
		return nil, fmt.Errorf("a big-endian array (save a.astype(a.dtype.newbyteorder('<')) instead)")
	case h.ItemSize() == 0:
		return nil, fmt.Errorf("an array of %q", h.Descr)
	case h.Fortran && len(h.Shape) > 1:
		return nil, fmt.Errorf("a column-major array (save numpy.ascontiguousarray(a) instead)")
	case h.DataBytes() != size-h.Offset:
		return nil, fmt.Errorf("%d bytes for shape %v of %s", size-h.Offset, h.Shape, h.Descr)
	}
	return h, nil
}
