package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// tallTall: dst = aᵀ·b for tall a and b, the gradient of a weight matrix. The rows
// are cut into groups, each with sums of its own, which are added in order at the
// end. A group goes through its rows in slices that fit in cache: both sides of a
// slice are packed into panels (as they lie, rows are often a power of two apart
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

// MatMulRoom is the shape, in float32, of most of what a product takes for itself: sums of
// groups of rows, or the small side in panels.
func (c *CPU) MatMulRoom(dst, a, b Matrix, op MatMul) (rows, cols int) {
	switch {
	case !op.TransA && c.splits(a, b, a.Cols, dst.Cols) && !c.halves():
		return b.Rows, (3*b.Cols + 1) / 2
	case !op.TransA:
		return b.Rows, b.Cols
	case c.outer(a, b), c.outer(b, a), c.outerThirds(a, b), c.outerThirds(b, a):
		if a.Cols > b.Cols {
			a, b = b, a
		}
		g := newOuter(a, b)
		if c.outerThirds(a, b) {
			g = newOuterThirds(a, b)
		}
		return g.groups, g.m*g.n + roomsApart/4
	case c.level >= simd.AMX && a.dtype == BF16 && b.dtype == BF16 && (c.outer16(a, b) || c.outer16(b, a)):
		g := newOuter16(a, b)
		return g.groups, g.m*g.n + roomsApart/4
	case c.level >= simd.AMX && a.dtype == BF16 && b.dtype == BF16 && (outerSquare16(a, b) || outerSquare16(b, a)):
		g := newOuterSquare16(a, b)
		return g.groups, g.m*g.n + roomsApart/4
	case c.level >= simd.AMX:
		m, n := up32(dst.Rows), up32(dst.Cols)
		return newSplitGroups(a.Rows, m, n, 256).groups, m * n
	}
	return newTallTall(c.level, a.Rows, dst.Rows, dst.Cols).groups, dst.Rows * dst.Cols
}

func (c *CPU) tallTall(dst, a, b Matrix, op MatMul) {
	if c.level >= simd.AMX && a.dtype == BF16 && b.dtype == BF16 {
		c.tallTall16(dst, a, b, op)
		return
	}
	listsA, listsB := c.listTime(a, dst.Cols, true), c.listTime(b, dst.Rows, true)
	split := c.splits(a, b, dst.Rows, dst.Cols)
	switch {
	case listsA < listLimit && listsA <= listsB:
		c.tallTallLists(dst, a, b, op)
		return
	case c.outerThirds(a, b) && listsB >= listLimit:
		c.tallTallOuterThirds(dst, a, b, op)
		return
	case c.outer(a, b) && listsB >= listLimit:
		c.tallTallOuter(dst, a, b, op)
		return
	case c.outerHalves(a, b):
		c.tallTallOuterHalves(dst, a, b, op)
		return
	case listsB < listLimit, c.outerThirds(b, a), c.outer(b, a), c.outerHalves(b, a):
		c.tallTallSwapped(dst, a, b, op)
		return
	case split && dst.Cols < dst.Rows, // a's tiles have to be turned
		!split && tileSteps(c.level, dst.Cols, dst.Rows) < tileSteps(c.level, dst.Rows, dst.Cols):
		c.tallTallSwapped(dst, a, b, op)
		return
	case split:
		c.tallTallParts(dst, a, b, op)
		return
	}
	g := newTallTall(c.level, a.Rows, dst.Rows, dst.Cols)
	roomA, roomB := g.left.Size(g.m), g.right.Size(g.n)
	room := c.Scratch(F32, c.threads, roomA+roomB)
	sums := c.Scratch(F32, g.groups, g.m*g.n)
	tiles := make([]perCore[simd.Tile], c.threads)
	c.run(g.groups, func(group, thread int) {
		mine := room.row(thread)
		lo := group * g.rows
		hi := min(a.Rows, lo+g.rows)
		sum := dense(sums.row(group), g.m, g.n)
		if lo >= hi {
			zeroRows(sum)
		}
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			g.slice(&tiles[thread].of, sum, a.Slice(lo, end), b.Slice(lo, end), mine[:roomA], mine[roomA:], lo > first)
		}
	})
	c.Free(room)
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
func (c *CPU) tallTallSwapped(dst, a, b Matrix, op MatMul) {
	lying := c.Scratch(F32, dst.Cols, dst.Rows)
	c.tallTall(lying, b, a, MatMul{})
	sum := c.Scratch(F32, dst.Rows, dst.Cols)
	c.forRows(dst.Rows, max(16, (1<<14)/dst.Cols&^15), func(lo, hi, _, _ int) {
		simd.PackPanelTransposed(c.level, sum.f32[lo*dst.Cols:], lying.f32[lo:], hi-lo, dst.Cols, dst.Rows, 0, dst.Cols)
	})
	c.addGroups(dst, sum.Reshape(1, dst.Rows*dst.Cols), dst.Cols, op)
	c.Free(sum)
	c.Free(lying)
}

