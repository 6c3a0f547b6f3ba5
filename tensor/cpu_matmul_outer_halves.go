package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Gradients of weights of a last layer of 33 to 48 classes, on a matrix unit that knows half precision (see
// simd.OuterHalves): the narrow side is halved first, the wide one on the way, a slice of rows at a time.

// outerHalves reports whether aᵀ·b goes this way: with less than 128 columns of b, halving a is too much of it.
func (c *CPU) outerHalves(a, b Matrix) bool {
	return c.halves() && a.dtype == F32 && b.dtype == F32 && a.Cols > 32 && a.Cols <= 48 && b.Cols >= 128
}

// outerHalvesScaled is how many slices of rows go by scales of the first one's columns, if these do.
const outerHalvesScaled = 16

// tallTallOuterHalves: dst = after(aᵀ · b).
func (c *CPU) tallTallOuterHalves(dst, a, b Matrix, op MatMul) {
	m, n := dst.Rows, (dst.Cols+15)&^15
	g := newSplitGroups(a.Rows, m, n, simd.OuterHalvesDepth)
	left, room := c.Scratch(BF16, c.threads, 2*simd.OuterHalvesPanel), c.Scratch(F32, c.threads, outerHalvesRoom(n))
	last := c.Scratch(F32, 32, n) // rows of b that are no whole block, and zeros
	sums := c.Scratch(F32, g.groups, n/16*simd.OuterHalvesSums)
	steps := make([]perCore[outerSlices], c.threads)
	c.run(g.groups, func(group, thread int) {
		s, strips := &steps[thread].of, left.row16(thread)
		s.start(room.row(thread), strips, sums.row(group), m)
		lo, hi := g.start(group), g.start(group+1)
		// The group this core takes next, most likely.
		ask := newOuterAsk(a, b, g.depth, lo, hi, g.start(group+c.threads))
		for slice := 0; lo < hi; slice++ {
			end := min(hi, lo+g.depth)
			if end-lo > 32 {
				end = lo + (end-lo)&^31
			}
			partA, partB := a.Slice(lo, end), b.Slice(lo, end)
			simd.HalvePairsAsking(c.level, strips, s.backA, partA.f32, partA.Rows, m, partA.stride, simd.OuterHalvesPanel, ask.rows(a, slice+1))
			s.Blocks = up32(partA.Rows) / 32
			simd.TurnHalves(c.level, strips, s.Blocks)
			simd.TurnHalves16(c.level, strips[simd.OuterHalvesPanel:], s.Blocks)
			s.Ahead, s.AheadApart = ask.across(b, slice, 128*s.Blocks*n/16)
			if partB.Rows < 32 {
				zeroRows(last)
				c.activateSerial(last.Slice(0, partB.Rows).Columns(0, b.Cols), partB, After{})
				partB = last.Columns(0, b.Cols)
			}
			s.multiply(c.level, partB)
			lo = end
		}
	})
	for _, m := range []Matrix{left, room, last} {
		c.Free(m)
	}
	c.addPanels(dst, sums, n, op)
	c.Free(sums)
}

// outerSlices is a core's step, and what it keeps from one slice of a group to the next.
type outerSlices struct {
	simd.OuterHalves
	backA, scale, backB []float32
	spoilt              []uint16
	scaled              int // slices that may yet go by these scales
}

// outerHalvesRoom is how many float32 each core takes: the room of a step, scales of a's columns and of n of b's, and a
// bit each of these.
func outerHalvesRoom(n int) int { return simd.RoomOuterHalves + 64 + 2*n + (n+31)/32 }

// start begins a group, with sums of m rows.
func (s *outerSlices) start(room []float32, strips []uint16, sums []float32, m int) {
	n := len(sums) / simd.OuterHalvesSums * 16
	take := func(k int) []float32 {
		some := room[:k:k]
		room = room[k:]
		return some
	}
	step := take(simd.RoomOuterHalves)
	s.backA, s.scale, s.backB = take(64), take(n), take(n)
	s.spoilt = unsafe.Slice((*uint16)(unsafe.Pointer(&room[0])), n/16)
	clear(step) // rows of sums past m are added up, too
	clear(sums)
	s.A, s.C, s.Room = unsafe.Pointer(&strips[0]), unsafe.Pointer(&sums[0]), unsafe.Pointer(&step[0])
	s.BackA, s.Rows, s.scaled = unsafe.Pointer(&s.backA[0]), m, 0
	simd.StartScales(s.scale, s.backB)
}

// multiply adds a slice of b to the sums, with the scales there are if they may be used again. Where numbers are too large
// for these, it is done again with scales of its own, sixteen columns at a time, and the next slice begins anew: numbers
// after a single large one need not suffer for it.
func (s *outerSlices) multiply(level simd.Level, b Matrix) {
	if s.scaled == 0 {
		simd.ColumnScales(level, s.scale, s.backB, b.f32, b.Rows, b.Cols, b.stride, simd.OuterHeadroom)
		s.scaled = outerHalvesScaled
	}
	s.scaled--
	s.Spoilt = unsafe.Pointer(&s.spoilt[0])
	s.run(level, b, 0)
	s.Spoilt = nil
	sums := s.C
	for panel, lanes := range s.spoilt {
		if lanes != 0 {
			j := 16 * panel
			some := b.Columns(j, min(b.Cols, j+16))
			simd.ColumnScales(level, s.scale[j:], s.backB[j:], some.f32, some.Rows, some.Cols, some.stride, simd.OuterHeadroom)
			s.C = unsafe.Add(sums, 4*panel*simd.OuterHalvesSums)
			s.run(level, some, j)
			s.scaled = 0
		}
	}
	s.C = sums
}

// run adds columns of a slice, from j on.
func (s *outerSlices) run(level simd.Level, b Matrix, j int) {
	s.B, s.BRow, s.Cols = b.base(), 4*b.stride, b.Cols
	s.Scale, s.BackB = unsafe.Pointer(&s.scale[j]), unsafe.Pointer(&s.backB[j])
	s.Run(level)
}

// outerAsk says what is asked for while a slice is multiplied: rows that follow, and after a group's last ones the first
// of another. Of b's that is sixteen places at once, a page apart or more, so windows of one slice or two.
type outerAsk struct {
	lo, hi, then int // rows
	depth        int // rows of a slice
	window       int // slices
}

func newOuterAsk(a, b Matrix, depth, lo, hi, then int) outerAsk {
	x := outerAsk{lo: lo, hi: hi, then: min(then, a.Rows), depth: depth, window: 1}
	if 4*b.stride*depth < outerPlaces<<12 {
		x.window = 2
	}
	return x
}

// outerPlaces is how many places simd.OuterHalves asks at.
const outerPlaces = 16

// rows is where those of a slice of m are.
func (x *outerAsk) rows(m Matrix, slice int) uintptr {
	row := x.lo + slice*x.depth
	if row >= x.hi {
		row = x.then
	}
	return uintptr(m.base()) + uintptr(4*m.stride*row)
}

// across is the first place of those that are asked for with a slice, which asks for so many bytes of each, and how far it
// is to the next.
func (x *outerAsk) across(b Matrix, slice, bytes int) (at uintptr, apart int) {
	part := slice % x.window
	at = x.rows(b, slice-part+x.window)
	return at + uintptr(part*bytes), (4*b.stride*x.depth*x.window/outerPlaces + 63) &^ 63
}
