package cpu

import (
	"unsafe"

	"starling/tensor/cpu/simd"
)

// tallTall: dst = aᵀ·b for tall a and b, the gradient of a weight matrix. The rows
// are cut into groups, each with sums of its own, which are added in order at the
// end. A group goes through its rows in slices that fit in cache: both sides of a
// slice are packed into panels (in place, rows are often a power of two apart
// and fall into the same few cache sets), then every tile of the sums takes it in.
type tallTall struct {
	level  simd.Level
	m, n   int // dst is m x n
	mr, nr int
	left   simd.Packing // how a slice of a is packed, and of b
	right  simd.Packing
	groups int
	rows   int // of a group
	depth  int // rows of a slice
}

func newTallTall(level simd.Level, rows, m, n int) tallTall {
	g := tallTall{level: level, m: m, n: n}
	g.mr, g.nr = simd.TileShape(level)
	// Half a core's second-level cache for the panels of a slice.
	g.depth = min(192, max(32, (1<<18)/(m+n)/32*32))
	// One row more than a slice has, so that panels are not a multiple of a page apart: a
	// row is packed into all of them, and they would share a few cache sets (3% at 500 x 128).
	g.left = simd.Packing{Width: g.mr, Pitch: (g.mr + g.nr/2 - 1) / (g.nr / 2) * (g.nr / 2), Depth: g.depth + 1}
	g.right = simd.Packing{Width: g.nr, Pitch: g.nr, Depth: g.depth + 1}
	g.inGroups(rows, m, n)
	return g
}

// inGroups cuts the rows: sums of all groups take at most 64 MiB; a group has at least
// four slices.
func (g *tallTall) inGroups(rows, m, n int) {
	most := min(32, max(2, (64<<20)/(4*m*n)))
	slices := (rows + g.depth - 1) / g.depth
	g.groups = max(1, min(most, slices/4))
	per := max(1, (slices+g.groups-1)/g.groups)
	g.rows = per * g.depth
	g.groups = max(1, (rows+g.rows-1)/g.rows)
}

// matMulWorkspace is the shape, in float32, of most of what a product takes for itself: sums of
// groups of rows, or the small side in panels.
func (c *Device) matMulWorkspace(dst, a, b Matrix, op MatMul) (rows, cols int) {
	switch {
	case !op.TransA && c.splits(a, b, a.Cols, dst.Cols) && !c.splitsTwoWay():
		return b.Rows, (3*b.Cols + 1) / 2
	case !op.TransA:
		return b.Rows, b.Cols
	case c.outer(a, b):
		g := newOuter(a)
		return g.groups, g.m*g.n + coreGap/4
	case c.outer(b, a):
		g := newOuter(b)
		return g.groups, g.m*g.n + coreGap/4
	case c.gemm >= simd.AMX:
		m, n := up32(dst.Rows), up32(dst.Cols)
		return newSplitGroups(a.Rows, m, n, 256).groups, m * n
	}
	return newTallTall(c.level, a.Rows, dst.Rows, dst.Cols).groups, dst.Rows * dst.Cols
}

func (c *Device) tallTall(dst, a, b Matrix, op MatMul) {
	if c.gemm >= simd.AMX && a.Type() == BF16 && b.Type() == BF16 {
		c.tallTall16(dst, a, b, op)
		return
	}
	skipA, skipB := c.skipTime(a, dst.Cols, op.ZerosA, true), c.skipTime(b, dst.Rows, op.ZerosB, true)
	split := a.Rows >= leastSum && c.splits(a, b, dst.Rows, dst.Cols)
	switch {
	case c.outer(a, b):
		c.tallTallOuter(dst, a, b, op)
		return
	case skipA < skipLimit && skipA <= skipB:
		c.tallTallSkipping(dst, a, b, op)
		return
	case skipB < skipLimit, c.outer(b, a),
		split && dst.Cols < dst.Rows, // a's tiles have to be transposed
		!split && tileSteps(c.level, dst.Cols, dst.Rows) < tileSteps(c.level, dst.Rows, dst.Cols):
		c.tallTallSwapped(dst, a, b, op)
		return
	case split:
		c.tallTallParts(dst, a, b, op)
		return
	}
	c.tallTallTiles(dst, a, b, op)
}

