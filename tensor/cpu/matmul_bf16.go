package cpu

import (
	"unsafe"

	"starling/tensor/cpu/simd"
)

// Products of bfloat16 rows on AMX, four to ten times the rate of
// float32. It takes rows of most widths in place (see simd.Tiles16). Sums are float32
// throughout. A float32 small side, that is weights, is rounded to bfloat16 first.

func up32(n int) int { return (n + 31) &^ 31 }

// tallSmall16: dst = after(a · op(b)) for bfloat16 a, by blocks of rows.
func (c *Device) tallSmall16(dst, a, b Matrix, op MatMul) {
	g := newProduct16(dst, a, op)
	panels := c.packSmall16(b, op.TransB, g.depth, dst.Cols)
	sums, rows := c.Scratch(F32, c.threads, g.sums()), c.Scratch(BF16, c.threads, g.rows())
	bias := c.repeatBias(op.Epilogue.Bias, g)
	tiles, step := make([]perCore[simd.Tiles16], c.threads), simd.RowStep(dst.Cols)
	c.blockRanges(dst.Rows, g.block, max(1, (1<<22)/(2*g.block*g.depth*dst.Cols)), func(lo, hi, thread int) {
		t := &tiles[thread].of
		for ; lo < hi; lo += g.block {
			end := min(hi, lo+g.block)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			whole := in.Rows%step == 0
			bytes := 2 * in.Rows * in.Stride()
			next := uintptr(baseOf(in)) + uintptr(bytes)
			sum := out
			if !whole || dst.Type() != F32 {
				sum = part(sums, thread, 0, out.Rows, g.pitch).Columns(0, out.Cols)
				if op.Add {
					c.activateSerial(g.flatten(sum), g.flatten(out), Epilogue{})
				}
			}
			if !whole || g.depth != a.Cols {
				in = c.padRows(rows, thread, in, g.left)
			}
			t.A, t.B, t.C = baseOf(in), baseOf(panels), baseOf(sum)
			t.ARow, t.CRow, t.Add = 2*in.Stride(), 4*sum.Stride(), flag(op.Add)
			t.Rows, t.Cols, t.Depth = (in.Rows+step-1)/step*step, dst.Cols, g.depth
			t.Ask(next, next+uintptr(bytes), bytes, 0)
			t.Run(c.level)
			if baseOf(sum) != baseOf(out) || !op.Epilogue.Empty() {
				epi := op.Epilogue.Slice(lo, end)
				if g.flat && !bias.IsZero() {
					epi.Bias = bias.Columns(0, out.Rows*out.Cols)
				}
				c.finish(g.flatten(out), g.flatten(sum), epi, g.bytes)
			}
		}
	})
	c.Free(bias)
	c.Free(rows)
	c.Free(sums)
	c.Free(panels)
}

// product16 holds the sizes of one tall · small product of bfloat16.
type product16 struct {
	depth int   // of a row: made even where it is less than a tile's
	left  int   // from one row of a to the next where they are copied
	pitch int   // from one row of sums to the next
	block int   // rows that are computed before what comes after is done to them
	flat  bool  // what comes after sees a block of rows as one: it is the same for all, or a repeated bias
	bytes int64 // of a result that is not read before it is written
}

func newProduct16(dst, a Matrix, op MatMul) product16 {
	g := product16{depth: a.Cols, left: a.Cols, pitch: dst.Cols}
	if !op.Add {
		g.bytes = dst.Bytes()
	}
	switch {
	case g.depth < 32:
		g.depth += g.depth & 1
		g.left = g.depth
	case g.depth%32 > 0 && dst.Cols >= 128: // read often enough to have rows begin with a line
		g.depth = up32(g.depth)
		g.left = g.depth | 32
	}
	// One long row has no last few numbers, and whole lines, which may go by non-temporal stores.
	g.flat = dst.Contiguous() && op.Epilogue.Dropout.P == 0 &&
		(dst.Cols < 64 || dst.Cols%32 > 0 && op.Epilogue.Bias.IsZero())
	if !g.flat { // an odd number of lines: else rows of a tile share a few cache sets
		g.pitch = up32(dst.Cols) | 16
	}
	// A block costs some 300 ns whatever its size, all of it should stay in the second-level cache, and every core
	// should get some. How many cores there are does not matter: who plans memory does not know.
	most := min(2048, dst.Rows/16, (128<<10)/(2*g.left+4*g.pitch))
	g.block = max(64, most&^63)
	return g
}

// sums and rows are how many numbers a core takes for itself. Kernels prefetch memory some way behind what they
// read: that should not be another core's.
func (g *product16) sums() int { return g.block*g.pitch + 1024 }
func (g *product16) rows() int { return g.block*g.left + 2048 }

// flatten sees a block of rows as one.
func (g *product16) flatten(m Matrix) Matrix {
	if g.flat {
		return m.Reshape(1, m.Rows*m.Cols)
	}
	return m
}

// repeatBias is the bias of a block of rows that are seen as one.
func (c *Device) repeatBias(bias Matrix, g product16) Matrix {
	if !g.flat || bias.IsZero() {
		return Matrix{}
	}
	all := c.Scratch(F32, g.block, bias.Cols)
	for i := range all.Rows {
		copy(rowOf(all, i), rowOf(bias, 0))
	}
	return all.Reshape(1, g.block*bias.Cols)
}

// finish is activateSerial that writes part of a matrix of the given bytes, if that is not near, by non-temporal stores.
func (c *Device) finish(dst, src Matrix, epi Epilogue, bytes int64) {
	m := epilogueSteps(epi, "MatMul", dst)
	m.Src, m.Rows, m.Cols = blockOf(src, 0), dst.Rows, dst.Cols
	m.Dst = nonTemporal(blockOf(dst, 0), bytes, m.Src)
	m.Run(c.level)
}

