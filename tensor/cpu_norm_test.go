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
			after := After{Act: ReLU, Dropout: dropsOf(e, r)[n%3]}
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
			after := After{Act: ELU, Dropout: dropsOf(e, r)[n%3]}
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