// tallTallTiles is tallTall by tiles in registers.
func (c *Device) tallTallTiles(dst, a, b Matrix, op MatMul) {
	g := newTallTall(c.level, a.Rows, dst.Rows, dst.Cols)
	sizeA, sizeB := g.left.Size(g.m), g.right.Size(g.n)
	workspace := c.Scratch(F32, c.threads, sizeA+sizeB)
	sums := c.Scratch(F32, g.groups, g.m*g.n)
	tiles := make([]perCore[simd.Tile], c.threads)
	c.run(g.groups, func(group, thread int) {
		mine := rowOf(workspace, thread)
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		sum := part(sums, group, 0, g.m, g.n)
		if lo >= hi {
			zeroRows(sum)
		}
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			g.slice(&tiles[thread].of, sum, a.Slice(lo, end), b.Slice(lo, end), mine[:sizeA], mine[sizeA:], lo > first)
		}
	})
	c.Free(workspace)
	c.addGroups(dst, sums, g.n, op)
	c.Free(sums)
}

// tileSteps is about how long the tiles of an m x n result take: a narrow last
// tile costs more than its share.
func tileSteps(level simd.Level, m, n int) float64 {
	mr, nr := simd.TileShape(level)
	rows, cols := float64(m/mr*mr), float64(n/nr)
	if left := m % mr; left > 0 {
		rows += float64(max(left, 4))
	}
	switch left := n % nr; {
	case left > nr/2:
		cols++
	case left > 0:
		cols += 0.6
	}
	return rows * cols
}

// tallTallSwapped: dst = aᵀ·b as the transpose of bᵀ·a, for results that fit the
// tiles better lying down.
func (c *Device) tallTallSwapped(dst, a, b Matrix, op MatMul) {
	lying := c.Scratch(F32, dst.Cols, dst.Rows)
	c.tallTall(lying, b, a, MatMul{})
	sum := c.Scratch(F32, dst.Rows, dst.Cols)
	c.forRows(dst.Rows, max(16, (1<<14)/dst.Cols&^15), func(lo, hi, _, _ int) {
		simd.PackPanelTransposed(c.level, f32Of(sum)[lo*dst.Cols:], f32Of(lying)[lo:], hi-lo, dst.Cols, dst.Rows, 0,
			dst.Cols)
	})
	c.addGroups(dst, sum.Reshape(1, dst.Rows*dst.Cols), dst.Cols, op)
	c.Free(sum)
	c.Free(lying)
}

// slice adds one slice of rows to the sums.
func (g tallTall) slice(t *simd.Tile, sum, a, b Matrix, sizeA, sizeB []float32, add bool) {
	pack(g.level, sizeA, a, g.left)
	pack(g.level, sizeB, b, g.right)
	t.ARow, t.AStep, t.CRow = 4, 4*g.left.Pitch, 4*sum.Stride()
	t.K, t.Add = a.Rows, flag(add)
	abase, bbase, cbase := unsafe.Pointer(&sizeA[0]), unsafe.Pointer(&sizeB[0]), unsafe.Pointer(&f32Of(sum)[0])
	next := nextSlice(a, b, simd.Panels(g.m, g.mr)*simd.Panels(g.n, g.nr)*a.Rows)
	for j := 0; j < g.n; j += g.nr {
		t.Cols = min(g.nr, g.n-j)
		t.B = unsafe.Add(bbase, 4*j*g.right.Depth)
		for i := 0; i < g.m; i += g.mr {
			t.A = unsafe.Add(abase, 4*(i/g.mr)*g.left.Depth*g.left.Pitch)
			t.C = unsafe.Add(cbase, 4*(i*sum.Stride()+j))
			t.Ahead, t.AheadStep = next.take(t.K)
			t.Run(g.level, min(g.mr, g.m-i))
		}
	}
}

