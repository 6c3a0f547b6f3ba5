package tensor

import (
	"unsafe"

	"starling/tensor/simd"
)

// Products of float32 rows on the matrix unit, each number in parts of bfloat16 or half precision, as exact as
// float32 is and two to three times as fast as multiplying and adding in registers. Both sides are cut into blocks
// of 32 x 32: rows past the last and columns past the last are padding, whose results nobody reads.

// parts is how numbers are cut, by what the unit knows.
type parts struct {
	block   int // numbers that 32 x 32 take
	deepest int // rows of a slice of both sides of a gradient of weights
	// rows and pairs cut a left and a right side, turn makes one of the other, and run multiplies.
	rows  func(level simd.Level, dst []uint16, back, src []float32, rows, cols, stride int)
	pairs func(level simd.Level, dst []uint16, back, src []float32, rows, cols, stride, panel int)
	turn  func(level simd.Level, panel []uint16, blocks int)
	run   func(t *simd.Halves, level simd.Level)
}

// Thirds are of bfloat16 (see simd.Tiles32), which has float32's range: nothing is scaled, and nothing taken back.
var thirds = parts{
	simd.SplitBlock, 256,
	func(level simd.Level, dst []uint16, _, src []float32, rows, cols, stride int) {
		simd.SplitRows(level, dst, src, rows, cols, stride)
	},
	func(level simd.Level, dst []uint16, _, src []float32, rows, cols, stride, panel int) {
		simd.SplitPairs(level, dst, src, rows, cols, stride, panel)
	},
	simd.TurnTiles,
	func(t *simd.Halves, level simd.Level) {
		u := simd.Tiles32{
			A: t.A, B: t.B, C: t.C, APanel: t.APanel, BPanel: t.BPanel, CRow: t.CRow,
			Depth: t.Depth, Rows: t.Rows, Panels: t.Panels, Add: t.Add, Ahead: t.Ahead, AheadStep: t.AheadStep, AheadApart: t.AheadApart,
		}
		u.Run(level)
	},
}

// Halves are of half precision, half the products.
var halves = parts{simd.HalfBlock, 192, simd.HalveRows, simd.HalvePairs, simd.TurnHalves, (*simd.Halves).Run}

func (c *CPU) halves() bool { return c.level >= simd.AMXFP16 }

func (c *CPU) parts() *parts {
	if c.halves() {
		return &halves
	}
	return &thirds
}

// splits reports whether a product goes by parts: of float32, and with small sides of x and y that
// are not mostly padding, since splitting a number takes as long as multiplying it with 32 others.
func (c *CPU) splits(a, b Matrix, x, y int) bool {
	return c.level >= simd.AMX && a.dtype == F32 && b.dtype == F32 && min(x, y) >= 48
}

// shallow reports whether a product of few columns to many goes by halves: from most of a block on. 32 to 47 columns to
// 256, the gradient before a last layer, take 0.55-0.8 of the time that tiles in registers do.
func (c *CPU) shallow(a, b Matrix, cols int) bool {
	return c.halves() && a.dtype == F32 && b.dtype == F32 && a.Cols >= 24 && cols > 48
}

// splitRows is how many rows go through a product's panels together, and splitDepth the
// most columns: the parts of so many numbers, and of a panel's, stay in the second-level cache.
const (
	splitRows  = 128
	splitDepth = 640
)

// farResult is how many bytes a result has that is not in any cache near when it is written. Asking for it first
// is then worth a tenth of a shallow product (100 columns to 256), and costs a twentieth where it is near.
var farResult = 16 << 20 // as streamBytes: lower in tests

// tallSmallParts: dst = after(a · op(b)), by blocks of rows.
func (c *CPU) tallSmallParts(dst, a, b Matrix, op MatMul) {
	p := c.parts()
	n, cols, blocks := dst.Cols, up32(dst.Cols), up32(a.Cols)/32
	pieces := (a.Cols + splitDepth - 1) / splitDepth
	depth := (blocks + pieces - 1) / pieces // blocks of a piece
	panels, backs := c.partSmall(p, b, op.TransB, a.Cols, n)
	left := c.Scratch(BF16, c.threads, splitRows/32*depth*p.block)
	room := c.Scratch(F32, c.threads, simd.RoomHalves+splitRows+splitRows*cols)
	tiles := make([]perCore[simd.Halves], c.threads)
	c.inTurns(dst.Rows, splitRows, max(1, (1<<22)/(splitRows*32*blocks*cols)), func(lo, hi, thread int) {
		t, strips, mine := &tiles[thread].of, left.row16(thread), room.row(thread)
		backA, sums := mine[simd.RoomHalves:simd.RoomHalves+splitRows], mine[simd.RoomHalves+splitRows:]
		t.Room, t.BackA, t.BackB = unsafe.Pointer(&mine[0]), unsafe.Pointer(&backA[0]), backs.base()
		for ; lo < hi; lo += splitRows {
			end := min(hi, lo+splitRows)
			out, in := dst.Slice(lo, end), a.Slice(lo, end)
			sum := out
			far := !op.Add && past(out.block(0), dst.Bytes()).Past
			if out.Rows%32 != 0 || dst.dtype != F32 || cols != n || far && !op.After.Empty() {
				sum = dense(sums, out.Rows, cols).Columns(0, n)
				if op.Add {
					c.activateSerial(sum, out, After{})
				}
			}
			t.C, t.CRow = sum.base(), 4*sum.stride
			t.Past = flag(far && sum.base() == out.base() && depth == blocks)
			t.Own = flag(4*dst.Rows*dst.stride >= farResult && t.Past == 0)
			t.Rows, t.Panels = up32(out.Rows)/32, cols/32
			t.BPanel = 2 * panels.stride
			next := acrossNext(t.Rows*t.Panels*blocks, in)
			for first := 0; first < blocks; first += depth {
				t.Depth = min(depth, blocks-first)
				part := in.Columns(32*first, min(in.Cols, 32*(first+t.Depth)))
				c.partStrips(p, strips, backA, part, t.Depth)
				t.A, t.APanel = unsafe.Pointer(&strips[0]), 2*t.Depth*p.block
				t.B = unsafe.Add(panels.base(), 2*first*p.block)
				t.Add = flag(op.Add || first > 0)
				t.Ahead, t.AheadStep, t.AheadApart = next.take(t.Rows * t.Panels * t.Depth)
				p.run(t, c.level)
			}
			if sum.base() != out.base() || !op.After.Empty() {
				c.finish(out, sum, op.After.slice(lo, end), dst.Bytes())
			}
		}
	})
	c.Free(left)
	c.Free(room)
	c.Free(backs)
	c.Free(panels)
}

