package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Products of float32 rows on the matrix unit, each number in three parts (see
// simd.Tiles32), as exact as float32 is and twice as fast as multiplying and adding in
// registers. Both sides are split into blocks of 32 x 32: rows past the last and columns
// past the last are padding, whose results nobody reads.

// splits reports whether a product goes by parts: of float32, and with small sides of x and y that
// are not mostly padding, since splitting a number takes as long as multiplying it with 32 others.
func (c *CPU) splits(a, b Matrix, x, y int) bool {
	return c.level >= simd.AMX && a.dtype == F32 && b.dtype == F32 && min(x, y) >= 48
}

// splitRows is how many rows go through a product's panels together, and splitDepth the
// most columns: the parts of so many numbers, and of a panel's, stay in the second-level cache.
const (
	splitRows  = 128
	splitDepth = 640
)

// tallSmallSplit: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmallSplit(dst, a, b Matrix, op MatMul) {
	n, cols, blocks := dst.Cols, up32(dst.Cols), up32(a.Cols)/32
	pieces := (a.Cols + splitDepth - 1) / splitDepth
	depth := (blocks + pieces - 1) / pieces // blocks of a piece
	panels := c.splitSmall(b, op.TransB, a.Cols, n)
	left := c.Scratch(BF16, c.threads, splitRows/32*depth*simd.SplitBlock)
	sums := c.Scratch(F32, c.threads, splitRows*cols)
	tiles := make([]perCore[simd.Tiles32], c.threads)
	c.inTurns(dst.Rows, splitRows, max(1, (1<<22)/(splitRows*32*blocks*cols)), func(lo, hi, thread int) {
		t, strips := &tiles[thread].of, left.row16(thread)
		for ; lo < hi; lo += splitRows {
			end := min(hi, lo+splitRows)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			sum := out
			if out.Rows%32 != 0 || dst.dtype != F32 || cols != n {
				sum = dense(sums.row(thread), out.Rows, cols).Columns(0, n)
				if op.Add {
					c.activateSerial(sum, out, After{})
				}
			}
			t.C, t.CRow = sum.base(), 4*sum.stride
			t.Rows, t.Panels = up32(out.Rows)/32, cols/32
			t.BPanel = 2 * panels.stride
			for first := 0; first < blocks; first += depth {
				t.Depth = min(depth, blocks-first)
				part := in.Columns(32*first, min(in.Cols, 32*(first+t.Depth)))
				c.splitStrips(strips, part, t.Depth)
				t.A, t.APanel = unsafe.Pointer(&strips[0]), 2*t.Depth*simd.SplitBlock
				t.B = unsafe.Add(panels.base(), 2*first*simd.SplitBlock)
				t.Add = flag(op.Add || first > 0)
				t.Ahead = uintptr(part.base()) + uintptr(4*splitRows*a.stride)
				t.AheadStep = min(1024, 4096/t.Panels)
				t.Run(c.level)
			}
			if sum.base() != out.base() || !op.After.Empty() {
				c.activateSerial(out, sum, op.After.slice(lo, end))
			}
		}
	})
	c.Free(left)
	c.Free(sums)
	c.Free(panels)
}

// splitStrips splits rows into strips of so many blocks.
func (c *CPU) splitStrips(dst []uint16, a Matrix, blocks int) {
	for i := 0; i < a.Rows; i += 32 {
		strip := a.Slice(i, min(a.Rows, i+32))
		simd.SplitRows(c.level, dst[i/32*blocks*simd.SplitBlock:], strip.f32, strip.Rows, strip.Cols, strip.stride)
	}
}

// splitSmall splits op(b), k x n, into panels, one a row.
func (c *CPU) splitSmall(b Matrix, trans bool, k, n int) Matrix {
	blocks := up32(k) / 32
	panels := c.Scratch(BF16, up32(n)/32, blocks*simd.SplitBlock)
	c.forRows(panels.Rows, max(1, 64/blocks), func(lo, hi, _, _ int) {
		if !trans {
			part := b.Columns(32*lo, min(n, 32*hi))
			simd.SplitPairs(c.level, panels.b16[lo*panels.stride:], part.f32, k, part.Cols, part.stride, panels.stride)
			return
		}
		part := b.Slice(32*lo, min(n, 32*hi))
		c.splitStrips(panels.b16[lo*panels.stride:], part, blocks)
		simd.TurnTiles(c.level, panels.b16[lo*panels.stride:], (hi-lo)*blocks)
	})
	return panels
}

