package cpu

import (
	"math"
	"testing"

	"starling/tensor/cpu/simd"
)

// onEachCPU runs body for every instruction set of this processor, with 1, 2 and 3
// threads. What body returns must be the same bits for any number of threads.
func onEachCPU(t *testing.T, body func(t *testing.T, c *Device) []float64) {
	for level := simd.Generic; level <= simd.Supported(); level++ {
		var first []float64
		for threads := 1; threads <= 3; threads++ {
			c := newLevel(threads, level)
			got := body(t, c)
			c.Close()
			if threads == 1 {
				first = got
			}
			for i := range got {
				if math.Float64bits(got[i]) != math.Float64bits(first[i]) {
					t.Fatalf("%v: %d threads give %g in place %d, one gives %g", level, threads, got[i], i, first[i])
				}
			}
			if t.Failed() {
				t.Fatalf("at level %v with %d threads", level, threads)
			}
		}
	}
}

func numbersOf(c *Device, m Matrix) []float64 {
	host := make([]float64, m.Rows*m.Cols)
	c.Download(host, m)
	return host
}

func actOf(a Act, x float64) float64 {
	switch {
	case x >= 0 || a == NoAct:
		return x
	case a == ReLU:
		return 0
	case a == ELU:
		return math.Expm1(x)
	}
	return 0.01 * x
}

func TestELUIsAccurateNearZero(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *Device) []float64 {
		x := []float64{-1e-20, -1e-7, -1e-3, -0.1, -0.34, -0.35, -1, -10, -86, -88, -1000, math.Inf(-1), 0, 3}
		m := c.New(F32, 1, len(x))
		c.Upload(m, x)
		c.Download(x, m)
		c.Activate(m, m, Epilogue{Act: ELU})
		got := numbersOf(c, m)
		for i, v := range x {
			if want := actOf(ELU, v); !(math.Abs(got[i]-want) <= 3e-7*math.Abs(want)) {
				t.Errorf("elu(%g) = %.9g, want %.9g", v, got[i], want)
			}
		}
		return got
	})
}

func TestNaNGoesThroughActivations(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *Device) []float64 {
		for act := NoAct; act <= LeakyReLU; act++ {
			for _, typ := range []DType{F32, BF16} {
				m := c.New(typ, 3, 21)
				setNumber(m, 1, 20, math.NaN())
				c.Activate(m, m, Epilogue{Act: act})
				if !math.IsNaN(numberAt(m, 1, 20)) {
					t.Errorf("%v of a NaN in %v is %g", act, typ, numberAt(m, 1, 20))
				}
			}
		}
		return nil
	})
}

// TestPassChunk: chunks grow to a megabyte where there are enough for many cores, and depend on
// nothing but the matrices.
func TestPassChunk(t *testing.T) {
	for _, x := range []struct{ rows, bytes, want int }{
		{100, 2048, 128},          // a quarter of a megabyte
		{16384, 2048, 128},        // 128 chunks of that
		{16384 + 4096, 2048, 160}, // as many larger ones
		{1 << 20, 2048, 512},      // a megabyte
		{1 << 20, 1 << 21, 4},     // rows of more than that
		{1 << 24, 28, 37440},      // whole lines of short rows
	} {
		if got := passChunk(x.rows, x.bytes); got != x.want {
			t.Errorf("%d rows of %d bytes: chunks of %d rows, want %d", x.rows, x.bytes, got, x.want)
		}
	}
}
