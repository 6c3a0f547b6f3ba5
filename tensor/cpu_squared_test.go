package tensor

import (
	"math/rand/v2"
	"testing"
)

func TestSquaredError(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		r := rand.New(rand.NewPCG(13, 14))
		for n, e := range elementCases() {
			x, hx := e.random(c, e.in, r)
			c.Download(hx, x)
			y, hy := e.random(c, F32, r)
			c.Download(hy, y)
			rows := someRows(c, e.rows, n%4, r)
			const scale = 0.5
			want, wantLoss := make([]float64, len(hx)), 0.0
			for _, i := range rows.v {
				for k := int(i) * e.cols; k < (int(i)+1)*e.cols; k++ {
					wantLoss += scale * (hx[k] - hy[k]) * (hx[k] - hy[k])
					want[k] = 2 * scale * (hx[k] - hy[k])
				}
			}
			all = append(all, e.loss(t, c, x, n%8 < 4, wantLoss, want, func(dx Matrix) float64 { return c.SquaredError(dx, x, y, rows, scale) })...)
		}
		return all
	})
}

func TestCountMarks(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		r := rand.New(rand.NewPCG(15, 16))
		for n, e := range elementCases() {
			x, hx := e.random(c, e.in, r)
			c.Download(hx, x)
			y, hy := e.random(c, BF16, r)
			for k := range hy {
				hy[k] = float64(r.IntN(2))
			}
			c.Upload(y, hy)
			rows := someRows(c, e.rows, n%4, r)
			var want [3]int
			for _, i := range rows.v {
				for k := int(i) * e.cols; k < (int(i)+1)*e.cols; k++ {
					if hx[k] > 0 {
						want[0]++
					}
					if hy[k] == 1 {
						want[1]++
					}
					if hx[k] > 0 && hy[k] == 1 {
						want[2]++
					}
				}
			}
			predicted, known, both := c.CountMarks(x, y, rows)
			if got := [3]int{predicted, known, both}; got != want {
				t.Fatalf("%v: %v, want %v", e, got, want)
			}
		}
		return nil
	})
}
