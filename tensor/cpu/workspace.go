package cpu

import "starling/tensor/cpu/simd"

// Workspaces of different cores are this many bytes apart: processors fetch lines beyond those they
// use, up to the end of a page,
// and side by side cores took them from each other, up to a quarter of the time.
const coreGap = 4 << 10

// rooms is n numbers for each core, a row each.
func (c *Device) perThread(t DType, n int) Matrix { return c.apart(t, c.threads, n) }

// apart is scratch rows that different cores write.
func (c *Device) apart(t DType, rows, n int) Matrix {
	return c.Scratch(t, rows, n+coreGap/t.Size()).Columns(0, n)
}

// What kernels take for each core, for those who plan a run's memory before it starts: little
// on two cores, and more than some matrices on sixty.

// crossEntropyCoreWorkspace is how many bytes each core takes for itself in CrossEntropy.
func crossEntropyCoreWorkspace(logits Matrix) int {
	return 4 * softmaxWidth(lossChunk(logits), logits.Cols)
}

// matMulCoreWorkspace is about how many bytes each core takes for itself in a product, beside
// matMulWorkspace: a block of one side or both as the kernel wants it, cut to what the core's
// cache holds, and sums.
func (c *Device) matMulCoreWorkspace(dst, a, b Matrix, op MatMul) int {
	m, n := min(dst.Rows, dst.Cols), max(dst.Rows, dst.Cols)
	narrow := c.gemm >= simd.AMX && a.Type() == BF16
	switch {
	case op.TransA && narrow && b.Type() == BF16:
		g := newTallTall16(a.Rows, m, n)
		left, right, tail := g.workspace16()
		return 2 * (left + right + tail)
	case op.TransA && (c.outer(a, b) || c.outer(b, a)):
		return 0
	case op.TransA && c.splits(a, b, m, n):
		rows := c.parts().deepest * c.parts().bytes()
		return min(rows*up32(m), 512<<10) + rows*min(up32(n), 128)
	case op.TransA:
		g := newTallTall(c.level, a.Rows, n, m)
		return 4 * (g.left.Size(n) + g.right.Size(m))
	case narrow:
		g := newProduct16(dst, a, op)
		return 4*g.sums() + 2*g.rows()
	case c.shortRows(dst, a, b):
		return 4*shortBlock(dst.Cols)*dst.Cols + coreGap
	case c.splits(a, b, a.Cols, dst.Cols):
		return splitRows * (4*up32(dst.Cols) + c.parts().bytes()*min(up32(a.Cols), splitDepth))
	}
	return 4*(112*simd.LeftPitch+rowBlocksWorkspace(dst, 112)) + coreGap
}
