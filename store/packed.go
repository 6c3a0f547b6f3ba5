package store

import (
	"encoding/binary"
	"math"
	"slices"

	"starling/graph"
)

// Packed is a form of rows of float32 features with fewer bytes. Rows are rounded once and for
// all: they do not change, so there is no error to feed back.
type Packed byte

const (
	Unpacked Packed = iota
	BF16            // every number rounded to bfloat16
	Int8            // a float32 scale s, the largest size of the row over 127, then x/s rounded
)

// PackedOf is the form of a name: none, bf16 or int8.
func PackedOf(name string) Packed {
	return Packed(max(0, slices.Index([]string{"none", "bf16", "int8"}, name)))
}

// RoundTrip packs rows of f and unpacks them again, as an owner and who asked it do, to be timed.
func (p Packed) RoundTrip(f *graph.Features, rows []uint32) {
	width := 4 * f.Cols
	packed, to := make([]byte, len(rows)*p.rowBytes(width)), make([]byte, len(rows)*width)
	p.pack(packed, f, rows)
	places := make([]uint32, len(rows))
	for i := range places {
		places[i] = uint32(i)
	}
	p.unpack(to, width, places, packed)
}

// rowBytes is what a row takes whose numbers take width bytes.
func (p Packed) rowBytes(width int) int {
	switch p {
	case BF16:
		return width / 2
	case Int8:
		return 4 + width/4
	}
	return width
}

func (p Packed) pack(to []byte, f *graph.Features, rows []uint32) {
	at := 0
	for _, v := range rows {
		row := f.F32[int(v)*f.Cols : (int(v)+1)*f.Cols]
		if p == BF16 {
			for _, x := range row {
				binary.LittleEndian.PutUint16(to[at:], graph.ToBF16(x))
				at += 2
			}
			continue
		}
		scale := scaleOf(row)
		binary.LittleEndian.PutUint32(to[at:], math.Float32bits(scale))
		at += 4
		for _, x := range row {
			to[at] = byte(toInt8(x, scale))
			at++
		}
	}
}

// scaleOf is what an integer of a row counts; 0 for a row of zeros.
func scaleOf(row []float32) float32 {
	most := float32(0)
	for _, x := range row {
		most = max(most, float32(math.Abs(float64(x))))
	}
	return most / 127
}

func toInt8(x, scale float32) int8 {
	if scale == 0 {
		return 0
	}
	return int8(math.RoundToEven(float64(x) / float64(scale)))
}

// unpack writes the rows of a response to places of to, whose rows have width bytes.
func (p Packed) unpack(to []byte, width int, places []uint32, body []byte) {
	for k, i := range places {
		row, from := to[int(i)*width:(int(i)+1)*width], body[k*p.rowBytes(width):]
		scale := float32(0)
		if p == Int8 {
			scale, from = math.Float32frombits(binary.LittleEndian.Uint32(from)), from[4:]
		}
		for c := range width / 4 {
			var x float32
			if p == Int8 {
				x = float32(int8(from[c])) * scale
			} else {
				x = math.Float32frombits(uint32(binary.LittleEndian.Uint16(from[2*c:])) << 16)
			}
			binary.LittleEndian.PutUint32(row[4*c:], math.Float32bits(x))
		}
	}
}
