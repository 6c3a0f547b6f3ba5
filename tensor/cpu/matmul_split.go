package cpu

import (
	"unsafe"

	"starling/tensor/cpu/simd"
)

// Products of float32 rows on AMX, each number in parts of bfloat16 or half precision, as exact as
// float32 is and two to three times as fast as multiplying and adding in registers. Both sides are cut into blocks
// of 32 x 32: rows past the last and columns past the last are padding, whose results are not read.

// parts is how numbers are cut, by what AMX has.
type parts struct {
	block   int // numbers that 32 x 32 take
	deepest int // rows of a slice of both sides of a gradient of weights
	// rows and pairs cut a left and a right side, turn makes one of the other, and run multiplies.
	rows func(level simd.Level, dst []uint16, back []float32, ranges simd.Ranges, src []float32, rows, cols,
		stride int)
	pairs func(level simd.Level, dst []uint16, back []float32, ranges simd.Ranges, src []float32, rows, cols, stride,
		panel int)
	turn   func(level simd.Level, panel []uint16, blocks int)
	run    func(t *simd.TwoWaySplit, level simd.Level)
	bounds // when results are made again (see matmul_split_check.go)
}

// bytes is what the parts of a number take.
func (p *parts) bytes() int { return 2 * p.block / (32 * 32) }

// The three-way split is of bfloat16 (see simd.Tiles32), which has float32's range: nothing is scaled, and nothing taken back.
var threeWay = parts{
	simd.SplitBlock, 256,
	func(level simd.Level, dst []uint16, _ []float32, ranges simd.Ranges, src []float32, rows, cols, stride int) {
		simd.SplitRows(level, dst, ranges, src, rows, cols, stride)
	},
	func(level simd.Level, dst []uint16, _ []float32, ranges simd.Ranges, src []float32, rows, cols, stride,
		panel int) {
		simd.SplitPairs(level, dst, ranges, src, rows, cols, stride, panel)
	},
	simd.TransposeSplit,
	func(t *simd.TwoWaySplit, level simd.Level) {
		u := simd.Tiles32{
			A: t.A, B: t.B, C: t.C, APanel: t.APanel, BPanel: t.BPanel, CRow: t.CRow,
			Depth: t.Depth, Rows: t.Rows, Panels: t.Panels, Add: t.Add, Ahead: t.Ahead, AheadStep: t.AheadStep, AheadApart: t.AheadApart,
		}
		u.Run(level)
	},
	threeWayBounds,
}

// Halves are of half precision, half the products.
var twoWay = parts{simd.FP16Block, 192, simd.SplitRowsFP16, simd.SplitPairsFP16, simd.TransposeFP16,
	(*simd.TwoWaySplit).Run, twoWayBounds}

func (c *Device) splitsTwoWay() bool { return c.gemm >= simd.AMXFP16 }

func (c *Device) parts() *parts {
	if c.splitsTwoWay() {
		return &twoWay
	}
	return &threeWay
}

// splits reports whether a product goes by parts: of float32, and with small sides of x and y
// numbers that are not mostly
// padding, since splitting a number takes as long as multiplying it with 32 others. The two-way split takes half of what the
// three-way split does, and is as fast as register tiles from three quarters of a block on.
func (c *Device) splits(a, b Matrix, x, y int) bool {
	if c.gemm < simd.AMX || a.Type() != F32 || b.Type() != F32 {
		return false
	}
	if c.splitsTwoWay() {
		return min(x, y) >= 24 && max(x, y) > 48
	}
	return min(x, y) >= 48
}

// splitRows is how many rows go through a product's panels together, and splitDepth the
// most columns: their parts, and the parts of a panel, stay in the second-level cache.
const (
	splitRows  = 128
	splitDepth = 640
)

// farResult is how many bytes a result has that is not in any cache near when it is written. Asking for it first
// is then worth a tenth of a shallow product (100 columns to 256), and costs a twentieth where it is near.
var farResult = 16 << 20 // as streamBytes: lower in tests

