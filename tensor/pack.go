package tensor

import (
	"encoding/binary"
	"math"
	"math/bits"
	"unsafe"

	"starling/tensor/bfloat"
)

// Packed is a form of rows on the wire.
type Packed uint8

const (
	// Unpacked rows are the bytes of the matrix.
	Unpacked Packed = iota
	// PackBF16: every number is rounded to bfloat16.
	PackBF16
	// PackInt8: a float32 scale s, the largest size of the row over 127 and at least SmallestScale,
	// or 0 of a row of zeros, then every number x as the integer next to x/s.
	PackInt8
	// PackNonZero: one bit per number that says whether it is not zero (-0 and NaN are not),
	// each row in whole words of 32 (BitBytes); then the numbers whose bits are set, row
	// after row. Nothing is rounded.
	PackNonZero
)

func (f Packed) String() string { return [...]string{"none", "bf16", "int8", "non-zero"}[f] }

// BytesOf is what the rows of m take; of PackNonZero, what they may take.
func (f Packed) BytesOf(m Matrix) int {
	switch f {
	case Unpacked:
		return int(m.Bytes())
	case PackNonZero:
		return BitBytes(m.Rows, m.Cols) + int(m.Bytes())
	}
	return m.Rows * f.RowBytes(m.Cols)
}

// RowBytes is what a row of numbers takes. REQUIRES: f is PackBF16 or PackInt8.
func (f Packed) RowBytes(cols int) int {
	if f == PackInt8 {
		return 4 + cols
	}
	return 2 * cols
}

// UnpackRow reads the numbers of a row. REQUIRES: f is PackBF16 or PackInt8.
func (f Packed) UnpackRow(dst []float32, src []byte) {
	if f == PackBF16 {
		for i := range dst {
			dst[i] = bfloat.Widen(binary.LittleEndian.Uint16(src[2*i:]))
		}
		return
	}
	scale := math.Float32frombits(binary.LittleEndian.Uint32(src))
	for i, q := range src[4 : 4+len(dst)] {
		dst[i] = float32(int8(q)) * scale
	}
}

// Packer makes rows smaller for the wire, and keeps account of what that costs. The bytes
// are host memory: Pack returns when they are written, how many there are, and Unpack when
// they may be reused; those of Staging only when they are freed, so that a device reads them
// where they are.
type Packer interface {
	Pack(dst []byte, src Matrix, p Packing) int
	// Unpack: dst = the rows that Pack wrote to src. REQUIRES: src has just these, and, of
	// PackNonZero, no bit is beyond the last column (see CountBits).
	Unpack(dst Matrix, src []byte, p Packing)
}

// Packing says how rows travel.
type Packing struct {
	Form Packed
	// Residual is what earlier rounding took away: it is added to the rows, and becomes what
	// rounding takes from these. Row k goes with row At[k], or with row k where At is none.
	// It is of the device's type, or none: then what is taken away is forgotten. Rows that
	// are not finite arrive as not finite. REQUIRES: Form is PackBF16 or PackInt8.
	Residual Matrix
	At       Index
	// Mask, of PackNonZero, is bits that both sides have: only the numbers whose bits are
	// set travel.
	Mask []byte
}

// SmallestScale is the smallest scale of a row that is not zeros: a smaller float32 has fewer bits, and a reciprocal
// that may not be finite. Rows below 127 of it have fewer steps.
const SmallestScale = 0x1p-126

// BitBytes is what the bits of rows take, each in whole words of 32.
func BitBytes(rows, cols int) int { return 4 * rows * BitWords(cols) }

// BitWords is how many words the bits of a row take.
func BitWords(cols int) int { return (cols + 31) / 32 }

// CountBits is how many bits of rows are set. ok is false where one is beyond the last column.
func CountBits(mask []byte, cols int) (n int, ok bool) {
	words := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(mask))), len(mask)/4)
	if cols%32 != 0 {
		for last := BitWords(cols) - 1; last < len(words); last += BitWords(cols) {
			if words[last]>>(cols%32) != 0 {
				return 0, false
			}
		}
	}
	for _, w := range words {
		n += bits.OnesCount32(w)
	}
	return n, true
}
