package cpu

import (
	"math"
	"unsafe"

	"starling/tensor/cpu/simd"
)

// Split products keep float32's error bound: with k numbers summed, a result misses the exact one by
// at most 32·k·2⁻²⁴·(|A|·|B|), place by place, for all finite numbers whose sums are within
// float32's range. The two-way split alone does not: it rounds numbers that are small beside the
// largest of their row to a multiple of 2⁻³⁹ of that; the three-way split flushes what is below 2⁻¹²⁶.
//
// Rounding adds at most unit(row)·unit(column)·k·limit to an error, where units are about the largest
// numbers. A result that is larger than that by 2²⁴/16 bears it, since |A|·|B| is no smaller than
// the result. So splitting also finds the range of every row and column; where one is so wide that numbers are rounded,
// its results are compared with their limits, and a row with one below is made again of float32
// multiply-adds. A row's outcome depends on that row and on the small side only, not on how rows are
// distributed.
//
// Rejected: finding ranges in a pass of its own before splitting, which takes 7 to 25% of an epoch.

// bounds say which rows and columns have numbers that are rounded, and their units.
type bounds struct {
	simd.RangeBounds
	unit  func(high uint32) float32
	limit float32 // of results, of the product of two units
}

// unitOf is 0 for zeros, NaN for what cannot be split.
func (x *bounds) unitOf(high uint32) float32 {
	switch {
	case high == 0:
		return 0
	case high >= x.Top:
		return float32(math.NaN())
	}
	return x.unit(high)
}

// The two-way split's unit is 2⁻¹⁴ of the largest number's power of two (see simd.TwoWaySplit). Sums are scaled back by
// one side first, which overflows from 2⁹⁸ on. Numbers from 2⁻²² of the largest on are off by at most 128·2⁻²⁴ of
// themselves: of both sides together 256, which is no more than 16·k from leastSum numbers on.
var twoWayBounds = bounds{
	simd.RangeBounds{Least: 41 << 23, Most: math.MaxUint32, Span: 22 << 23, Top: (127 + 98) << 23},
	func(high uint32) float32 { return math.Float32frombits((max(high>>23, 41) - 14) << 23) },
	1 << 11,
}

// leastSum is the fewest numbers of a sum that are split.
const leastSum = 16

// The three-way split's is the largest number, and what the flushing of sums adds. Numbers from 2⁻⁵⁰ on
// have products that are not flushed; the upper part of those from 2¹²⁷ on may become infinite.
var threeWayBounds = bounds{
	simd.RangeBounds{Least: (127 - 50) << 23, Most: (127 - 50) << 23, Top: (127 + 127) << 23},
	func(high uint32) float32 { return 6 + math.Float32frombits(high) },
	1. / (1 << 53) / (1 << 53),
}

// rangesIn is ranges in memory of float32.
func rangesIn(space []float32, n int) simd.Ranges {
	size := simd.RangesSize(n)
	return unsafe.Slice((*uint32)(unsafe.Pointer(&space[:size][0])), size)
}

// units holds the units of all rows or columns, and of the wide ones only, with zeros for others.
type units struct {
	of, wide []float32
	at       []int // which are wide
}

// newUnits are the units of n rows or columns.
func newUnits(x *bounds, ranges simd.Ranges, n int) units {
	space := make([]float32, 2*n)
	u := units{of: space[:n], wide: space[n:]}
	for i := range n {
		low, high := ranges.Of(i)
		u.of[i] = x.unitOf(high)
		if x.Wide(low, high) {
			u.wide[i] = u.of[i]
			u.at = append(u.at, i)
		}
	}
	return u
}

// limits returns the limits of row i's results, to be multiplied with factor, or nil if no result is in doubt.
func (u *units) limits(x *bounds, right *units, i int) (limit []float32, factor float32) {
	switch {
	case u.of[i] == 0:
		return nil, 0
	case u.wide[i] != 0:
		return right.of, u.of[i] * x.limit
	case len(right.at) > 0:
		return right.wide, u.of[i] * x.limit
	}
	return nil, 0
}

