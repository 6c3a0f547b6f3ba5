package simd

import (
	"math"
	"unsafe"

	"starling/tensor/bfloat"
)

// Tiles32 is a product of float32 numbers, C = A·B or C += A·B, on AMX, which
// knows bfloat16 only. A float32 has 24 significant bits and is exactly the sum of three
// bfloat16 of eight each, x = x0 + x1 + x2, each at most 2⁻⁸ of the one before. So
//
//	a·b = a0·b0 + (a0·b1 + a1·b0) + (a0·b2 + a1·b1 + a2·b0)
//
// but for the three products left out: about 2⁻²⁷ of |a·b|, of either sign, and never above 2⁻²³,
// where rounding a sum to float32 takes up to 2⁻²⁴ of it at every step. Products of bfloat16
// are exact in float32, and sums are float32. Numbers from
// 3.39e38 on, infinities and NaN make sums that are NaN; what is below 1e-32 loses bits.
//
// The product is of Rows strips of 32 rows by Panels panels of 32 columns, over Depth
// blocks of 32. Strips of A (SplitRows) and panels of B (SplitPairs) are laid out alike: a block is
// three parts of two tiles each, the upper and the lower (left and right) 16. Tiles have 16
// lines of 16 pairs; of a block's 32 numbers of depth, j and 16+j are a pair:
//
//	tile of A:  line r:  A[r][0] A[r][16]  A[r][1] A[r][17]  ...
//	tile of B:  line j:  B[j][0] B[16+j][0]  B[j][1] B[16+j][1]  ...
//
// so each is the transpose of the other, pair by pair (TransposeSplit).
type Tiles32 struct {
	A, B, C unsafe.Pointer
	// Bytes from one strip of A, panel of B, row of C to the next.
	APanel, BPanel, CRow int
	Depth, Rows, Panels  int
	Add                  int
	// Ahead is memory the caller will need next: in each step of depth 16 lines are prefetched, in pairs that are
	// AheadApart bytes from each other, AheadStep further each time.
	Ahead                 uintptr
	AheadStep, AheadApart int
}

// SplitBlock is how many bfloat16 a block of 32 x 32 float32 takes: three parts, and a cache
// line so that blocks do not all fall into the same few cache sets.
const SplitBlock = 3*1024 + 32

// Run computes the product.
func (t *Tiles32) Run(level Level) {
	if level >= AMX {
		runTiles32(t)
		return
	}
	for i := range t.Rows * 32 {
		for j := range t.Panels * 32 {
			a := unsafe.Slice((*uint16)(unsafe.Add(t.A, i/32*t.APanel)), t.Depth*SplitBlock)
			b := unsafe.Slice((*uint16)(unsafe.Add(t.B, j/32*t.BPanel)), t.Depth*SplitBlock)
			c := (*float32)(unsafe.Add(t.C, i*t.CRow+4*j))
			sum := float32(0)
			if t.Add != 0 {
				sum = *c
			}
			*c = splitDot(sum, a, b, i&31, j&31, 32*t.Depth)
		}
	}
}

// splitDot is sum and the product of row i of a strip and column j of a panel.
func splitDot(sum float32, a, b []uint16, i, j, depth int) float32 {
	for k := range depth {
		for _, third := range [6][2]int{{0, 2}, {0, 1}, {1, 1}, {1, 0}, {2, 0}, {0, 0}} {
			sum += bfloat.Widen(a[splitPlace(i, k, third[0])]) * bfloat.Widen(b[turnedPlace(k, j, third[1])])
		}
	}
	return sum
}

// splitPlace is where a strip keeps a third of the number in row i, column k.
func splitPlace(i, k, third int) int {
	return k>>5*SplitBlock + third*1024 + i*32 + k&15*2 + k>>4&1
}

// turnedPlace is where a panel keeps a third of the number in row k, column j.
func turnedPlace(k, j, third int) int {
	return k>>5*SplitBlock + third*1024 + j>>4*512 + k&15*32 + j&15*2 + k>>4&1
}

// split is a number's three parts. The last is cut, not rounded: that only shows in numbers below 1e-32,
// whose rests are subnormal.
func split(x float32) (thirds [3]uint16) {
	for i, half := range [3]uint32{0x8000, 0x8000, 0} {
		top := math.Float32frombits((math.Float32bits(x) + half) &^ 0xffff)
		thirds[i] = uint16(math.Float32bits(top) >> 16)
		x -= top
	}
	return thirds
}

// SplitRows makes a strip of up to 32 rows of A, and joins their ranges. Columns past the last, up to a whole block, are
// zeros; rows past the last are left as they are.
func SplitRows(level Level, dst []uint16, ranges Ranges, src []float32, rows, cols, stride int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _, _ = dst[(cols+31)/32*SplitBlock-1], ranges[63], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		splitRows(&dst[0], &ranges[0], &src[0], rows, cols, stride)
		return
	}
	for i := range rows {
		for k := range (cols + 31) &^ 31 {
			var x float32
			if k < cols {
				x = src[i*stride+k]
			}
			ranges.join(i, x)
			for third, v := range split(x) {
				dst[splitPlace(i, k, third)] = v
			}
		}
	}
}

// SplitPairs makes panels of B, which are panel numbers apart, and joins their columns' ranges. Rows past the last, up to
// a whole block, are zeros; columns past the last get any content.
func SplitPairs(level Level, dst []uint16, ranges Ranges, src []float32, rows, cols, stride, panel int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = dst[(cols-1)/32*panel+(rows+31)/32*SplitBlock-1], src[(rows-1)*stride+cols-1]
	_ = ranges[RangesSize(cols)-1]
	if level >= AVX512 {
		splitPairs(&dst[0], &ranges[0], &src[0], rows, cols, stride, panel)
		return
	}
	for k := range (rows + 31) &^ 31 {
		for j := range cols {
			var x float32
			if k < rows {
				x = src[k*stride+j]
			}
			ranges.join(j, x)
			for third, v := range split(x) {
				dst[j/32*panel+turnedPlace(k, j&31, third)] = v
			}
		}
	}
}

// TransposeSplit makes a panel of B of a strip of A, in its place, or the other way round.
func TransposeSplit(level Level, panel []uint16, blocks int) {
	for b := range blocks {
		block := panel[b*SplitBlock : (b+1)*SplitBlock]
		for tile := range 6 {
			turnTile(level, block[tile*512:(tile+1)*512])
		}
	}
}

func turnTile(level Level, tile []uint16) {
	pairs := unsafe.Slice((*float32)(unsafe.Pointer(&tile[0])), 256)
	if level >= AVX512 {
		transpose(&pairs[0], &pairs[0], 16, 16, 1)
		return
	}
	whole := unsafe.Slice((*uint32)(unsafe.Pointer(&tile[0])), 256)
	for i := range 16 {
		for j := range i {
			whole[16*i+j], whole[16*j+i] = whole[16*j+i], whole[16*i+j]
		}
	}
}
