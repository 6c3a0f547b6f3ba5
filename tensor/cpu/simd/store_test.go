package simd

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"starling/tensor/bfloat"
)

// edgeBits are numbers at the edges of rounding: halves, infinities, NaN, denormals, and some at random.
func edgeBits() (all []uint32) {
	r := rand.New(rand.NewPCG(1, 7))
	for range 4096 {
		all = append(all, r.Uint32())
	}
	for _, top := range []uint32{0, 1, 0x7f, 0x80, 0x81, 0x3f80, 0x3f81, 0x7f7f, 0x7f80, 0x7f81, 0x7fc0, 0x7fff} {
		for _, low := range []uint32{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff} {
			all = append(all, top<<16|low, 1<<31|top<<16|low)
		}
	}
	return all
}

// TestRounding: every level rounds as ToBF16 does, but that the processor's own
// instruction takes numbers below the least normal one for zeros.
func TestRounding(t *testing.T) {
	numbers := edgeBits()
	n := len(numbers)
	src := aligned[byte](4 * n)
	copy(unsafe.Slice((*uint32)(unsafe.Pointer(&src[0])), n), numbers)
	for level := Generic; level <= Supported(); level++ {
		for _, cols := range []int{n, 32, 16, 7} { // four vectors at a time, two, one, and some lanes
			dst := aligned[byte](2 * n)
			m := Map{
				Dst:  Block{Data: unsafe.Pointer(&dst[0]), Stride: 2 * cols, BF16: true},
				Src:  Block{Data: unsafe.Pointer(&src[0]), Stride: 4 * cols},
				Rows: n / cols, Cols: cols,
			}
			m.Run(level)
			for i, got := range unsafe.Slice((*uint16)(unsafe.Pointer(&dst[0])), n/cols*cols) {
				want := bfloat.Round(math.Float32frombits(numbers[i]))
				if level >= AMX && numbers[i]&0x7f800000 == 0 {
					want = uint16(numbers[i] >> 16 & 0x8000)
				}
				if got != want {
					t.Fatalf("%v, rows of %d: %#08x becomes %#04x, want %#04x", level, cols, numbers[i], got, want)
				}
			}
		}
	}
}

// TestStoresPastTheCaches: the same numbers arrive.
func TestStoresPastTheCaches(t *testing.T) {
	const rows = 9
	r := rand.New(rand.NewPCG(2, 7))
	for level := Generic; level <= Supported(); level++ {
		for _, bf16 := range []bool{false, true} {
			for _, cols := range []int{32, 64, 96, 200, 256} {
				stride := (cols*4 + 63) &^ 63
				block := func(past bool) Block {
					b := aligned[byte](rows * stride)
					for i := 0; i < len(b); i += 4 { // halves of these are bfloat16 numbers too
						h := uint32(bfloat.Round(float32(r.NormFloat64())))
						*(*uint32)(unsafe.Pointer(&b[i])) = h<<16 | h
					}
					return Block{Data: unsafe.Pointer(&b[0]), Stride: stride, BF16: bf16, NonTemporal: past}
				}
				x, y := block(false), block(false)
				vectors := make([]float32, 8*256)
				for i := range vectors {
					vectors[i] = r.Float32()
				}
				labels := make([]uint32, rows)
				for name, run := range map[string]func(dst Block, room []float32){
					"map": func(dst Block, _ []float32) {
						m := Map{Dst: dst, Src: x, Rows: rows, Cols: cols, Act: ELU, Bias: &vectors[0]}
						m.Run(level)
					},
					"activation's gradient": func(dst Block, room []float32) {
						g := ActGrad{Dx: dst, Dy: x, Y: y, Rows: rows, Cols: cols, Act: ELU, Sums: &room[0]}
						g.Run(level)
					},
					"norm's gradient": func(dst Block, _ []float32) {
						g := NormGrad{Dx: dst, Dy: x, X: y, Rows: rows, Cols: cols, Mean: &vectors[0], A: &vectors[256],
							B: &vectors[512], C: &vectors[768]}
						g.Run(level)
					},
					"layer norm's gradient": func(dst Block, room []float32) {
						g := LayerGrad{Dx: dst, Dy: x, X: y, Rows: rows, Cols: cols, Stat: &vectors[0], StatStride: 8,
							Gamma: &vectors[256], DGamma: &room[0], DBeta: &room[256]}
						g.Run(level)
					},
					"softmax": func(dst Block, room []float32) {
						s := Softmax{X: x, Dst: dst, Rows: rows, Cols: cols, Labels: &labels[0], Sum: &room[0],
							Gap: &room[rows], Exp: &room[2*rows], Scale: 2}
						s.Run(level)
					},
					"binary cross-entropy": func(dst Block, _ []float32) {
						b := BCE{X: x, T: y, Dst: dst, Rows: rows, Cols: cols, Scale: 2}
						b.Run(level)
					},
				} {
					near, past := block(false), block(true)
					run(near, make([]float32, 1024))
					run(past, make([]float32, 1024))
					size := cols * 4
					if bf16 {
						size = cols * 2
					}
					for i := range rows {
						a := unsafe.Slice((*byte)(near.Rows(i).Data), size)
						b := unsafe.Slice((*byte)(past.Rows(i).Data), size)
						if !bytes.Equal(a, b) {
							t.Fatalf("%v, %s, %d columns, bfloat16 %v: row %d differs", level, name, cols, bf16, i)
						}
					}
				}
			}
		}
	}
}
