package tensor

import (
	"math"
	"math/rand/v2"
	"testing"
)

const normEps = 1e-5

// normed is (x-mean)/deviation of numbers, with their mean and reciprocal deviation.
func normed(x []float64) (hat []float64, mean, rdev float64) {
	n := float64(len(x))
	for _, v := range x {
		mean += v / n
	}
	variance := 0.0
	for _, v := range x {
		variance += (v - mean) * (v - mean) / n
	}
	rdev = 1 / math.Sqrt(variance+normEps)
	for _, v := range x {
		hat = append(hat, (v-mean)*rdev)
	}
	return hat, mean, rdev
}

// normBack is the gradient before normalising numbers, from the gradient g after it.
func normBack(g, hat []float64, rdev float64) []float64 {
	var m0, m1 float64
	for k := range g {
		m0 += g[k] / float64(len(g))
		m1 += g[k] * hat[k] / float64(len(g))
	}
	dx := make([]float64, len(g))
	for k := range g {
		dx[k] = rdev * (g[k] - m0 - hat[k]*m1)
	}
	return dx
}

func column(x []float64, cols, j int) []float64 {
	var c []float64
	for k := j; k < len(x); k += cols {
		c = append(c, x[k])
	}
	return c
}

func TestBatchNorm(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		r := rand.New(rand.NewPCG(5, 6))
		for n, e := range elementCases() {
			x, hx := e.random(c, e.in, r)
			dy, hdy := e.random(c, e.in, r)
			gamma, g := vectorOf(c, e.cols, r)
			beta, b := vectorOf(c, e.cols, r)
			sums, mv, gs := c.New(F64, 2, e.cols), c.New(F64, 2, e.cols), c.New(F64, 2, e.cols)
			running := c.New(F64, 2, e.cols)
			after := After{Act: ReLU, Dropout: dropsOf(e, r)[n%5]}
			y, dx := e.blank(c, e.out), e.blank(c, e.out)

			c.ColumnSums(sums, x)
			c.Moments(mv, sums, int64(e.rows))
			c.Running(running, mv, int64(e.rows), 0.1)
			c.BatchNorm(y, x, mv, gamma, beta, normEps, after)
			c.BatchNormSums(gs, dy, x, mv, normEps)
			c.BatchNormGrad(dx, dy, x, mv, gs, gamma, int64(e.rows), normEps)
			for _, m := range []Matrix{sums, mv, running, y, gs, dx} {
				all = append(all, numbersOf(c, m)...)
			}
			if e.rows < 2 {
				continue
			}
			wantY, wantDx := make([]float64, len(hx)), make([]float64, len(hx))
			gotDx, moved := numbersOf(c, dx), numbersOf(c, running)
			for j := range e.cols {
				hat, mean, rdev := normed(column(hx, e.cols, j))
				back := normBack(column(hdy, e.cols, j), hat, rdev)
				for i := range hat {
					k := i*e.cols + j
					wantY[k] = max(0, hat[i]*g[j]+b[j]) * after.Dropout.dumbFactor(i, j)
					// The gradient is a difference of numbers as large as this factor.
					size := 1 + math.Abs(g[j])*rdev
					wantDx[k] = g[j] * back[i] / size
					gotDx[k] /= size
				}
				unbiased := (1/(rdev*rdev) - normEps) * float64(e.rows) / float64(e.rows-1)
				alike(t, "running mean", F32, moved[j:], []float64{0.1 * mean})
				alike(t, "running variance", F32, moved[e.cols+j:], []float64{0.1 * unbiased})
			}
			alike(t, e.String()+" batch norm", e.out, numbersOf(c, y), wantY)
			alike(t, e.String()+" gradient", e.out, gotDx, wantDx)
		}
		return all
	})
}

func TestLayerNorm(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		r := rand.New(rand.NewPCG(7, 8))
		for n, e := range elementCases() {
			x, hx := e.random(c, e.in, r)
			dy, hdy := e.random(c, e.out, r)
			gamma, g := vectorOf(c, e.cols, r)
			beta, b := vectorOf(c, e.cols, r)
			dgamma, dg := vectorOf(c, e.cols, r)
			dbeta, db := vectorOf(c, e.cols, r)
			after := After{Act: ELU, Dropout: dropsOf(e, r)[n%5]}
			y, dx, stat := e.blank(c, e.out), e.blank(c, e.out), c.New(F32, e.rows, 3).Columns(1, 3)

			c.LayerNorm(y, stat, x, gamma, beta, normEps, after)
			if n%2 == 0 {
				dx = dy
			}
			c.LayerNormGrad(dx, dgamma, dbeta, dy, x, stat, gamma)
			for _, m := range []Matrix{y, stat, dx, dgamma, dbeta} {
				all = append(all, numbersOf(c, m)...)
			}
			if e.cols < 2 {
				continue
			}
			wantY, wantDx := make([]float64, len(hx)), make([]float64, len(hx))
			for i := range e.rows {
				lo := i * e.cols
				hat, _, rdev := normed(hx[lo : lo+e.cols])
				scaled := make([]float64, e.cols)
				for j := range hat {
					wantY[lo+j] = actOf(ELU, hat[j]*g[j]+b[j]) * after.Dropout.dumbFactor(i, j)
					scaled[j] = hdy[lo+j] * g[j]
					dg[j] += hdy[lo+j] * hat[j]
					db[j] += hdy[lo+j]
				}
				copy(wantDx[lo:], normBack(scaled, hat, rdev))
			}
			alike(t, e.String()+" layer norm", e.out, numbersOf(c, y), wantY)
			alike(t, e.String()+" gradient", e.out, numbersOf(c, dx), wantDx)
			alike(t, e.String()+" gamma's gradient", F32, numbersOf(c, dgamma), dg)
			alike(t, e.String()+" beta's gradient", F32, numbersOf(c, dbeta), db)
		}
		return all
	})
}

// TestLayerNormOfConstantRows: a row of equal numbers is beta, and nothing comes back through it. Where their mean
// is rounded, they deviate by that at most: then xhat is between -1 and 1, and the gradient no larger than
// t²/(1+t²)^1.5/√eps may be.
func TestLayerNormOfConstantRows(t *testing.T) {
	values := []float32{0, 1, 1e5, -3 << 20, -0.1, 3e-20, 100.3, 12345.678, -3.3e7}
	const exact = 4 // the first so many, in as many columns as a power of two
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		for _, cols := range []int{1, 2, 3, 7, 8, 16, 33, 40, 64, 100, 256, 1000} {
			filled := func(rows int, value func(i int) float32) Matrix {
				host := make([]float32, rows*cols)
				for i := range host {
					host[i] = value(i / cols)
				}
				return c.FromHost(rows, cols, host)
			}
			n := 2 * len(values) // so many that short rows are turned, sixteen at a time
			x := filled(n, func(i int) float32 { return values[i%len(values)] })
			gamma, beta := filled(1, func(int) float32 { return 1 }), filled(1, func(int) float32 { return 0.5 })
			y, dx, stat := c.New(F32, n, cols), filled(n, func(int) float32 { return 1 }), c.New(F32, n, 2)
			c.LayerNorm(y, stat, x, gamma, beta, normEps, After{})
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
