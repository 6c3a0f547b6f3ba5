package cpu

import (
	"math"
	"testing"
)

const normEps = 1e-5

// TestLayerNormOfConstantRows: a row of equal numbers is beta, and nothing comes back through it. Where their mean
// is rounded, they deviate by that at most: then xhat is between -1 and 1, and the gradient no larger than
// t²/(1+t²)^1.5/√eps may be.
func TestLayerNormOfConstantRows(t *testing.T) {
	values := []float32{0, 1, 1e5, -3 << 20, -0.1, 3e-20, 100.3, 12345.678, -3.3e7}
	const exact = 4 // this number of the first values is exact, if the number of columns is a power of two
	onEachCPU(t, func(t *testing.T, c *Device) (all []float64) {
		for _, cols := range []int{1, 2, 3, 7, 8, 16, 33, 40, 64, 100, 256, 1000} {
			filled := func(rows int, value func(i int) float32) Matrix {
				host := make([]float32, rows*cols)
				for i := range host {
					host[i] = value(i / cols)
				}
				return c.FromHost(rows, cols, host)
			}
			n := 2 * len(values) // so many that short rows are transposed, sixteen at a time
			x := filled(n, func(i int) float32 { return values[i%len(values)] })
			gamma, beta := filled(1, func(int) float32 { return 1 }), filled(1, func(int) float32 { return 0.5 })
			y, dx, stat := c.New(F32, n, cols), filled(n, func(int) float32 { return 1 }), c.New(F32, n, 2)
			c.LayerNorm(y, stat, x, gamma, beta, normEps, Epilogue{})
			c.LayerNormGrad(dx, c.New(F32, 1, cols), c.New(F32, 1, cols), dx, x, stat, gamma)
			ys, dxs := numbersOf(c, y), numbersOf(c, dx)
			for i := range ys {
				off, most := 1.0001, 0.386/math.Sqrt(normEps)
				row := i / cols % len(values)
				if row < exact && cols&(cols-1) == 0 {
					off, most = 0, 0
				}
				if !(math.Abs(ys[i]-0.5) <= off) || !(math.Abs(dxs[i]) <= most) {
					t.Errorf("%d columns of %g: %g, want 0.5; gradient %g, want 0", cols, values[row], ys[i], dxs[i])
				}
			}
			all = append(all, append(ys, dxs...)...)
		}
		return all
	})
}
