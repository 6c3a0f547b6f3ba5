package table

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"unsafe"

	"starling/event"
	"starling/graph"
)

// Array reads the numbers of an npy array in order, a chunk at a time.
type Array struct {
	R       io.Reader
	Descr   string // without the byte order
	Shape   []int64
	Left    int64 // numbers not yet read
	buf     []byte
	Closing func() error // may be nil
}

// PieceNumbers is how many numbers are read at a time.
const PieceNumbers = 1 << 16

// NewArray reads the header of an npy of size bytes.
func NewArray(r io.Reader, size int64) (*Array, error) {
	h, err := ReadHeader(r, size)
	if err != nil {
		return nil, err
	}
	a := &Array{R: r, Descr: h.Descr[1:], Shape: h.Shape, Left: h.Elements()}
	if ItemSizes[a.Descr] == 0 {
		return nil, fmt.Errorf("an array of %q", h.Descr)
	}
	return a, nil
}

// OpenArray streams an npy file.
func OpenArray(path string) (*Array, error) {
	const fix = "save it again with numpy.save, or download it again"
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, bad(path, "", "no such file", "an npy array", "check the folder")
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s", info.Mode().Type())
	}
	var a *Array
	if err == nil {
		a, err = NewArray(f, info.Size())
	}
	if err != nil {
		f.Close()
		return nil, Because(path, "", err, "an npy of numbers", fix)
	}
	a.Closing = f.Close
	return a, nil
}

// Close closes the underlying file.
func (a *Array) Close() error {
	if a.Closing == nil {
		return nil
	}
	return a.Closing()
}

// Bytes reads n numbers, undecoded; the slice is good until the next call.
func (a *Array) Bytes(n int) ([]byte, error) {
	size := n * ItemSizes[a.Descr]
	if cap(a.buf) < size {
		a.buf = make([]byte, size)
	}
	if int64(n) > a.Left {
		return nil, io.ErrUnexpectedEOF
	}
	if _, err := io.ReadFull(a.R, a.buf[:size]); err != nil {
		return nil, err
	}
	a.Left -= int64(n)
	return a.buf[:size], nil
}

// End reads to the end of the file, where a zip archive compares its checksum.
func (a *Array) End() error {
	_, err := io.Copy(io.Discard, a.R)
	return err
}

// Indices reads len(out) numbers that are vertices or edges, a few at a time: they
// are still in the L1 cache when they are narrowed.
func (a *Array) Indices(out []uint32) error {
	const few = 1 << 12
	for len(out) > 0 {
		n := min(few, len(out))
		b, err := a.Bytes(n)
		if err == nil {
			err = indicesOf(a.Descr, b, out[:n])
		}
		if err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

func indicesOf(descr string, b []byte, out []uint32) error {
	wide := uint64(0)
	switch descr {
	case "i8", "u8":
		for i, x := range unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(out)) {
			wide |= x
			out[i] = uint32(x)
		}
	case "i4":
		copy(BytesOf(out), b)
		for _, x := range out {
			wide |= uint64(x) << 1 // a negative one shows above
		}
	case "u4":
		copy(BytesOf(out), b)
	default:
		wide = 1 << 32
	}
	if wide>>32 == 0 {
		return nil
	}
	return EachInteger(descr, b, func(i int, x int64) error {
		if x < 0 || x > math.MaxUint32 {
			return fmt.Errorf("%d where an index belongs", x)
		}
		out[i] = uint32(x)
		return nil
	})
}

// Reals reads len(out) numbers as float32.
func (a *Array) Reals(out []float32) error {
	b, err := a.Bytes(len(out))
	if err != nil {
		return err
	}
	switch a.Descr {
	case "f4":
		copy(BytesOf(out), b)
		return nil
	case "f8":
		for i := range out {
			out[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])))
		}
		return nil
	}
	return EachReal(a.Descr, b, func(i int, x float64) { out[i] = float32(x) })
}

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

// ItemSizes are the element types arrays may have, by numpy's name without the
// byte order.
var ItemSizes = map[string]int{"i1": 1, "u1": 1, "b1": 1, "i2": 2, "u2": 2, "i4": 4, "u4": 4, "f2": 2, "f4": 4,
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

// EachInteger decodes little-endian integers and calls f with each.
func EachInteger(descr string, data []byte, f func(i int, x int64) error) error {
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
	size := ItemSizes[descr]
	for i := range len(data) / size {
		if err := f(i, decode(data[i*size:])); err != nil {
			return err
		}
	}
	return nil
}

// EachReal decodes little-endian numbers and calls f with each.
func EachReal(descr string, data []byte, f func(i int, x float64)) error {
	size := ItemSizes[descr]
	if decode := reals[descr]; decode != nil {
		for i := range len(data) / size {
			f(i, decode(data[i*size:]))
		}
		return nil
	}
	return EachInteger(descr, data, func(i int, x int64) error {
		f(i, float64(x))
		return nil
	})
}

// ReadHeader reads the header of an npy of size bytes: plain values, row-major, as
// many as it claims.
func ReadHeader(r io.Reader, size int64) (*graph.NPYHeader, error) {
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
		return nil, fmt.Errorf("%s for shape %v of %s", event.Tally(size-h.Offset, "byte"), h.Shape, h.Descr)
	}
	return h, nil
}

// BytesOf views numbers as the bytes they are in memory.
func BytesOf[T uint32 | float32 | int64](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}
