package cpu

import (
	"math/rand/v2"
	"slices"
	"testing"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// dropNumbers makes a share of a matrix's numbers zero.
func dropNumbers(m Matrix, r *rand.Rand, share float64) {
	host := numbers(m)
	for i := range host {
		if r.Float64() < share {
			host[i] = 0
		}
	}
	tensor.CopyIn(m, host)
}

// sideWithZeros is the side of a product that lists are made of: a, or b in every other gradient.
func sideWithZeros(i int, op MatMul, a, b Matrix) Matrix {
	if op.TransA && i%2 > 0 {
		return b
	}
	return a
}

// TestMatMulSkipsZeros: products of sides with many zeros, which become lists at every level that has them, are
// those of the dumb loop.
func TestMatMulSkipsZeros(t *testing.T) {
	sizes := []struct{ m, k, n int }{{200, 200, 256}, {333, 70, 129}, {130, 321, 200}}
	for _, level := range levels() {
		if level == simd.Generic {
			continue // it has no lists
		}
		t.Run(level.String(), func(t *testing.T) {
			c := newLevel(2, level)
			defer c.Close()
			r := rand.New(rand.NewPCG(7, uint64(level)))
			for i, s := range sizes {
				for j, op := range []MatMul{{}, {TransB: true}, {TransA: true}, {TransA: true, TransB: true}} {
					for k, types := range [][3]DType{{F32, F32, F32}, {BF16, F32, F32}} {
						op.Add = (i+j+k)%2 > 0
						dst, a, b := randomProduct(c, r, s.m, s.k, s.n, op, types, k > 0)
						dropNumbers(sideWithZeros(i, op, a, b), r, 0.97)
						op.ZerosA, op.ZerosB, op.Epilogue = 0.97, 0.97, Epilogue{}
						if types[0] == F32 { // the tolerance of bfloat16 does not count the bias
							op.Epilogue.Bias = randomView(c, r, F32, 1, s.n, false)
						}
						checkProduct(t, c, dst, a, b, op)
					}
				}
			}
		})
	}
}

// TestZeroSkippingProducts: the same of the products with lists themselves, at all sizes.
func TestZeroSkippingProducts(t *testing.T) {
	for _, level := range levels() {
		if level == simd.Generic {
			continue // it has no packing for lists
		}
		c := newLevel(2, level)
		r := rand.New(rand.NewPCG(8, uint64(level)))
		for i := range 40 {
			m, k, n := 1+r.IntN(300), 1+r.IntN(200), 1+r.IntN(300)
			op := MatMul{TransA: i%3 == 0, TransB: i%3 == 1, Add: i%2 > 0}
			dst, a, b := randomProduct(c, r, m, k, n, op, typeCases[3*(i%2)], i%4 == 0)
			dropNumbers(a, r, r.Float64())
			want, size := dumbMatMul(dst, a, b, op)
			if op.TransA {
				c.tallTallSkipping(dst, a, b, op)
			} else {
				c.tallSmallSkipping(dst, a, b, op)
			}
			checkNumbers(t, c, dst, a, b, op, want, size)
		}
		c.Close()
	}
}

// TestZeroSkippingWhereItIsFaster: sides of which many zeros are expected become lists, others
// do not, nor do those of too few rows or
// columns; AMX leaves them weight gradients, or nothing.
func TestZeroSkippingWhereItIsFaster(t *testing.T) {
	for _, level := range levels() {
		c := newLevel(1, level)
		for _, x := range []struct {
			rows, cols, width int
			zeros             float32
			columns, pays     bool
		}{
			{1000, 256, 256, 0.75, true, level > simd.Generic && level <= simd.AMX},
			{1000, 256, 256, 0.75, false, level == simd.AVX2 || level == simd.AVX512},
			{1000, 256, 256, 0.2, true, false},
			{1000, 256, 256, 0.2, false, false},
			{1000, 256, 256, 0, true, false},
			{63, 256, 256, 0.75, true, false},
			{1000, 31, 256, 0.75, true, false},
			{1000, 256, 16, 0.75, true, false},
		} {
			m := c.New(F32, x.rows, x.cols)
			if got := c.skipTime(m, x.width, x.zeros, x.columns) < skipLimit; got != x.pays {
				t.Errorf("%v: %+v: %v", level, x, got)
			}
		}
		if m := c.New(BF16, 1000, 256); c.skipTime(m, 256, 0.75, true) < skipLimit {
			t.Errorf("%v: bfloat16 became lists", level)
		}
		c.Close()
	}
}

// TestZeroSkippingSameForAnyThreads: products with lists are equal, bit for bit, on any number of threads.
func TestZeroSkippingSameForAnyThreads(t *testing.T) {
	for _, level := range levels() {
		if level == simd.Generic {
			continue // it has no lists
		}
		for _, op := range []MatMul{{ZerosA: 0.8}, {TransA: true, ZerosA: 0.8}} {
			var first []float64
			for threads := 1; threads <= 3; threads++ {
				c := newLevel(threads, level)
				r := rand.New(rand.NewPCG(10, 10))
				m, k := 2500, 160
				if op.TransA {
					m, k = k, m
				}
				dst, a, b := randomProduct(c, r, m, k, 224, op, typeCases[0], false)
				dropNumbers(a, r, 0.8)
				c.MatMul(dst, a, b, op)
				got := numbers(dst)
				c.Close()
				if threads == 1 {
					first = got
				} else if !slices.Equal(got, first) {
					t.Errorf("%v, TransA %v: %d threads differ from one", level, op.TransA, threads)
				}
			}
		}
	}
}
