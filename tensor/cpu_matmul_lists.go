package tensor

import (
	"math"
	"unsafe"

	"starling/tensor/simd"
)

// Products that skip zeros, in registers. Of what relu and dropout leave, and of the gradient before them, three
// numbers of four are zero. Rows of such a side, in pieces of up to 64 numbers, become lists of the others, and
// each of these adds its multiple of a row of the other side, of which some panels stay in the nearest cache.

// Lists pay where zeros are many and the other side is wide. Of the time without them a product takes about
//
//	making / columns of the other side + adding · share of numbers that are not zero
//
// listCost has the two, measured at shares of 0.1 to 0.5 and 64 to 602 columns (BenchmarkLists);
// turned is for lists of columns. A matrix unit that knows bfloat16 only keeps what is not a gradient of weights: of
// its speed at good moments lists have 0.8 to 1.1 there, at a share of a quarter. One of half precision keeps all.
func listCost(level simd.Level, turned bool) (making, adding float64) {
	switch {
	case level == simd.AMX && turned:
		return 85, 2.2
	case level == simd.AVX512 && turned:
		return 50, 1.2
	case level == simd.AVX512:
		return 26, 1.2
	case level == simd.AVX2:
		return 90, 1.15
	}
	return math.Inf(1), 0
}

// listLimit is the time, of that without, from which on there are no lists.
const listLimit = 0.92

// listTime is about how long a product takes with lists of m's rows, or columns where turned, of
// the time without, or listLimit where that is too long.
func (c *CPU) listTime(m Matrix, cols int, turned bool) float64 {
	making, adding := listCost(c.level, turned)
	making /= float64(max(1, cols))
	if making > listLimit || m.dtype != F32 || m.Rows < listBlock || m.Cols < 32 {
		return listLimit
	}
	return making + adding*c.shareThere(m)
}

// shareThere is the share of numbers that are not zero, of up to 128 pieces of rows that
// depend on the matrix's size only: the same numbers are always multiplied in the same way.
func (c *CPU) shareThere(m Matrix) float64 {
	var list [1]simd.List
	there, of := 0, 0
	rows := min(128, (m.Rows+63)/64)
	for i := range rows {
		row := m.row(i * m.Rows / rows)
		lo := i % ((m.Cols + simd.ListDepth - 1) / simd.ListDepth) * simd.ListDepth
		piece := row[lo:min(m.Cols, lo+simd.ListDepth)]
		simd.ListRows(c.level, list[:], piece, 1, len(piece), len(piece))
		there += list[0].Len()
		of += len(piece)
	}
	return float64(there) / float64(of)
}

// listBlock is how many rows go through the panels together.
const listBlock = 64

// listFloats is the room of a list.
const listFloats = int(unsafe.Sizeof(simd.List{})) / 4

// listsIn is n lists in memory of float32.
func listsIn(mem []float32, n int) []simd.List {
	return unsafe.Slice((*simd.List)(unsafe.Pointer(&mem[:n*listFloats][0])), n)
}

// tallSmallLists: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmallLists(dst, a, b Matrix, op MatMul) {
	k, n, cols := a.Cols, dst.Cols, up32(dst.Cols)
	pieces := c.packPieces(b, op.TransB, k, n)
	room := c.Scratch(F32, c.threads, listBlock*(listFloats+cols))
	tiles := make([]perCore[simd.ListTile], c.threads)
	c.inTurns(dst.Rows, listBlock, max(1, (1<<21)/(2*listBlock*k*cols)), func(lo, hi, thread int) {
		mine, t := room.row(thread), &tiles[thread].of
		lists, sums := listsIn(mine, listBlock), mine[listBlock*listFloats:]
		for ; lo < hi; lo += listBlock {
			end := min(hi, lo+listBlock)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			sum := out
			if dst.dtype != F32 || cols != n {
				sum = dense(sums, out.Rows, cols).Columns(0, n)
				if op.Add {
					c.activateSerial(sum, out, After{})
				}
			}
			t.Lists, t.Rows, t.CRow = &lists[0], out.Rows, 4*sum.stride
			next := nextBlock(in, c.listRuns(n)*pieces.Rows*in.Rows)
			for i := range pieces.Rows {
				part := in.Columns(i*simd.ListDepth, min(k, (i+1)*simd.ListDepth))
				simd.ListRows(c.level, lists, part.f32, part.Rows, part.Cols, part.stride)
				t.Add = flag(op.Add || i > 0)
				c.runLists(t, sum, pieces.row(i), &next)
			}
			if sum.base() != out.base() || !op.After.Empty() {
				c.activateSerial(out, sum, op.After.slice(lo, end))
			}
		}
	})
	c.Free(room)
	c.Free(pieces)
}