// prefetch distributes the memory of the next slice to the tiles of this one: first a's,
// then b's rows, step bytes each step of k.
type prefetch struct {
	at, end, then uintptr
	step          int
}

func nextSlice(a, b Matrix, steps int) prefetch {
	bytes := func(m Matrix) int { return m.Rows * m.Stride() * m.Type().Size() }
	atA, atB := uintptr(baseOf(a))+uintptr(bytes(a)), uintptr(baseOf(b))+uintptr(bytes(b))
	return prefetch{at: atA, end: atA + uintptr(bytes(a)), then: atB, step: (bytes(a) + bytes(b) + steps - 1) / steps}
}

// nextBlock distributes the rows that follow a's.
func nextBlock(a Matrix, steps int) prefetch {
	bytes := a.Rows * a.Stride() * a.Type().Size()
	return prefetch{at: uintptr(baseOf(a)) + uintptr(bytes), end: ^uintptr(0), step: (bytes + steps - 1) / steps}
}

func (x *prefetch) take(k int) (uintptr, int) {
	if x.at >= x.end {
		x.at, x.end = x.then, ^uintptr(0)
	}
	from := x.at
	x.at += uintptr(k * x.step)
	return from, x.step
}

// interleaved is prefetch for products that ask for pairs of lines of eight places at a time:
// each side's rows in eighths, so
// that lines of several pages are under way at once.
type interleaved struct {
	sides [2]struct {
		at    uintptr
		apart int // bytes from one place to the next
	}
	side, done, step int
}

// interleavedNext distributes the rows that follow those of one side or two.
func interleavedNext(steps int, sides ...Matrix) interleaved {
	var x interleaved
	total := 0
	for i, m := range sides {
		bytes := m.Rows * m.Stride() * m.Type().Size()
		s := &x.sides[i]
		s.at, s.apart = uintptr(baseOf(m))+uintptr(bytes), (bytes/8+63)&^63
		total += s.apart
	}
	if len(sides) == 1 {
		x.sides[1] = x.sides[0]
	}
	x.step = min(128, (total/steps+63)&^63)
	return x
}

func (x *interleaved) take(steps int) (at uintptr, step, apart int) {
	if x.side == 0 && x.done >= x.sides[0].apart {
		x.side, x.done = 1, 0
	}
	s := &x.sides[x.side]
	at = s.at + uintptr(x.done)
	x.done += steps * x.step
	return at, x.step, s.apart
}

func pack(level simd.Level, dst []float32, src Matrix, p simd.Packing) {
	if src.Type() == BF16 {
		p.PackRows16(level, dst, b16Of(src), src.Rows, src.Cols, src.Stride())
	} else {
		p.PackRows(level, dst, f32Of(src), src.Rows, src.Cols, src.Stride())
	}
}

// addGroups: dst = after(the groups' sums added in order), or that of dst + them.
// Rows of sums are width apart.
func (c *Device) addGroups(dst, sums Matrix, width int, op MatMul) {
	rows := max(1, (1<<14)/width)
	c.forRows(dst.Rows, rows, func(lo, hi, _, _ int) {
		// The first group's sums are the place to add in, so any type of dst will do.
		out := dst.Slice(lo, hi)
		span := func(group int) []float32 { return rowOf(sums, group)[lo*width : hi*width] }
		total := part(sums, 0, lo*width, hi-lo, width).Columns(0, dst.Cols)
		for group := 1; group < sums.Rows; group++ {
			s := span(group)
			simd.AddRows(c.level, span(0), s, 1, len(s), len(s))
		}
		if op.Add {
			c.addSerial(total, out)
		}
		c.activateSerial(out, total, op.Epilogue.Slice(lo, hi))
	})
}

// addSerial: sum += src, for a float32 sum.
func (c *Device) addSerial(sum, src Matrix) {
	for i := range src.Rows {
		if src.Type() == BF16 {
			simd.AddRows16(c.level, rowOf(sum, i), row16Of(src, i), 1, src.Cols, src.Cols)
		} else {
			simd.AddRows(c.level, rowOf(sum, i), rowOf(src, i), 1, src.Cols, src.Cols)
		}
	}
}
