package cpu

import (
	"fmt"
	"math"

	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// optimChunk is how many parameters make a chunk.
const optimChunk = 32 << 10

// parameters are the numbers of float32 matrices of one shape without gaps.
func parameters(op string, p Matrix, others ...Matrix) int {
	tensor.NeedSameShape(op, p, others...)
	n := p.Rows * p.Cols
	for _, m := range append(others, p) {
		if !m.IsZero() {
			vectorOf(m, op, "a parameter, gradient or state", n)
		}
	}
	return n
}

// Adam makes one step of Adam or AdamW.
func (c *Device) Adam(p, g, m, v Matrix, op Adam) {
	n := parameters("Adam", p, g, m, v)
	if op.Step < 1 {
		panic(fmt.Sprintf("tensor: Adam: step %d, counted from 1", op.Step))
	}
	t := float64(op.Step)
	all := simd.Adam{
		OneBeta1: float32(1 - op.Beta1), Beta2: float32(op.Beta2), OneBeta2: float32(1 - op.Beta2),
		L2: float32(op.Decay), Shrink: 1, Eps: float32(op.Eps),
		Rate: float32(op.LR / (1 - math.Pow(op.Beta1, t))),
		Root: float32(1 / math.Sqrt(1-math.Pow(op.Beta2, t))),
	}
	if op.Decoupled {
		all.L2, all.Shrink = 0, float32(1-op.LR*op.Decay)
	}
	c.forRows(n, optimChunk, func(lo, hi, _, _ int) {
		a := all
		a.P, a.G, a.M, a.V, a.N = &f32Of(p)[lo], &f32Of(g)[lo], &f32Of(m)[lo], &f32Of(v)[lo], hi-lo
		a.Run(c.level)
	})
}

// SGD makes one step of gradient descent. Without momentum buf may be none.
func (c *Device) SGD(p, g, buf Matrix, op SGD) {
	n := parameters("SGD", p, g, buf)
	if op.Momentum != 0 && buf.IsZero() {
		panic("tensor: SGD with momentum needs a buffer")
	}
	all := simd.SGD{
		Rate: float32(op.LR), Momentum: float32(op.Momentum), Decay: float32(op.Decay),
		Nesterov: op.Nesterov, Start: op.Step <= 1,
	}
	c.forRows(n, optimChunk, func(lo, hi, _, _ int) {
		s := all
		s.P, s.G, s.N = &f32Of(p)[lo], &f32Of(g)[lo], hi-lo
		if op.Momentum != 0 {
			s.Buf = &f32Of(buf)[lo]
		}
		s.Run(c.level)
	})
}
