package tensor

// Packed is a form of rows with fewer bytes, for the wire.
type Packed uint8

const (
	// Unpacked rows are the bytes of the matrix.
	Unpacked Packed = iota
	// PackBF16: every number is rounded to bfloat16.
	PackBF16
	// PackInt8: a float32 scale s, the largest size of the row over 127, then every
	// number x as the integer next to x/s.
	PackInt8
)

func (f Packed) String() string { return [...]string{"none", "bf16", "int8"}[f] }

// BytesOf is what the rows of m take.
func (f Packed) BytesOf(m Matrix) int {
	if f == Unpacked {
		return int(m.Bytes())
	}
	return m.Rows * f.RowBytes(m.Cols)
}

// RowBytes is what a row of numbers takes. REQUIRES: f is not Unpacked.
func (f Packed) RowBytes(cols int) int {
	if f == PackInt8 {
		return 4 + cols
	}
	return 2 * cols
}

// tiny is the largest number of a row that int8 sends as zeros: below it the
// reciprocal of the scale may not be finite. Error feedback keeps such rows anyway.
const tiny = 1e-30

// Packing makes rows smaller for the wire, and keeps account of what that costs.
type Packing interface {
	// Pack: dst = src + rest, rounded to f; rest = what rounding took away. Row k of
	// src goes with row at[k] of rest, or with row k where at is none. rest is of the
	// device's type, or none: then what is taken away is forgotten. Rows that are not
	// finite arrive as not finite. Unpacked rows are copied as they are, and rest is none.
	Pack(dst []byte, f Packed, src, rest Matrix, at Index)
	// Unpack: dst = the rows that Pack wrote to src.
	Unpack(dst Matrix, f Packed, src []byte)
}

func needPacked(op string, bytes []byte, f Packed, m Matrix) {
	need(len(bytes) == f.BytesOf(m), "%s: %d bytes of %v for %v", op, len(bytes), f, m)
}

func needRest(f Packed, src, rest Matrix, at Index) {
	need(rest.IsZero() || f != Unpacked, "Pack: a rest of rows as they are")
	need(rest.IsZero() || rest.Cols == src.Cols, "Pack: rest is %v beside %v", rest, src)
	need(rest.IsZero() || !at.IsZero() || rest.Rows == src.Rows, "Pack: rest is %v beside %v", rest, src)
	need(at.IsZero() || at.Len() == src.Rows, "Pack: %d places for %v", at.Len(), src)
}

// place is the row of rest that goes with row k.
func (x Index) place(k int) int {
	if x.v == nil {
		return k
	}
	return int(x.v[k])
}