// slice adds one slice of rows to the sums.
func (g tallTall) slice(t *simd.Tile, sum, a, b Matrix, roomA, roomB []float32, add bool) {
	pack(g.level, roomA, a, g.left)
	pack(g.level, roomB, b, g.right)
	t.ARow, t.AStep, t.CRow = 4, 4*g.left.Pitch, 4*sum.stride
	t.K, t.Add = a.Rows, flag(add)
	abase, bbase, cbase := unsafe.Pointer(&roomA[0]), unsafe.Pointer(&roomB[0]), unsafe.Pointer(&sum.f32[0])
	next := nextSlice(a, b, simd.Panels(g.m, g.mr)*simd.Panels(g.n, g.nr)*a.Rows)
	for j := 0; j < g.n; j += g.nr {
		t.Cols = min(g.nr, g.n-j)
		t.B = unsafe.Add(bbase, 4*j*g.right.Depth)
		for i := 0; i < g.m; i += g.mr {
			t.A = unsafe.Add(abase, 4*(i/g.mr)*g.left.Depth*g.left.Pitch)
			t.C = unsafe.Add(cbase, 4*(i*sum.stride+j))
			t.Ahead, t.AheadStep = next.take(t.K)
			t.Run(g.level, min(g.mr, g.m-i))
		}
	}
}

// ahead hands out the memory of the next slice to the tiles of this one: first a's,
// then b's rows, so many bytes each step of k.
type ahead struct {
	at, end, then uintptr
	step          int
}

func nextSlice(a, b Matrix, steps int) ahead {
	bytes := func(m Matrix) int { return m.Rows * m.stride * m.dtype.Size() }
	atA, atB := uintptr(a.base())+uintptr(bytes(a)), uintptr(b.base())+uintptr(bytes(b))
	return ahead{at: atA, end: atA + uintptr(bytes(a)), then: atB, step: (bytes(a) + bytes(b) + steps - 1) / steps}
}

// nextBlock hands out the rows that follow a's.
func nextBlock(a Matrix, steps int) ahead {
	bytes := a.Rows * a.stride * a.dtype.Size()
	return ahead{at: uintptr(a.base()) + uintptr(bytes), end: ^uintptr(0), step: (bytes + steps - 1) / steps}
}

func (x *ahead) take(k int) (uintptr, int) {
	if x.at >= x.end {
		x.at, x.end = x.then, ^uintptr(0)
	}
	from := x.at
	x.at += uintptr(k * x.step)
	return from, x.step
}

// across is ahead for products that ask for pairs of lines of eight places at a time: each side's rows in eighths, so
// that lines of several pages are under way at once.
type across struct {
	sides [2]struct {
		at    uintptr
		apart int // bytes from one place to the next
	}
	side, done, step int
}

