package simd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"starling/tensor/bfloat"
)

// attendCase is a layer over a few rows of a matrix. Those that are far or farther are the
// same, but of so large a matrix that
// they are asked for, or, of float32, taken to be in no cache.
type attendCase struct {
	heads, width       int
	bf16               bool
	near, far, farther Strided
	score              []float32
	ptr                []int64
	index              []uint32
}

const attendRows = 9

func eachAttendCase(t *testing.T, body func(t *testing.T, level Level, c attendCase)) {
	r := rand.New(rand.NewPCG(5, 6))
	room := &attendWorkspace{aligned[float32](5 << 18), aligned[uint16](5 << 19)}
	for _, shape := range [][2]int{
		{1, 16}, {2, 16}, {4, 16}, {8, 16}, {16, 16}, {1, 32}, {2, 32}, {4, 32}, {8, 32}, {16, 32}, {1, 48}, {2,
			48}, {4, 48}, {1, 64}, {2, 64},
		{4, 64}, {8, 64}, {1, 96}, {2, 96}, {1, 128}, {2, 128}, {4, 128}, {1, 160}, {1, 208}, {1, 256}, {3, 32}, {6,
			16}, {8, 8}, {4, 10}, {1, 40}, {1, 300},
		{2, 40}, {8, 24},
	} {
		for _, bf16 := range []bool{false, true} {
			c := newAttendCase(r, room, shape[0], shape[1], bf16)
			for level := Generic; level <= Supported(); level++ {
				t.Run(fmt.Sprintf("%v/%dx%d/bf16=%v", level, c.heads, c.width, c.bf16),
					func(t *testing.T) { body(t, level, c) })
			}
		}
	}
}

func newAttendCase(r *rand.Rand, room *attendWorkspace, heads, width int, bf16 bool) attendCase {
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
	c.near = c.like(attendRows)
	for i := range attendRows * cols {
		if x := float32(r.NormFloat64()); bf16 {
			c.near.B16[i] = bfloat.Round(x)
		} else {
			c.near.F32[i] = x
		}
	}
	c.far, c.farther = c.within(room, 1<<20), c.within(room, 4<<20)
	return c
}

// like is an empty matrix of this number of rows, of the type of the case.
func (c *attendCase) like(rows int) Strided {
	cols := c.heads * c.width
	if c.bf16 {
		return Strided{B16: aligned[uint16](rows * cols), Stride: cols}
	}
	return Strided{F32: aligned[float32](rows * cols), Stride: cols}
}

// within is the case's rows as the first of a matrix of about this number of bytes, or a few more.
func (c *attendCase) within(b *attendWorkspace, bytes int) Strided {
	cols := c.heads * c.width
	if c.bf16 {
		copy(b.b16, c.near.B16)
		return Strided{B16: b.b16[:(bytes/2/cols+1)*cols], Stride: cols}
	}
	copy(b.f32, c.near.F32)
	return Strided{F32: b.f32[:(bytes/4/cols+1)*cols], Stride: cols}
}

// attendWorkspace is where cases have their large matrices, one after the other.
type attendWorkspace struct {
	f32 []float32
	b16 []uint16
}

func (c *attendCase) scores(n int) Strided {
	return Strided{F32: make([]float32, attendRows*n*c.heads), Stride: n * c.heads}
}

func (s Strided) equal(o Strided) bool {
	return slices.Equal(s.F32, o.F32) && slices.Equal(s.B16, o.B16)
}