// partStrips cuts rows into strips of so many blocks, and says what takes their scales back.
func (c *CPU) partStrips(p *parts, dst []uint16, back []float32, a Matrix, blocks int) {
	for i := 0; i < a.Rows; i += 32 {
		strip := a.Slice(i, min(a.Rows, i+32))
		p.rows(c.level, dst[i/32*blocks*p.block:], back[i:], strip.f32, strip.Rows, strip.Cols, strip.stride)
	}
}

// partSmall cuts op(b), k x n, into panels, one a row, and says what takes the scales of columns back.
func (c *CPU) partSmall(p *parts, b Matrix, trans bool, k, n int) (panels, backs Matrix) {
	blocks := up32(k) / 32
	panels = c.Scratch(BF16, up32(n)/32, blocks*p.block)
	backs = c.Scratch(F32, panels.Rows, 32)
	c.forRows(panels.Rows, max(1, 64/blocks), func(lo, hi, _, _ int) {
		to, back := panels.b16[lo*panels.stride:], backs.f32[32*lo:32*hi]
		if !trans {
			part := b.Columns(32*lo, min(n, 32*hi))
			p.pairs(c.level, to, back, part.f32, k, part.Cols, part.stride, panels.stride)
			return
		}
		c.partStrips(p, to, back, b.Slice(32*lo, min(n, 32*hi)), blocks)
		p.turn(c.level, to, (hi-lo)*blocks)
	})
	return panels, backs
}

// tallTallParts is tallTall: a slice of a is cut as a whole, and its tiles turned; of b a few panels at a time,
// just before they are multiplied.
func (c *CPU) tallTallParts(dst, a, b Matrix, op MatMul) {
	p := c.parts()
	m, n := up32(dst.Rows), up32(dst.Cols)
	g := newSplitGroups(a.Rows, m, n, p.deepest)
	panel := g.depth / 32 * p.block
	roomA := m / 32 * panel
	wide := min(n/32, 4)
	room := c.Scratch(BF16, c.threads, roomA+wide*panel)
	backs := c.Scratch(F32, c.threads, simd.RoomHalves+m+32*wide)
	sums := c.Scratch(F32, g.groups, m*n)
	tiles := make([]perCore[simd.Halves], c.threads)
	c.run(g.groups, func(group, thread int) {
		t, mine, back := &tiles[thread].of, room.row16(thread), backs.row(thread)
		left, right := mine[:roomA], mine[roomA:]
		backA, backB := back[simd.RoomHalves:simd.RoomHalves+m], back[simd.RoomHalves+m:]
		lo, hi := g.start(group), g.start(group+1)
		sum := dense(sums.row(group), m, n)
		if lo >= hi {
			zeroRows(sum)
		}
		for first := lo; lo < hi; lo += g.depth {
			end := min(hi, lo+g.depth)
			partA, partB := a.Slice(lo, end), b.Slice(lo, end)
			p.pairs(c.level, left, backA, partA.f32, partA.Rows, partA.Cols, partA.stride, panel)
			t.Depth, t.Rows, t.Panels = up32(partA.Rows)/32, m/32, 1
			for i := range t.Rows {
				p.turn(c.level, left[i*panel:], t.Depth)
			}
			t.A, t.APanel, t.BPanel = unsafe.Pointer(&left[0]), 2*panel, 2*panel
			t.BackA, t.Room = unsafe.Pointer(&backA[0]), unsafe.Pointer(&back[0])
			t.CRow, t.Add = 4*sum.stride, flag(lo > first)
			steps := t.Depth * t.Rows
			next := acrossNext(steps*n/32, partA, partB)
			for j := range n / 32 {
				at := j % wide
				if at == 0 {
					some := partB.Columns(32*j, min(partB.Cols, 32*(j+wide)))
					p.pairs(c.level, right, backB, some.f32, some.Rows, some.Cols, some.stride, panel)
				}
				t.B, t.BackB, t.C = unsafe.Pointer(&right[at*panel]), unsafe.Pointer(&backB[32*at]), unsafe.Pointer(&sum.f32[32*j])
				t.Ahead, t.AheadStep, t.AheadApart = next.take(steps)
				p.run(t, c.level)
			}
		}
	})
	c.Free(room)
	c.Free(backs)
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