// doubt reports whether one of row i's results is below its limit.
func (u *units) doubt(level simd.Level, x *bounds, right *units, i int, row []float32) bool {
	limit, factor := u.limits(x, right, i)
	if limit == nil || u.wide[i] != 0 || len(right.at) > 16 {
		return limit != nil && simd.AnyBelow(level, row, limit, factor)
	}
	for _, j := range right.at {
		if simd.Below(row[j], limit[j], factor) {
			return true
		}
	}
	return false
}

// redoRows makes those rows of sum = a · op(b), or old + that, again that miss their limits.
func (c *Device) redoRows(x *bounds, sum, a, b Matrix, trans bool, left, right units, old Matrix) {
	for i := range sum.Rows {
		to := rowOf(sum, i)
		if !left.doubt(c.level, x, &right, i, to) {
			continue
		}
		clear(to)
		if !old.IsZero() {
			copy(to, rowOf(old, i))
		}
		c.addRowProduct(to, rowOf(a, i), b, trans)
	}
}

// addRowProduct: to += row · op(b), of float32 multiply-adds.
func (c *Device) addRowProduct(to, row []float32, b Matrix, trans bool) {
	if trans {
		for j := range to {
			to[j] += simd.DotProduct(c.level, row, rowOf(b, j)[:len(row)])
		}
		return
	}
	for k, x := range row {
		simd.AddScaled(c.level, to, rowOf(b, k)[:len(to)], x)
	}
}

// fewPlaces is up to how many places of a group's sums are looked at, and made again, one by one.
const fewPlaces = 16

// groupCheck finds the places of a group's sums of aᵀ · b that rounding may have spoiled, slice by slice.
type groupCheck struct {
	level  simd.Level
	x      *bounds
	places [][2]int // to be made again
	looked int
}

// slice looks at the sums after a slice of rows, a and b, whose columns have these ranges. A slice's rounding shows in
// what that slice adds, and |A|·|B| of all slices is no smaller than that of one.
func (g *groupCheck) slice(sum, a, b Matrix, rangesA, rangesB simd.Ranges) {
	if g.many() || !rangesA.AnyWide(g.level, &g.x.RangeBounds) && !rangesB.AnyWide(g.level, &g.x.RangeBounds) {
		return
	}
	left, right := newUnits(g.x, rangesA, a.Cols), newUnits(g.x, rangesB, b.Cols)
	for i := range a.Cols {
		row := rowOf(sum, i)[:b.Cols]
		if !left.doubt(g.level, g.x, &right, i, row) {
			continue
		}
		limit, factor := left.limits(g.x, &right, i)
		for j, y := range row {
			if g.looked <= fewPlaces && simd.Below(y, limit[j], factor) {
				g.look(a, b, i, j, limit[j]*factor)
			}
		}
	}
}

// look keeps a place if what a slice adds to it, signs aside, is below its limit and not nothing.
func (g *groupCheck) look(a, b Matrix, i, j int, limit float32) {
	g.looked++
	if _, size := columnDot(a, b, i, j); size != 0 && !(size >= float64(limit)) {
		g.places = append(g.places, [2]int{i, j})
	}
}

// many reports that it is better to make all sums of the group again.
func (g *groupCheck) many() bool { return g.looked > fewPlaces }

// redo makes the places again, of all rows of the group.
func (g *groupCheck) redo(sum, a, b Matrix) {
	for _, at := range g.places {
		y, _ := columnDot(a, b, at[0], at[1])
		rowOf(sum, at[0])[at[1]] = float32(y)
	}
}

// columnDot is the product of column i of a and column j of b, and that of sizes.
func columnDot(a, b Matrix, i, j int) (sum, size float64) {
	x, y := f32Of(a), f32Of(b)
	for k := range a.Rows {
		term := float64(x[k*a.Stride()+i]) * float64(y[k*b.Stride()+j])
		sum += term
		size += math.Abs(term)
	}
	return sum, size
}
