package tensor

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// takenApart is NotZero and Compress, number by number.
func takenApart(m Matrix, kept func(i, c int) bool) (bits, numbers []byte) {
	for i := range m.Rows {
		row := make([]uint32, bitWords(m.Cols))
		for c := range m.Cols {
			if !kept(i, c) {
				continue
			}
			row[c/32] |= 1 << (c % 32)
			switch m.dtype {
			case F32:
				numbers = binary.LittleEndian.AppendUint32(numbers, math.Float32bits(m.row(i)[c]))
			case BF16:
				numbers = binary.LittleEndian.AppendUint16(numbers, m.row16(i)[c])
			case F64:
				numbers = binary.LittleEndian.AppendUint64(numbers, math.Float64bits(m.row64(i)[c]))
			}
		}
		for _, w := range row {
			bits = binary.LittleEndian.AppendUint32(bits, w)
		}
	}
	return bits, numbers
}

// holed is rows of which about a share is zero, and a few are -0 or no number.
func holed(r *rand.Rand, d Device, t DType, rows, cols int, share float64) Matrix {
	wide := d.New(t, rows, cols+3)
	v := make([]float64, rows*(cols+3))
	for i := range v {
		switch x := r.Float64(); {
		case x < share:
		case x > 0.99:
			v[i] = []float64{math.Copysign(0, -1), math.NaN(), math.Inf(1), 1e-40}[r.IntN(4)]
		default:
			v[i] = r.NormFloat64()
		}
	}
	d.Upload(wide, v)
	return wide.Columns(1, cols+1) // rows with gaps between them
}

// TestZerosLeftOut: rows come apart into the bits and numbers that a plain loop finds, and
// go together again to the bit, whatever was there before. Bits may be of other rows.
func TestZerosLeftOut(t *testing.T) {
	test := func(t *testing.T, d Device) {
		r := rand.New(rand.NewPCG(1, 3))
		for _, kind := range []DType{F32, BF16} {
			kind = d.RowType(kind)
			for _, shape := range [][2]int{{0, 5}, {1, 1}, {5, 31}, {4, 32}, {9, 33}, {40, 64}, {50, 100}, {600, 256}} {
				rows, cols := shape[0], shape[1]
				for _, share := range []float64{0, 0.75, 1} {
					name := fmt.Sprintf("%dx%d %v, %g zero", rows, cols, kind, share)
					src := holed(r, d, kind, rows, cols, share)
					every := func(int, int) bool { return true }
					all, plain := takenApart(src, every)
					size := kind.Size()
					wantBits, wantNumbers := takenApart(src, func(i, c int) bool {
						at := (i*cols + c) * size
						return !bytes.Equal(plain[at:at+size], make([]byte, size))
					})
					bits, numbers := bytes.Clone(all), make([]byte, rows*cols*size)
					d.NotZero(bits, src)
					n := d.Compress(numbers, src, bits)
					if !bytes.Equal(bits, wantBits) || !bytes.Equal(numbers[:n], wantNumbers) {
						t.Fatalf("%s: comes apart differently", name)
					}
					if set, ok := CountBits(bits, cols); !ok || set*size != n {
						t.Fatalf("%s: %d bits (%v) for %d bytes", name, set, ok, n)
					}
					got := holed(r, d, kind, rows, cols, 0)
					d.Expand(got, numbers[:n], bits)
					if _, back := takenApart(got, every); !bytes.Equal(back, plain) {
						t.Fatalf("%s: goes together differently", name)
					}
					other := holed(r, d, kind, rows, cols, 0.5)
					_, want := takenApart(other, func(i, c int) bool {
						return wantBits[BitBytes(i, cols)+c/8]>>(c%8)&1 == 1
					})
					if n := d.Compress(numbers, other, bits); !bytes.Equal(numbers[:n], want) {
						t.Fatalf("%s: other rows by these bits differ", name)
					}
				}
			}
		}
	}
	t.Run("reference", func(t *testing.T) { test(t, NewRef()) })
	everyLevel(t, func(t *testing.T, d *CPU) { test(t, d) })
}

// TestCountBits: a bit beyond the last column is noticed, in any row.
func TestCountBits(t *testing.T) {
	for _, cols := range []int{1, 31, 32, 33, 64, 100} {
		bits := make([]byte, BitBytes(3, cols))
		for i := range bits {
			for bit := range 8 {
				clear(bits)
				bits[i] = 1 << bit
				column := i%BitBytes(1, cols)*8 + bit
				if n, ok := CountBits(bits, cols); ok != (column < cols) || ok && n != 1 {
					t.Errorf("%d columns, bit %d of row %d: %d, %v", cols, column, i/BitBytes(1, cols), n, ok)
				}
			}
		}
	}
}

func BenchmarkZeros(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 3))
	for _, kind := range []DType{F32, BF16} {
		d := NewCPU(1)
		src := holed(r, d, kind, 20000, 256, 0.75)
		bits, numbers := make([]byte, BitBytes(src.Rows, src.Cols)), make([]byte, src.Bytes())
		d.NotZero(bits, src)
		n := d.Compress(numbers, src, bits)
		copied := d.New(kind, src.Rows, src.Cols)
		for name, do := range map[string]func(){
			"copy":     func() { d.Copy(copied, src) },
			"notzero":  func() { d.NotZero(bits, src) },
			"compress": func() { d.Compress(numbers, src, bits) },
			"expand":   func() { d.Expand(src, numbers[:n], bits) },
		} {
			b.Run(fmt.Sprintf("type=%v/op=%s", kind, name), func(b *testing.B) {
				b.SetBytes(src.Bytes())
				for range b.N {
					do()
				}
			})
		}
		d.Close()
	}
}
