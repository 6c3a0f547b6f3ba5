package tensor

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func TestAdam(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		r := rand.New(rand.NewPCG(13, 14))
		for _, n := range []int{0, 1, 7, 16, 33, 70000} {
			for _, decoupled := range []bool{false, true} {
				op := Adam{LR: 0.01, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 0.05, Decoupled: decoupled}
				p, hp := vectorOf(c, n, r)
				m, v := c.New(F32, 1, n), c.New(F32, 1, n)
				hm, hv := make([]float64, n), make([]float64, n)
				for op.Step = 1; op.Step <= 3; op.Step++ {
					g, hg := vectorOf(c, n, r)
					c.Adam(p, g, m, v, op)
					for i := range hp {
						x := hg[i]
						if decoupled {
							hp[i] -= op.LR * op.Decay * hp[i]
						} else {
							x += op.Decay * hp[i]
						}
						hm[i] = op.Beta1*hm[i] + (1-op.Beta1)*x
						hv[i] = op.Beta2*hv[i] + (1-op.Beta2)*x*x
						mhat := hm[i] / (1 - math.Pow(op.Beta1, float64(op.Step)))
						vhat := hv[i] / (1 - math.Pow(op.Beta2, float64(op.Step)))
						hp[i] -= op.LR * mhat / (math.Sqrt(vhat) + op.Eps)
					}
				}
				name := fmt.Sprintf("%d parameters, decoupled %v", n, decoupled)
				alike(t, name, F32, numbersOf(c, p), hp)
				alike(t, name+", m", F32, numbersOf(c, m), hm)
				alike(t, name+", v", F32, numbersOf(c, v), hv)
				all = append(all, numbersOf(c, p)...)
			}
		}
		return all
	})
}

func TestSGD(t *testing.T) {
	onEachCPU(t, func(t *testing.T, c *CPU) (all []float64) {
		r := rand.New(rand.NewPCG(15, 16))
		for _, n := range []int{0, 1, 9, 40000} {
			for _, op := range []SGD{{LR: 0.1}, {LR: 0.1, Momentum: 0.9, Decay: 0.01}, {LR: 0.1, Momentum: 0.9, Nesterov: true}} {
				p, hp := vectorOf(c, n, r)
				buf, _ := vectorOf(c, n, r) // whatever is in it is overwritten at step 1
				hb := make([]float64, n)
				for op.Step = 1; op.Step <= 3; op.Step++ {
					g, hg := vectorOf(c, n, r)
					c.SGD(p, g, buf, op)
					for i := range hp {
						x := hg[i] + op.Decay*hp[i]
						if hb[i] = op.Momentum*hb[i] + x; op.Step == 1 {
							hb[i] = x
						}
						if op.Nesterov {
							x += op.Momentum * hb[i]
						} else {
							x = hb[i]
						}
						if op.Momentum == 0 {
							x = hg[i] + op.Decay*hp[i]
						}
						hp[i] -= op.LR * x
					}
				}
				alike(t, fmt.Sprintf("%d parameters, %+v", n, op), F32, numbersOf(c, p), hp)
				all = append(all, numbersOf(c, p)...)
			}
		}
		return all
	})
}