// tallSmallParts: dst = after(a · op(b)), by blocks of rows.
func (c *Device) tallSmallParts(dst, a, b Matrix, op MatMul) {
	p := c.parts()
	n, cols, blocks := dst.Cols, up32(dst.Cols), up32(a.Cols)/32
	pieces := (a.Cols + splitDepth - 1) / splitDepth
	depth := (blocks + pieces - 1) / pieces // blocks of a piece
	panels, backs, right := c.partSmall(p, b, op.TransB, a.Cols, n)
	left := c.Scratch(BF16, c.threads, splitRows/32*depth*p.block)
	saved := 0 // columns of what is added to
	if op.Add {
		saved = n
	}
	own := simd.FP16Workspace + splitRows + simd.RangesSize(splitRows)
	workspace := c.Scratch(F32, c.threads, own+splitRows*(cols+saved))
	tiles := make([]perCore[simd.TwoWaySplit], c.threads)
	c.blockRanges(dst.Rows, splitRows, max(1, (1<<22)/(splitRows*32*blocks*cols)), func(lo, hi, thread int) {
		t, strips, mine := &tiles[thread].of, row16Of(left, thread), rowOf(workspace, thread)
		backA := mine[simd.FP16Workspace : simd.FP16Workspace+splitRows]
		ranges := rangesIn(mine[simd.FP16Workspace+splitRows:], splitRows)
		t.Workspace, t.BackA, t.BackB = unsafe.Pointer(&mine[0]), unsafe.Pointer(&backA[0]), baseOf(backs)
		for ; lo < hi; lo += splitRows {
			end := min(hi, lo+splitRows)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			sum := out
			far := !op.Add && nonTemporal(blockOf(out, 0), dst.Bytes()).NonTemporal
			if out.Rows%32 != 0 || dst.Type() != F32 || cols != n || far && !op.Epilogue.Empty() {
				sum = part(workspace, thread, own, out.Rows, cols).Columns(0, n)
				if op.Add {
					c.activateSerial(sum, out, Epilogue{})
				}
			}
			t.C, t.CRow = baseOf(sum), 4*sum.Stride()
			t.NonTemporal = flag(far && baseOf(sum) == baseOf(out) && depth == blocks)
			t.Own = flag(4*dst.Rows*dst.Stride() >= farResult && t.NonTemporal == 0)
			t.Rows, t.Panels = up32(out.Rows)/32, cols/32
			t.BPanel = 2 * panels.Stride()
			next := interleavedNext(t.Rows*t.Panels*blocks, in)
			var old Matrix
			clear(ranges)
			for first := 0; first < blocks; first += depth {
				t.Depth = min(depth, blocks-first)
				piece := in.Columns(32*first, min(in.Cols, 32*(first+t.Depth)))
				c.partStrips(p, strips, backA, ranges, piece, t.Depth)
				if op.Add && first == 0 && (pieces > 1 || len(right.at) > 0 || ranges.AnyWide(c.level, &p.RangeBounds)) {
					old = part(workspace, thread, own+splitRows*cols, out.Rows, n)
					c.activateSerial(old, sum, Epilogue{})
				}
				t.A, t.APanel = unsafe.Pointer(&strips[0]), 2*t.Depth*p.block
				t.B = unsafe.Add(baseOf(panels), 2*first*p.block)
				t.Add = flag(op.Add || first > 0)
				t.Ahead, t.AheadStep, t.AheadApart = next.take(t.Rows * t.Panels * t.Depth)
				p.run(t, c.level)
			}
			if len(right.at) > 0 || ranges.AnyWide(c.level, &p.RangeBounds) {
				c.redoRows(&p.bounds, sum, in, b, op.TransB, newUnits(&p.bounds, ranges, in.Rows), right, old)
			}
			if baseOf(sum) != baseOf(out) || !op.Epilogue.Empty() {
				c.finish(out, sum, op.Epilogue.Slice(lo, end), dst.Bytes())
			}
		}
	})
	c.Free(left)
	c.Free(workspace)
	c.Free(backs)
	c.Free(panels)
}

// partStrips cuts rows into strips of blocks, notes what takes their scales back, and joins their ranges.
func (c *Device) partStrips(p *parts, dst []uint16, back []float32, ranges simd.Ranges, a Matrix, blocks int) {
	for i := 0; i < a.Rows; i += 32 {
		strip := a.Slice(i, min(a.Rows, i+32))
		p.rows(c.level, dst[i/32*blocks*p.block:], back[i:], ranges[2*i:], f32Of(strip), strip.Rows, strip.Cols,
			strip.Stride())
	}
}

// partSmall cuts op(b), k x n, into panels, one per row, and says what takes the scales of columns back, and their
// units.
func (c *Device) partSmall(p *parts, b Matrix, trans bool, k, n int) (panels, backs Matrix, right units) {
	blocks := up32(k) / 32
	panels = c.Scratch(BF16, up32(n)/32, blocks*p.block)
	backs = c.Scratch(F32, panels.Rows, 32)
	ranges := make(simd.Ranges, simd.RangesSize(n))
	c.forRows(panels.Rows, max(1, 64/blocks), func(lo, hi, _, _ int) {
		to, back, ranges := b16Of(panels)[lo*panels.Stride():], f32Of(backs)[32*lo:32*hi], ranges[64*lo:64*hi]
		if !trans {
			part := b.Columns(32*lo, min(n, 32*hi))
			p.pairs(c.level, to, back, ranges, f32Of(part), k, part.Cols, part.Stride(), panels.Stride())
			return
		}
		c.partStrips(p, to, back, ranges, b.Slice(32*lo, min(n, 32*hi)), blocks)
		p.turn(c.level, to, (hi-lo)*blocks)
	})
	return panels, backs, newUnits(&p.bounds, ranges, n)
}