// Rows that are prefetched, and results that go by non-temporal stores, are the same as those that are not.
func TestAttendAsksAndStreams(t *testing.T) {
	eachAttendCase(t, func(t *testing.T, level Level, c attendCase) {
		run := func(z Strided, stream bool) (dst, top, inv Strided) {
			dst, top, inv = c.like(attendRows), c.scores(1), c.scores(1)
			score := Strided{F32: c.score, Stride: c.heads}
			Attend(level, &Attention{
				Dst: dst, Z: z, Rows: attendRows, Heads: c.heads, Width: c.width, Ptr: c.ptr, Index: c.index, Left: score, Right: score,
				Max: top, Inv: inv, Slope: 0.2, Stream: stream, Work: make([]float32,
					AttentionWork(40, c.heads, c.heads*c.width)),
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

// The same of the backward pass. Its rows of many lines have a loop of their own where they are in no cache.
func TestAttendGradAsksAndStreams(t *testing.T) {
	eachAttendCase(t, func(t *testing.T, level Level, c attendCase) {
		packed := make([]float32, attendRows*packRow(c.heads))
		for i := range packed {
			packed[i] = float32(i%5) / 5
		}
		run := func(ddst Strided, stream bool) (dz, dleft, sums Strided) {
			dz, dleft, sums = c.like(attendRows), c.scores(1), c.scores(1)
			AttendGrad(level, &AttentionGrad{
				DZ: dz, Z: c.near, DDst: ddst, Rows: attendRows, Heads: c.heads, Width: c.width, Ptr: c.ptr, Index: c.index, Perm: c.index,
				Left: Strided{F32: c.score, Stride: c.heads}, DLeft: dleft, Packed: packed, Sums: sums.F32, EdgeHeads: c.heads,
				Slope: 0.2, Stream: stream, Work: make([]float32, AttentionWork(40, c.heads, c.heads*c.width)),
			})
			return dz, dleft, sums
		}
		dz, dleft, sums := run(c.near, false)
		for i, ddst := range []Strided{c.near, c.far, c.farther} {
			for _, stream := range []bool{false, true} {
				if d, l, s := run(ddst, stream); !d.equal(dz) || !l.equal(dleft) || !s.equal(sums) {
					t.Errorf("distance %d, stream %v: results differ", i, stream)
				}
			}
		}
	})
}

// Loops over wide rows are entered by how many vectors a head has: each number of them, and
// widths that do not fill the last.
func TestAttendEveryWidth(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	room := &attendWorkspace{aligned[float32](5 << 18), aligned[uint16](5 << 19)}
	for heads := 1; heads <= MaxHeads; heads *= 2 {
		for width := 11; heads*width <= panelCols; width += 16 {
			for _, bf16 := range []bool{false, true} {
				c := newAttendCase(r, room, heads, width, bf16)
				want := c.everything(Generic)
				for level := AVX2; level <= Supported(); level++ {
					for i, got := range c.everything(level) {
						if at := got.differs(want[i]); at >= 0 {
							t.Errorf("%v, %d heads of %d, bf16 %v: number %d of result %d differs", level, heads, width,
								bf16, at, i)
						}
					}
				}
			}
		}
	}
}

// everything is the results of both passes and of HeadDot's. The gradient of rows is made once
// more as float32, as parts of it are.
func (c *attendCase) everything(level Level) []Strided {
	cols := c.heads * c.width
	dst, dz := c.like(attendRows), c.like(attendRows)
	top, inv, dleft, sums, score := c.scores(1), c.scores(1), c.scores(1), c.scores(1), c.scores(1)
	wide := Strided{F32: make([]float32, attendRows*cols), Stride: cols}
	own := Strided{F32: c.score, Stride: c.heads}
	work := make([]float32, AttentionWork(40, c.heads, cols))
	Attend(level, &Attention{
		Dst: dst, Z: c.near, Rows: attendRows, Heads: c.heads, Width: c.width, Ptr: c.ptr, Index: c.index,
		Left: own, Right: own, Max: top, Inv: inv, Slope: 0.2, Work: work,
	})
	packed := make([]float32, attendRows*packRow(c.heads))
	PackAttention(level, &AttentionPack{
		Packed: packed, Rows: attendRows, Heads: c.heads, Width: c.width, Right: own, Max: top, Inv: inv, Dst: c.near, DDst: c.near, Work: work,
	})
	for _, to := range []Strided{dz, wide} {
		AttendGrad(level, &AttentionGrad{
			DZ: to, Z: c.near, DDst: c.near, Rows: attendRows, Heads: c.heads, Width: c.width, Ptr: c.ptr, Index: c.index, Perm: c.index,
			Left: own, DLeft: dleft, Packed: packed, Sums: sums.F32, EdgeHeads: c.heads, Slope: 0.2, Work: work,
		})
	}
	a := make([]float32, cols)
	for i := range a {
		a[i] = float32(i%9) / 9
	}
	da := Strided{F32: make([]float32, cols), Stride: cols}
	h := HeadDots{Score: score, Z: c.near, A: a, Rows: attendRows, Heads: c.heads, Width: c.width, DA: da.F32}
	HeadDot(level, &h)
	h.DZ = dz
	HeadDotGrad(level, &h)
	return []Strided{dst, top, inv, {F32: packed}, dz, wide, dleft, sums, score, da}
}

// differs is the first number that is not the other's but for rounding, or -1.
func (s Strided) differs(o Strided) int {
	for i, x := range s.F32 {
		if d := math.Abs(float64(x - o.F32[i])); !(d <= 1e-4*(1+math.Abs(float64(x)))) {
			return i
		}
	}
	for i, x := range s.B16 {
		x, y := float64(bfloat.Widen(x)), float64(bfloat.Widen(o.B16[i]))
		if d := math.Abs(x - y); !(d <= 1./64*(1+math.Abs(x))) {
			return i
		}
	}
	return -1
}
