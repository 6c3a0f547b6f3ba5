package store

import (
	"encoding/binary"
	"math"
	"slices"

	"starling/graph"
	"starling/tensor"
)

// Packed is a form of rows of float32 features with fewer bytes. Rows are rounded once and for
// all: they do not change, so there is no error to feed back.
type Packed byte

const (
	Unpacked Packed = iota
	BF16            // every number rounded to bfloat16
	Int8            // a float32 scale s, as tensor.PackInt8 has it, then x/s rounded
)

// PackedOf is the form of a name: none, bf16 or int8.
func PackedOf(name string) Packed {
	return Packed(max(0, slices.Index([]string{"none", "bf16", "int8"}, name)))
}

// RoundTrip packs rows of f and unpacks them again, as an owner and a worker that asks it do, to be timed.
func (p Packed) RoundTrip(f *graph.Features, rows []uint32) {
	form, from := pullForm{packed: p}, &rowSource{rows: bytesOf(f.F32), width: 4 * f.Cols}
	body := form.encode(make([]byte, 0, len(rows)*form.bytes(from.width)), from, rows)
	if err := form.decode(make([]byte, len(rows)*from.width), from.width, upTo(len(rows)), body); err != nil {
		panic(err)
	}
}

// rowBytes is the packed length of a row of width bytes.
func (p Packed) rowBytes(width int) int {
	switch p {
	case BF16:
		return width / 2
	case Int8:
		return 4 + width/4
	}
	return width
}

// appendRow appends a row, packed.
func (p Packed) appendRow(b, row []byte) []byte {
	switch p {
	case BF16:
		for c := 0; c < len(row); c += 4 {
			b = binary.LittleEndian.AppendUint16(b, graph.ToBF16(float32At(row, c)))
		}
		return b
	case Int8:
		scale := scaleOf(row)
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scale))
		for c := 0; c < len(row); c += 4 {
			b = append(b, byte(toInt8(float32At(row, c), scale)))
		}
		return b
	}
	return append(b, row...)
}

// unpackRow writes what appendRow appended to a row.
func (p Packed) unpackRow(row, from []byte) {
	switch p {
	case BF16:
		for c := range len(row) / 4 {
			binary.LittleEndian.PutUint32(row[4*c:], uint32(binary.LittleEndian.Uint16(from[2*c:]))<<16)
		}
	case Int8:
		scale := float32At(from, 0)
		for c := range len(row) / 4 {
			binary.LittleEndian.PutUint32(row[4*c:], math.Float32bits(float32(int8(from[4+c]))*scale))
		}
	default:
		copy(row, from)
	}
}

// float32At is the number at a byte.
func float32At(b []byte, at int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[at:]))
}

// scaleOf is what an integer of a row counts; 0 for a row of zeros.
func scaleOf(row []byte) float32 {
	most := float32(0)
	for c := 0; c < len(row); c += 4 {
		most = max(most, float32(math.Abs(float64(float32At(row, c)))))
	}
	if most == 0 {
		return 0
	}
	return max(most/127, tensor.SmallestScale)
}

func toInt8(x, scale float32) int8 {
	if scale == 0 {
		return 0
	}
	return int8(math.RoundToEven(float64(x) / float64(scale)))
}