// tallTallSplit is tallTall for float32 on both sides: a slice of a is split as a whole, and its
// tiles turned; of b a few panels at a time, just before they are multiplied.
func (c *CPU) tallTallSplit(dst, a, b Matrix, op MatMul) {
	m, n := up32(dst.Rows), up32(dst.Cols)
	g := newSplitGroups(a.Rows, m, n, 256)
	panel := g.depth / 32 * simd.SplitBlock
	roomA := m / 32 * panel
	wide := min(n/32, 4)
	room := c.Scratch(BF16, c.threads, roomA+wide*panel)
	sums := c.Scratch(F32, g.groups, m*n)
	tiles := make([]perCore[simd.Tiles32], c.threads)
	c.run(g.groups, func(group, thread int) {
		t, mine := &tiles[thread].of, room.row16(thread)
		left, right := mine[:roomA], mine[roomA:]
		lo, hi := g.start(group), g.start(group+1)
		sum := dense(sums.row(group), m, n)
		if lo >= hi {
			zeroRows(sum)
		}
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			partA, partB := a.Slice(lo, end), b.Slice(lo, end)
			simd.SplitPairs(c.level, left, partA.f32, partA.Rows, partA.Cols, partA.stride, panel)
			t.Depth, t.Rows, t.Panels = up32(partA.Rows)/32, m/32, 1
			for i := range t.Rows {
				simd.TurnTiles(c.level, left[i*panel:], t.Depth)
			}
			t.A, t.APanel, t.BPanel = unsafe.Pointer(&left[0]), 2*panel, 2*panel
			t.CRow, t.Add = 4*sum.stride, flag(lo > first)
			steps := t.Depth * t.Rows
			next := nextSlice(partA, partB, steps*n/32)
			for j := range n / 32 {
				if j%wide == 0 {
					some := partB.Columns(32*j, min(partB.Cols, 32*(j+wide)))
					simd.SplitPairs(c.level, right, some.f32, some.Rows, some.Cols, some.stride, panel)
				}
				t.B, t.C = unsafe.Pointer(&right[j%wide*panel]), unsafe.Pointer(&sum.f32[32*j])
				t.Ahead, t.AheadStep = next.take(steps)
				t.Run(c.level)
			}
		}
	})
	c.Free(room)
	c.addGroups(dst, sums, n, op)
	c.Free(sums)
}

// splitGroups are the groups of rows of tallTallSplit, each with sums of its own: a power of two, so that threads
// get equally many. The second half of them are of half the size, which keeps a slow core from being the last
// for long.
type splitGroups struct {
	groups int
	rows   int // of all groups
	unit   int // rows of a group of the second half
	depth  int // rows of a slice
}

// newSplitGroups makes groups of 768 rows on average or more: of 6,900 rows of 602 columns and 256, eight groups take
// a tenth less time than sixteen, whose sums are made and added up. Sums of all groups take at most 64 MiB. Slices are
// as deep as a quarter of the second-level cache has room for of a's, and no deeper than said: sums are loaded and
// stored once a slice.
func newSplitGroups(rows, m, n, deepest int) splitGroups {
	g := splitGroups{groups: 1, rows: rows}
	for next := 2; next <= 32 && 4*m*n*next <= 64<<20 && rows >= 768*next; next *= 2 {
		g.groups = next
	}
	units := g.groups + g.groups/2
	g.unit = up32((rows + units - 1) / units)
	depth := min(deepest, max(32, (512<<10)/(6*m)/32*32)) // at most, for slices of equal size
	slices := max(1, (2*g.unit+depth-1)/depth)
	g.depth = max(32, up32((2*g.unit+slices-1)/slices))
	return g
}

// start is the first row of group k.
func (g *splitGroups) start(k int) int { return min(g.rows, g.unit*(k+min(k, g.groups/2))) }