// tallTallParts is tallTall: a slice of a is cut as a whole, and its tiles transposed; of b a few panels at a time,
// just before they are multiplied.
func (c *Device) tallTallParts(dst, a, b Matrix, op MatMul) {
	p := c.parts()
	m, n := up32(dst.Rows), up32(dst.Cols)
	g := newSplitGroups(a.Rows, m, n, p.deepest)
	panel := g.depth / 32 * p.block
	sizeA := m / 32 * panel
	wide := min(n/32, 4)
	workspace := c.Scratch(BF16, c.threads, sizeA+wide*panel)
	own := simd.FP16Workspace + m + 32*wide
	backs := c.Scratch(F32, c.threads, own+simd.RangesSize(m)+simd.RangesSize(n))
	again := make([]bool, g.groups) // whose sums are made again
	sums := c.Scratch(F32, g.groups, m*n)
	tiles := make([]perCore[simd.TwoWaySplit], c.threads)
	c.run(g.groups, func(group, thread int) {
		t, mine, back := &tiles[thread].of, row16Of(workspace, thread), rowOf(backs, thread)
		left, right := mine[:sizeA], mine[sizeA:]
		backA, backB := back[simd.FP16Workspace:simd.FP16Workspace+m], back[simd.FP16Workspace+m:own]
		rangesA, rangesB := rangesIn(back[own:], m), rangesIn(back[own+simd.RangesSize(m):], n)
		check := groupCheck{level: c.level, x: &p.bounds}
		lo, hi := g.start(group), g.start(group+1)
		sum := part(sums, group, 0, m, n)
		if lo >= hi {
			zeroRows(sum)
		}
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			partA, partB := a.Slice(lo, end), b.Slice(lo, end)
			clear(back[own:])
			p.pairs(c.level, left, backA, rangesA, f32Of(partA), partA.Rows, partA.Cols, partA.Stride(), panel)
			t.Depth, t.Rows, t.Panels = up32(partA.Rows)/32, m/32, 1
			for i := range t.Rows {
				p.turn(c.level, left[i*panel:], t.Depth)
			}
			t.A, t.APanel, t.BPanel = unsafe.Pointer(&left[0]), 2*panel, 2*panel
			t.BackA, t.Workspace = unsafe.Pointer(&backA[0]), unsafe.Pointer(&back[0])
			t.CRow, t.Add = 4*sum.Stride(), flag(lo > first)
			steps := t.Depth * t.Rows
			next := interleavedNext(steps*n/32, partA, partB)
			for j := range n / 32 {
				at := j % wide
				if at == 0 {
					some := partB.Columns(32*j, min(partB.Cols, 32*(j+wide)))
					p.pairs(c.level, right, backB, rangesB[64*j:], f32Of(some), some.Rows, some.Cols, some.Stride(), panel)
				}
				t.B, t.BackB, t.C = unsafe.Pointer(&right[at*panel]), unsafe.Pointer(&backB[32*at]), unsafe.Pointer(&f32Of(sum)[32*j])
				t.Ahead, t.AheadStep, t.AheadApart = next.take(steps)
				p.run(t, c.level)
			}
			check.slice(sum, partA, partB, rangesA, rangesB)
		}
		again[group] = check.many()
		check.redo(sum, a.Slice(g.start(group), hi), b.Slice(g.start(group), hi))
	})
	c.Free(workspace)
	c.Free(backs)
	for group, redo := range again {
		if redo {
			lo, hi := g.start(group), g.start(group+1)
			sum := part(sums, group, 0, m, n).Slice(0, dst.Rows).Columns(0, dst.Cols)
			c.tallTallTiles(sum, a.Slice(lo, hi), b.Slice(lo, hi), MatMul{})
		}
	}
	c.addGroups(dst, sums, n, op)
	c.Free(sums)
}

// splitGroups are the groups of rows of tallTallParts, each with sums of its own: a power of two, so that threads
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
// as deep as a quarter of the second-level cache has workspace for of a's, and no deeper than said: sums are loaded and
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
