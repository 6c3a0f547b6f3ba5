package tensor

import "starling/tensor/simd"

// Rooms of different cores lie so many bytes apart: processors fetch lines beyond those they use, up to the end of a page,
// and side by side cores took them from each other, up to a quarter of the time.
const roomsApart = 4 << 10

// rooms is n numbers for each core, a row each.
func (c *CPU) rooms(t DType, n int) Matrix { return c.apart(t, c.threads, n) }

// apart is scratch rows that different cores write.
func (c *CPU) apart(t DType, rows, n int) Matrix {
	return c.Scratch(t, rows, n+roomsApart/t.Size()).Columns(0, n)
}

// What kernels take for each core, for those who plan a run's memory before it starts: little
// on two cores, and more than some matrices on sixty.

// CrossEntropyCoreRoom is how many bytes each core takes for itself in CrossEntropy.
func CrossEntropyCoreRoom(logits Matrix) int { return 4 * softmaxWidth(lossChunk(logits), logits.Cols) }

// MatMulCoreRoom is about how many bytes each core takes for itself in a product, beside
// MatMulRoom: a block of one side or both as the kernel wants it, cut to what the core's
// cache holds, and sums.
func (c *CPU) MatMulCoreRoom(dst, a, b Matrix, op MatMul) int {
	m, n := min(dst.Rows, dst.Cols), max(dst.Rows, dst.Cols)
	narrow := c.level >= simd.AMX && a.dtype == BF16
	switch {
	case op.TransA && narrow && b.dtype == BF16 && (c.outer16(a, b) || c.outer16(b, a)):
		return 4*simd.OuterRoom + 2*simd.OuterUnit*(m+n) + 2*roomsApart
	case op.TransA && narrow && b.dtype == BF16 && (outerSquare16(a, b) || outerSquare16(b, a)):
		return 4*simd.OuterSquare16Room + 2*simd.OuterUnit*(m+n) + 2*roomsApart
	case op.TransA && narrow && b.dtype == BF16:
		g := newTallTall16(a.Rows, m, n)
		left, right, tail := g.room16()
		return 2 * (left + right + tail)
	case op.TransA && (c.outerThirds(a, b) || c.outerThirds(b, a)):
		return outerThirdsRoom(n)
	case op.TransA && (c.outer(a, b) || c.outer(b, a)):
		return 0
	case op.TransA && (c.outerHalves(a, b) || c.outerHalves(b, a)):
		return 2*2*simd.OuterHalvesPanel + 4*outerHalvesRoom(n)
	case op.TransA && c.splits(a, b, m, n): // in parts, 6 bytes a number
		return min(6*256*up32(m), 512<<10) + 6*256*min(up32(n), 128)
	case op.TransA:
		g := newTallTall(c.level, a.Rows, n, m)
		return 4 * (g.left.Size(n) + g.right.Size(m))
	case narrow && c.short(dst, a, op):
		return 4 * shortRoom
	case narrow:
		g := newProduct16(dst, a, op)
		return 4*g.sums() + 2*g.rows()
	case c.fan(dst, a, b, op):
		return 4*max(fanBlock(dst.Cols)*dst.Cols, simd.FanRoom(dst.Cols)) + roomsApart
	case c.dots(a, b, dst.Cols):
		return 4*rowBlocksRoom(dst, dotsRows(a.Cols)) + roomsApart
	case c.shallow(a, b, dst.Cols): // 4 bytes a number
		return splitRows * 4 * (up32(dst.Cols) + up32(a.Cols))
	case c.splits(a, b, a.Cols, dst.Cols):
		return splitRows * (4*up32(dst.Cols) + 6*min(up32(a.Cols), splitDepth))
	case c.eights(a, b, dst.Cols):
		return 4*rowBlocksRoom(dst, eightsBlock) + roomsApart
	}
	return 4*(112*simd.LeftPitch+rowBlocksRoom(dst, 112)) + roomsApart
}