// packPieces packs op(b), k x n, in pieces as deep as lists are, one a row.
func (c *CPU) packPieces(b Matrix, trans bool, k, n int) Matrix {
	small, p := b, simd.ListPacking(c.level)
	if b.dtype != F32 {
		small = c.Scratch(F32, b.Rows, b.Cols)
		c.activateSerial(small, b, After{})
	}
	pieces := c.Scratch(F32, (k+simd.ListDepth-1)/simd.ListDepth, p.Size(n))
	c.run(pieces.Rows, func(i, _ int) {
		lo, hi := i*simd.ListDepth, min(k, (i+1)*simd.ListDepth)
		if !trans {
			pack(c.level, pieces.row(i), small.Slice(lo, hi), p)
			return
		}
		for j := 0; j < n; j += p.Width {
			simd.PackPanelTransposed(c.level, pieces.row(i)[j*p.Depth:], small.f32[lo:], hi-lo, n, small.stride, j, p.Width)
		}
	})
	if b.dtype != F32 {
		c.Free(small)
	}
	return pieces
}

// runLists multiplies lists with all panels. Meanwhile it asks for what is next.
func (c *CPU) runLists(t *simd.ListTile, sum Matrix, panels []float32, next *ahead) {
	p := simd.ListPacking(c.level)
	for j := 0; j < sum.Cols; j += simd.ListPanels * p.Width {
		t.B, t.C = unsafe.Pointer(&panels[j*p.Depth]), unsafe.Add(sum.base(), 4*j)
		t.Ahead, t.AheadStep = next.take(t.Rows)
		t.Run(c.level, min(simd.ListPanels, simd.Panels(sum.Cols-j, p.Width)))
	}
}

// listRuns is how often runLists runs a tile for n columns.
func (c *CPU) listRuns(n int) int {
	return simd.Panels(n, simd.ListPanels*simd.ListPacking(c.level).Width)
}

// tallTallLists is tallTall with lists of a's columns.
func (c *CPU) tallTallLists(dst, a, b Matrix, op MatMul) {
	m, n := dst.Rows, up32(dst.Cols)
	g := newSplitGroups(a.Rows, m, n, simd.ListDepth)
	p := simd.ListPacking(c.level)
	const turned = 16 * simd.ListDepth
	roomA := m * listFloats
	room := c.Scratch(F32, c.threads, roomA+turned+p.Size(n))
	sums := c.Scratch(F32, g.groups, m*n)
	tiles := make([]perCore[simd.ListTile], c.threads)
	c.run(g.groups, func(group, thread int) {
		mine, t := room.row(thread), &tiles[thread].of
		lists, turn, panels := listsIn(mine, m), mine[roomA:roomA+turned], mine[roomA+turned:]
		lo, hi := g.start(group), g.start(group+1)
		sum := dense(sums.row(group), m, n)
		if lo >= hi {
			zeroRows(sum)
		}
		t.Lists, t.Rows, t.CRow = &lists[0], m, 4*n
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			partA, partB := a.Slice(lo, end), b.Slice(lo, end)
			c.listColumns(lists, turn, partA)
			pack(c.level, panels, partB, p)
			t.Add = flag(lo > first)
			next := nextSlice(partA, partB, c.listRuns(n)*m)
			c.runLists(t, sum, panels, &next)
		}
	})
	c.Free(room)
	c.addGroups(dst, sums, n, op)
	c.Free(sums)
}

// listColumns makes lists of a's columns, sixteen at a time, which turn has room for.
func (c *CPU) listColumns(lists []simd.List, turn []float32, a Matrix) {
	for j := 0; j < a.Cols; j += 16 {
		some := a.Columns(j, min(a.Cols, j+16))
		simd.PackPanelTransposed(c.level, turn, some.f32, some.Cols, some.Rows, some.stride, 0, simd.ListDepth)
		simd.ListRows(c.level, lists[j:], turn, some.Cols, some.Rows, simd.ListDepth)
	}
}