// acrossNext hands out the rows that follow those of one side or two.
func acrossNext(steps int, sides ...Matrix) across {
	var x across
	total := 0
	for i, m := range sides {
		bytes := m.Rows * m.stride * m.dtype.Size()
		s := &x.sides[i]
		s.at, s.apart = uintptr(m.base())+uintptr(bytes), (bytes/8+63)&^63
		total += s.apart
	}
	if len(sides) == 1 {
		x.sides[1] = x.sides[0]
	}
	x.step = min(128, (total/steps+63)&^63)
	return x
}

func (x *across) take(steps int) (at uintptr, step, apart int) {
	if x.side == 0 && x.done >= x.sides[0].apart {
		x.side, x.done = 1, 0
	}
	s := &x.sides[x.side]
	at = s.at + uintptr(x.done)
	x.done += steps * x.step
	return at, x.step, s.apart
}

func pack(level simd.Level, dst []float32, src Matrix, p simd.Packing) {
	if src.dtype == BF16 {
		p.PackRows16(level, dst, src.b16, src.Rows, src.Cols, src.stride)
	} else {
		p.PackRows(level, dst, src.f32, src.Rows, src.Cols, src.stride)
	}
}

// groupSums has add make so many sums of each group of rows.
func (c *CPU) groupSums(rows int, g tallTall, size int, add func(sum Matrix, lo, hi, thread int)) Matrix {
	sums := c.apart(F32, g.groups, size)
	c.run(g.groups, func(group, thread int) {
		sum := sums.Slice(group, group+1)
		zeroRows(sum)
		if lo, hi := group*g.rows, min(rows, (group+1)*g.rows); lo < hi {
			add(sum, lo, hi, thread)
		}
	})
	return sums
}

// addPanels is addGroups of sums that are panels of 16 of n columns, in each of which rows follow each other.
func (c *CPU) addPanels(dst, sums Matrix, n int, op MatMul) {
	total := c.Scratch(F32, dst.Rows, n)
	size := sums.Cols / (n / 16)
	c.forRows(n/16, max(1, (1<<12)/size), func(lo, hi, _, _ int) {
		sum := sums.row(0)[lo*size : hi*size]
		for group := 1; group < sums.Rows; group++ {
			simd.AddRows(c.level, sum, sums.row(group)[lo*size:hi*size], 1, len(sum), len(sum))
		}
		for i := range dst.Rows {
			for j := lo; j < hi; j++ {
				copy(total.row(i)[16*j:16*j+16], sum[(j-lo)*size+16*i:])
			}
		}
	})
	c.addGroups(dst, total.Reshape(1, dst.Rows*n), n, op)
	c.Free(total)
}

// addGroups: dst = after(the groups' sums added in order), or that of dst + them.
// Rows of sums are width apart.
func (c *CPU) addGroups(dst, sums Matrix, width int, op MatMul) {
	rows := max(1, (1<<14)/width)
	c.forRows(dst.Rows, rows, func(lo, hi, _, _ int) {
		// The first group's sums are the place to add in, so any type of dst will do.
		out := dst.Slice(lo, hi)
		span := func(group int) []float32 { return sums.row(group)[lo*width : hi*width] }
		total := dense(span(0), hi-lo, width).Columns(0, dst.Cols)
		for group := 1; group < sums.Rows; group++ {
			s := span(group)
			simd.AddRows(c.level, span(0), s, 1, len(s), len(s))
		}
		if op.Add {
			c.addSerial(total, out)
		}
		c.activateSerial(out, total, op.After.slice(lo, hi))
	})
}

// addSerial: sum += src, for a float32 sum.
func (c *CPU) addSerial(sum, src Matrix) {
	for i := range src.Rows {
		if src.dtype == BF16 {
			simd.AddRows16(c.level, sum.row(i), src.row16(i), 1, src.Cols, src.Cols)
		} else {
			simd.AddRows(c.level, sum.row(i), src.row(i), 1, src.Cols, src.Cols)
		}
	}
}