// packSmall16 packs op(b), rounded to bfloat16, for AMX.
func (c *Device) packSmall16(b Matrix, trans bool, depth, n int) Matrix {
	small := b
	if b.Type() != F32 {
		small = c.Scratch(F32, b.Rows, b.Cols)
		c.activateSerial(small, b, Epilogue{})
	}
	k := b.Rows
	if trans {
		k = b.Cols
	}
	panels := c.Scratch(BF16, up32(n)/32, simd.PanelSize(depth))
	c.forRows(panels.Rows, max(1, (1<<15)/panels.Cols), func(lo, hi, _, _ int) {
		for p := lo; p < hi; p++ {
			simd.PackPairsPanel(row16Of(panels, p), f32Of(small), k, n, small.Stride(), p*32, depth, trans)
		}
	})
	if b.Type() != F32 {
		c.Free(small)
	}
	return panels
}

// padRows copies rows to a core's row of mem with zeros up to depth columns. Rows past the
// last are whatever mem holds: they make rows of sums that are not read.
func (c *Device) padRows(mem Matrix, thread int, rows Matrix, depth int) Matrix {
	simd.PadRows(c.level, row16Of(mem, thread), b16Of(rows), rows.Rows, rows.Cols, rows.Stride(), depth)
	return part(mem, thread, 0, rows.Rows, depth)
}

// tallTall16 is tallTall for bfloat16 on both sides: a slice of a is transposed, one
// of b is packed in pairs. Transposing is more work, so it should be of the narrower side.
func (c *Device) tallTall16(dst, a, b Matrix, op MatMul) {
	if dst.Cols < dst.Rows {
		c.tallTallSwapped(dst, a, b, op)
		return
	}
	g := newTallTall16(a.Rows, dst.Rows, dst.Cols)
	sums := c.Scratch(F32, g.groups, g.m*g.n)
	c.sumGroups16(sums, a, b, g)
	c.addGroups(dst, sums, g.n, op)
	c.Free(sums)
}

// newTallTall16 is the cut of a product of m x n, rows of which are made whole strips.
func newTallTall16(rows, m, n int) tallTall {
	step := simd.RowStep(n)
	m = (m + step - 1) / step * step
	g := newTallTall(simd.AMX, rows, m, n)
	// What is packed of a narrow slice should stay near, and slices be few.
	g.depth = max(g.depth, min(512, (32<<10)/(m+n)/32*32))
	g.inGroups(rows, m, n)
	return g
}

// workspace16 is how many bfloat16 a core takes for slices: of a, of b, and for their last rows.
func (g *tallTall) workspace16() (left, right, tail int) {
	return g.m * g.depth, up32(g.n) * g.depth, 32 * max(g.m, g.n)
}

// sumGroups16 computes the sums of all groups.
func (c *Device) sumGroups16(sums, a, b Matrix, g tallTall) {
	left, right, tail := g.workspace16()
	workspace := c.Scratch(BF16, c.threads, left+right+tail)
	tiles := make([]perCore[simd.Tiles16], c.threads)
	c.run(g.groups, func(group, thread int) {
		mine := row16Of(workspace, thread)
		s := slice16{t: &tiles[thread].of, left: mine[:left], right: mine[left : left+right], tail: mine[left+right:],
			sum: part(sums, group, 0, g.m, g.n), level: c.level}
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		if lo >= hi {
			zeroRows(s.sum)
		}
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			s.run(a.Slice(lo, end), b.Slice(lo, end), lo > first)
		}
	})
	c.Free(workspace)
}

// slice16 is what one thread needs to add a slice of rows to the sums of its group.
type slice16 struct {
	level             simd.Level
	t                 *simd.Tiles16
	left, right, tail []uint16
	sum               Matrix
}

func (s slice16) run(a, b Matrix, add bool) {
	depth := up32(a.Rows)
	whole := a.Rows &^ 31
	simd.PackTransposed(s.level, s.left, b16Of(a), whole, a.Cols, a.Stride(), depth)
	simd.PackPairs(s.level, s.right, b16Of(b), whole, b.Cols, b.Stride(), 32*depth)
	if whole < depth {
		rest := s.rest(a, whole)
		simd.PackTransposed(s.level, s.left[whole:], rest, 32, a.Cols, a.Cols, depth)
		rest = s.rest(b, whole)
		simd.PackPairs(s.level, s.right[32*whole:], rest, 32, b.Cols, b.Cols, 32*depth)
	}
	t := s.t
	t.A, t.B, t.C = unsafe.Pointer(&s.left[0]), unsafe.Pointer(&s.right[0]), baseOf(s.sum)
	t.ARow, t.CRow, t.Add = 2*depth, 4*s.sum.Stride(), flag(add)
	t.Depth, t.Rows, t.Cols = depth, s.sum.Rows, s.sum.Cols
	if s.sum.Rows > 48 { // else there is little to do while the slices that follow come: packing prefetches them
		na, nb := 2*a.Rows*a.Stride(), 2*b.Rows*b.Stride()
		t.Ask(uintptr(baseOf(a))+uintptr(na), uintptr(baseOf(b))+uintptr(nb), na, nb)
	}
	t.Run(s.level)
}

// rest is the rows of m from lo on, fewer than 32, with rows of zeros after them.
func (s slice16) rest(m Matrix, lo int) []uint16 {
	clear(s.tail[:32*m.Cols])
	last := m.Slice(lo, m.Rows)
	simd.PadRows(s.level, s.tail, b16Of(last), last.Rows, last.Cols, last.Stride(), m.Cols)
	return s.tail
}
