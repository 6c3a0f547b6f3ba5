package simd

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// attendCase is a layer over a few rows of a matrix. Far rows are the same, but of so large a matrix that they are asked for.
type attendCase struct {
	heads, width int
	bf16         bool
	near, far    Strided
	score        []float32
	ptr          []int64
	index        []uint32
}

const attendRows = 9

func eachAttendCase(t *testing.T, body func(t *testing.T, level Level, c attendCase)) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, shape := range [][2]int{
		{1, 16}, {2, 16}, {4, 16}, {8, 16}, {16, 16}, {1, 32}, {2, 32}, {4, 32}, {8, 32}, {16, 32}, {1, 48}, {2, 48}, {4, 48}, {1, 64}, {2, 64},
		{4, 64}, {8, 64}, {1, 96}, {2, 96}, {1, 128}, {2, 128}, {4, 128}, {1, 160}, {1, 208}, {1, 256}, {3, 32}, {6, 16}, {8, 8}, {4, 10}, {1, 40}, {1, 300},
		{2, 40}, {8, 24},
	} {
		for _, bf16 := range []bool{false, true} {
			c := newAttendCase(r, shape[0], shape[1], bf16)
			for level := Generic; level <= Supported(); level++ {
				t.Run(fmt.Sprintf("%v/%dx%d/bf16=%v", level, c.heads, c.width, c.bf16), func(t *testing.T) { body(t, level, c) })
			}
		}
	}
}

func newAttendCase(r *rand.Rand, heads, width int, bf16 bool) attendCase {
	cols := heads * width
	c := attendCase{heads: heads, width: width, bf16: bf16, ptr: []int64{0}, score: make([]float32, attendRows*heads)}
	for i := range c.score {
		c.score[i] = float32(r.NormFloat64())
	}
	for _, n := range []int{3, 0, 40, 1, 17, 5, 0, 16, 2} {
		for range n {
			c.index = append(c.index, r.Uint32N(attendRows))
		}
		c.ptr = append(c.ptr, int64(len(c.index)))
	}
	large := 1 << 20 / cols * cols // numbers
	if c.far = (Strided{F32: aligned[float32](large), Stride: cols}); bf16 {
		c.far = Strided{B16: aligned[uint16](large), Stride: cols}
	}
	c.near = c.far
	for i := range attendRows * cols {
		if x := float32(r.NormFloat64()); bf16 {
			c.far.B16[i] = ToBF16(x)
		} else {
			c.far.F32[i] = x
		}
	}
	if bf16 {
		c.near.B16 = c.far.B16[:attendRows*cols]
	} else {
		c.near.F32 = c.far.F32[:attendRows*cols]
	}
	return c
}

// like is an empty matrix of so many rows, of the type of the case.
func (c *attendCase) like(rows int) Strided {
	cols := c.heads * c.width
	if c.bf16 {
		return Strided{B16: aligned[uint16](rows * cols), Stride: cols}
	}
	return Strided{F32: aligned[float32](rows * cols), Stride: cols}
}

func (c *attendCase) scores(n int) Strided {
	return Strided{F32: make([]float32, attendRows*n*c.heads), Stride: n * c.heads}
}

func (s Strided) equal(o Strided) bool {
	return slices.Equal(s.F32, o.F32) && slices.Equal(s.B16, o.B16)
}

// Rows that are asked for, and results that go past the caches, are the same as those that are not.
func TestAttendAsksAndStreams(t *testing.T) {
	eachAttendCase(t, func(t *testing.T, level Level, c attendCase) {
		run := func(z Strided, stream bool) (dst, top, inv Strided) {
			dst, top, inv = c.like(attendRows), c.scores(1), c.scores(1)
			score := Strided{F32: c.score, Stride: c.heads}
			Attend(level, &Attention{
				Dst: dst, Z: z, Rows: attendRows, Heads: c.heads, Width: c.width, Ptr: c.ptr, Index: c.index, Left: score, Right: score,
				Max: top, Inv: inv, Slope: 0.2, Stream: stream, Work: make([]float32, AttentionWork(40, c.heads, c.heads*c.width)),
			})
			return dst, top, inv
		}
		dst, top, inv := run(c.near, false)
		for _, far := range []bool{false, true} {
			for _, stream := range []bool{false, true} {
				z := c.near
				if far {
					z = c.far
				}
				if d, m, i := run(z, stream); !d.equal(dst) || !m.equal(top) || !i.equal(inv) {
					t.Errorf("far %v, stream %v: results differ", far, stream)
				}
			}
		}
	})
}
