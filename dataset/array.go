package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"starling/graph"
)

func frombits(b uint64) float64 { return math.Float64frombits(b) }

// fromHalf widens a float of 16 bits: sign, 5 of the exponent, 10 of the fraction.
func fromHalf(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exponent {
	case 0: // below the least exponent: so many times 2^-24
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)/(1<<24)))
	case 31: // infinity, NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

// itemSizes are the element types arrays may have, by numpy's name without the
// byte order.
var itemSizes = map[string]int{"i1": 1, "u1": 1, "b1": 1, "i2": 2, "u2": 2, "i4": 4, "u4": 4, "f2": 2, "f4": 4, "i8": 8, "u8": 8, "f8": 8}

// elements decodes little-endian data, a function of each position. Integers are
// exact as int64, reals as float64; the caller takes the one it wants.
func elements(descr string, data []byte, ints func(i int, x int64) error, reals func(i int, x float64) error) error {
	size := itemSizes[descr]
	le := binary.LittleEndian
	for i := range len(data) / max(size, 1) {
		b := data[i*size:]
		var x int64
		switch descr {
		case "b1", "u1":
			x = int64(b[0])
		case "i1":
			x = int64(int8(b[0]))
		case "i2":
			x = int64(int16(le.Uint16(b)))
		case "u2":
			x = int64(le.Uint16(b))
		case "i4":
			x = int64(int32(le.Uint32(b)))
		case "u4":
			x = int64(le.Uint32(b))
		case "i8":
			x = int64(le.Uint64(b))
		case "u8":
			if ints == nil { // of which half are beyond int64
				if err := reals(i, float64(le.Uint64(b))); err != nil {
					return err
				}
				continue
			}
			x = int64(min(le.Uint64(b), math.MaxInt64))
		case "f2", "f4", "f8":
			f := float64(0)
			switch size {
			case 2:
				f = float64(fromHalf(le.Uint16(b)))
			case 4:
				f = float64(math.Float32frombits(le.Uint32(b)))
			default:
				f = frombits(le.Uint64(b))
			}
			if reals == nil {
				return fmt.Errorf("real numbers where integers belong")
			}
			if err := reals(i, f); err != nil {
				return err
			}
			continue
		default:
			return fmt.Errorf("an array of %q", descr)
		}
		if ints == nil {
			if err := reals(i, float64(x)); err != nil {
				return err
			}
		} else if err := ints(i, x); err != nil {
			return err
		}
	}
	return nil
}

// check tells whether data has as many bytes as the shape asks for.
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
	err := elements(a.descr, a.data, func(i int, x int64) error {
		out[i] = x
		return nil
	}, nil)
	return out, err
}

func (a *ndarray) uint32s() ([]uint32, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	out := make([]uint32, len(a.data)/itemSizes[a.descr])
	err := elements(a.descr, a.data, func(i int, x int64) error {
		if x < 0 || x > math.MaxUint32 {
			return fmt.Errorf("%d at position %d where an index belongs", x, i)
		}
		out[i] = uint32(x)
		return nil
	}, nil)
	return out, err
}

func (a *ndarray) float32s() ([]float32, error) {
	if err := a.check(); err != nil {
		return nil, err
	}
	out := make([]float32, len(a.data)/itemSizes[a.descr])
	err := elements(a.descr, a.data, nil, func(i int, x float64) error {
		out[i] = float32(x)
		return nil
	})
	return out, err
}

// sparse puts the three arrays of a scipy CSR matrix together and checks them.
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
	if errors.As(err, &in) { // by the names that the arrays have in the file
		in.Field = map[string]string{"features_indptr": "indptr", "features_indices": "indices", "features_values": "data"}[in.Field]
	}
	return f, err
}

// readArray reads an npy stream of size bytes. Memory grows with the bytes that
// come, not with what the header promises.
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

// readHeader reads the header of an npy of size bytes: one of plain values, row by row, of which there are as
// many as it says.
func readHeader(r io.Reader, size int64) (*graph.NPYHeader, error) {
	h, err := graph.ReadNPYHeader(r)
	if err != nil {
		return nil, err
	}
	switch {
	case h.Descr == "|O":
		return nil, fmt.Errorf("Python objects, which are not read")
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
