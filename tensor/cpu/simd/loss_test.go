package simd

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"starling/tensor/bfloat"
)

// TestSoftmaxRowsAlone: a row gives the same bits by itself as among others, wherever it stands in a
// list, and no more than its numbers are written.
func TestSoftmaxRowsAlone(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 7))
	for level := Generic; level <= Supported(); level++ {
		for _, cols := range []int{1, 2, 7, 8, 9, 16, 17, 32, 40, 47, 64, 65, 100} {
			for kind := range 4 {
				const most = 21
				size := 4 - kind%2*2
				stride := cols*size + kind/2*6*size
				block := func() Block {
					b := aligned[byte](most*stride + 128)
					for i := 0; i < len(b); i += 4 {
						h := uint32(bfloat.Round(float32(r.NormFloat64())))
						*(*uint32)(unsafe.Pointer(&b[i])) = h<<16 | h
					}
					return Block{Data: unsafe.Pointer(&b[64]), Stride: stride, BF16: size == 2}
				}
				whole := func(b Block) []byte { return unsafe.Slice((*byte)(unsafe.Add(b.Data, -64)), most*stride+128) }
				x, labels := block(), make([]uint32, most)
				for i := range labels {
					labels[i] = uint32(r.IntN(cols))
				}
				run := func(dst Block, list []uint32) (sum, gap []float32, correct int) {
					room := make([]float32, 2*len(list)+2*(cols+16))
					s := Softmax{
						X: x, Dst: dst, Rows: len(list), Cols: cols, List: &list[0], Labels: &labels[0],
						Sum: &room[0], Gap: &room[len(list)], Exp: &room[2*len(list)], Scale: 0.5,
					}
					s.Run(level)
					return room[:len(list)], room[len(list) : 2*len(list)], s.Correct
				}
				var list []uint32
				for i := range most {
					if r.IntN(4) > 0 || len(list) == 0 {
						list = append(list, uint32(i))
					}
				}
				all, single, before := block(), block(), block()
				copy(whole(single), whole(all))
				copy(whole(before), whole(all))
				sum, gap, correct := run(all, list)
				for k, i := range list {
					s, g, c := run(single, []uint32{i})
					if s[0] != sum[k] || g[0] != gap[k] {
						t.Fatalf("%v, %d columns, kind %d, row %d of %d: sum %g, gap %g, alone %g, %g", level, cols,
							kind, k, len(list), sum[k], gap[k], s[0], g[0])
					}
					correct -= c
				}
				same := bytes.Equal(whole(all), whole(single))
				for _, i := range list { // what is left of all is what was there
					copy(unsafe.Slice((*byte)(all.Rows(int(i)).Data), cols*size),
						unsafe.Slice((*byte)(before.Rows(int(i)).Data), cols*size))
				}
				if correct != 0 || !same || !bytes.Equal(whole(all), whole(before)) {
					t.Fatalf("%v, %d columns, kind %d: %d more are right together, gradients alike %v", level, cols,
						kind, correct, same)
				}
			}
		}
	}
}

// TestExponentials: those of softmax and BCE, from where they are one to where they are nothing, of short rows and long
// ones; and the caller's small numbers stay what they were.
func TestExponentials(t *testing.T) {
	small := float32(math.SmallestNonzeroFloat32)
	for level := Generic; level <= Supported(); level++ {
		for kind := range 4 {
			cols, size := []int{2, 64}[kind/2], 4-kind%2*2
			off := map[int]float64{4: 3e-7, 2: 1e-4}[size]
			block := func(rows int) Block {
				return Block{Data: unsafe.Pointer(&aligned[byte](rows*cols*size + 64)[0]), Stride: cols * size,
					BF16: size == 2}
			}
			var far []float32 // -x of rows, but for the first number, which is zero
			for x := float32(0); x < 120; x += 1. / 8 {
				far = append(far, bfloat.Widen(bfloat.Round(x)))
			}
			x, dst, room := block(len(far)), block(len(far)), make([]float32, 2*len(far)+2*(cols+16))
			for i, gap := range far {
				for j := 1; j < cols; j++ {
					x.Set(i, j, -gap)
				}
			}
			s := Softmax{X: x, Dst: dst, Rows: len(far), Cols: cols, Scale: 1, Sum: &room[0], Gap: &room[len(far)],
				Exp: &room[2*len(far)]}
			s.Run(level)
			b := BCE{X: x, T: block(len(far)), Dst: block(len(far)), Rows: len(far), Cols: cols, Scale: 1}
			b.Run(level)
			for i, gap := range far {
				e := math.Exp(-float64(gap))
				sum := 1 + float64(cols-1)*e
				if got := float64(room[i]); !(math.Abs(got-sum) <= off*(sum-1)+5e-6*sum) {
					t.Fatalf("%v, %d columns of %d bytes: 1 and e^-%g are %g, want %g", level, cols, size, gap, got,
						sum)
				}
				for _, r := range []struct{ got, want float64 }{
					{float64(dst.At(i, cols-1)), e / sum}, {float64(b.Dst.At(i, cols-1)), e / (1 + e)},
				} {
					if tol := map[int]float64{4: 5e-6, 2: 5e-3}[size]; !(math.Abs(r.got-r.want) <= tol*r.want+2e-38) {
						t.Fatalf("%v, %d columns of %d bytes, e^-%g: %g, want %g", level, cols, size, gap, r.got,
							r.want)
					}
				}
			}
			if small*float32(kind+1) == 0 {
				t.Fatalf("%v: small numbers are zero behind it", level)
			}
		}
	}
}

// TestLogSum: products of sums that would overflow, of any number of rows, and a NaN wherever it is.
func TestLogSum(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 9))
	for level := Generic; level <= Supported(); level++ {
		for _, n := range []int{0, 1, 63, 64, 65, 128, 200, 1000} {
			sum, gap, want := make([]float32, n), make([]float32, n), 0.0
			for i := range sum {
				sum[i], gap[i] = float32(math.Exp(80*r.Float64())), float32(10*r.Float64())
				want += math.Log(float64(sum[i])) + float64(gap[i])
			}
			if got := LogSum(level, sum, gap); !(math.Abs(got-want) <= 1e-12*want) {
				t.Fatalf("%v, %d rows: %.17g, want %.17g", level, n, got, want)
			}
			for i := range sum {
				old := sum[i]
				sum[i] = float32(math.NaN())
				if got := LogSum(level, sum, gap); !math.IsNaN(got) {
					t.Fatalf("%v, %d rows, of which %d has no number: %g", level, n, i, got)
				}
				sum[i] = old
			}
		}
	}
}
