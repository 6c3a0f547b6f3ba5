package simd

import (
	"math"
	"unsafe"
)

// TwoWaySplit is a product of float32 numbers, C = A·B or C += A·B, on an AMX unit that has fp16: eleven
// significant bits, against bfloat16's eight, so that two numbers do what takes three in Tiles32, and three products
// what takes six:
//
//	a·b = a0·b0 + (a0·b1 + a1·b0)
//
// But half precision is no wider than 65504, and no finer than 6e-8. So each row of A and each column of B is first
// multiplied with a power of two that brings its largest number to between 2¹⁴ and 2¹⁵; BackA and BackB take that
// back at the end. Numbers from 2⁻¹⁶ of the largest on are then off by at most 2⁻²³ of themselves, smaller ones by
// 2⁻³⁹ of the largest; the product left out is at most 2⁻²² of |a·b| and of either sign. All of these are less than the
// roundings of a sum of 48 numbers or more: errors are as large as float32's. Rows whose largest number is below
// 1e-30 lose bits, sums with one over 1e25 may become infinite, and those with infinities or NaN are NaN.
//
// Rows, Panels and Depth are as in Tiles32; a block is two parts of two tiles each. Of a block's 32 numbers of
// depth, 2j and 2j+1 are a pair:
//
//	tile of A:  line r:  A[r][0] A[r][1]  A[r][2] A[r][3]  ...
//	tile of B:  line j:  B[2j][0] B[2j+1][0]  B[2j][1] B[2j+1][1]  ...
type TwoWaySplit struct {
	A, B, C      unsafe.Pointer
	BackA, BackB unsafe.Pointer // a number each row of A and column of B
	Workspace    unsafe.Pointer // FP16Workspace numbers
	// Bytes from one strip of A, panel of B, row of C to the next.
	APanel, BPanel, CRow int
	Depth, Rows, Panels  int
	Add                  int
	Own                  int // C is far: ask for it before it is written
	NonTemporal          int // C is lines on their own, and not added to: write it by non-temporal stores
	// Ahead is memory the caller will need next: in each step of depth 16 lines are prefetched, in pairs that are
	// AheadApart bytes from each other, AheadStep further each time.
	Ahead                 uintptr
	AheadStep, AheadApart int
}

// FP16Block is how many numbers of half precision a block of 32 x 32 float32 takes: two parts, and a cache line so
// that blocks do not all fall into the same few cache sets.
const FP16Block = 2*1024 + 32

// FP16Workspace is the size of Halves.Workspace.
const FP16Workspace = 1024

// Run computes the product.
func (t *TwoWaySplit) Run(level Level) {
	if level >= AMXFP16 {
		runTwoWay(t)
		return
	}
	backA := unsafe.Slice((*float32)(t.BackA), t.Rows*32)
	backB := unsafe.Slice((*float32)(t.BackB), t.Panels*32)
	for i := range t.Rows * 32 {
		for j := range t.Panels * 32 {
			a := unsafe.Slice((*uint16)(unsafe.Add(t.A, i/32*t.APanel)), t.Depth*FP16Block)
			b := unsafe.Slice((*uint16)(unsafe.Add(t.B, j/32*t.BPanel)), t.Depth*FP16Block)
			c := (*float32)(unsafe.Add(t.C, i*t.CRow+4*j))
			sum := twoWayDot(a, b, i&31, j&31, 32*t.Depth) * backA[i] * backB[j]
			if t.Add != 0 {
				sum += *c
			}
			*c = sum
		}
	}
}

// twoWayDot is the product of row i of a strip and column j of a panel.
func twoWayDot(a, b []uint16, i, j, depth int) (sum float32) {
	for k := range depth {
		for _, half := range [3][2]int{{0, 1}, {0, 0}, {1, 0}} {
			sum += FromHalf(a[halfRowPlace(i, k, half[0])]) * FromHalf(b[halfPairPlace(k, j, half[1])])
		}
	}
	return sum
}

// halfRowPlace is where a strip keeps a half of the number in row i, column k.
func halfRowPlace(i, k, half int) int { return k>>5*FP16Block + half*1024 + i*32 + k&31 }

// halfPairPlace is where a panel keeps a half of the number in row k, column j.
func halfPairPlace(k, j, half int) int {
	return k>>5*FP16Block + half*1024 + j>>4*512 + k>>1&15*32 + j&15*2 + k&1
}

// scaling is the power of two that brings a number of the largest size to between 2¹⁴ and 2¹⁵, up to 2¹⁰⁰, and
// what takes it back.
func scaling(largest float32) (scale, back float32) {
	e := max(math.Float32bits(largest)&^(1<<31)>>23, 41)
	return math.Float32frombits((268 - e) << 23), math.Float32frombits((e - 14) << 23)
}

// larger is the one of the larger size, NaN if one is.
func larger(x, y float32) float32 {
	if math.Float32bits(y)&^(1<<31) > math.Float32bits(x)&^(1<<31) {
		return y
	}
	return x
}

// splitFP16 is a number's two parts.
func splitFP16(x float32) (halves [2]uint16) {
	halves[0] = ToHalf(x)
	halves[1] = ToHalf(x - FromHalf(halves[0]))
	return halves
}

// SplitRowsFP16 makes a strip of up to 32 rows of A, and what takes their scales back, and joins their ranges. Columns
// past the last, up to a whole block, are zeros; rows past the last are left as they are.
func SplitRowsFP16(level Level, dst []uint16, back []float32, ranges Ranges, src []float32, rows, cols, stride int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _, _, _ = dst[(cols+31)/32*FP16Block-1], back[rows-1], ranges[63], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		splitRowsTwoWay(&dst[0], &back[0], &ranges[0], &src[0], rows, cols, stride)
		return
	}
	for i := range rows {
		var largest, scale float32
		row := src[i*stride : i*stride+cols]
		for _, x := range row {
			ranges.join(i, x)
			largest = larger(largest, x)
		}
		scale, back[i] = scaling(largest)
		for k := range (cols + 31) &^ 31 {
			var x float32
			if k < cols {
				x = row[k] * scale
			}
			for half, v := range splitFP16(x) {
				dst[halfRowPlace(i, k, half)] = v
			}
		}
	}
}

// SplitPairsFP16 makes panels of B, which are panel numbers apart, and what takes their columns' scales back, for whole
// panels, and joins the columns' ranges. Rows past the last, up to a whole block, and columns past the last, up to a whole panel, are zeros.
func SplitPairsFP16(level Level, dst []uint16, back []float32, ranges Ranges, src []float32, rows, cols, stride,
	panel int) {
	if rows == 0 || cols == 0 {
		return
	}
	_, _ = dst[(cols-1)/32*panel+(rows+31)/32*FP16Block-1], back[(cols-1)|31]
	_, _ = ranges[RangesSize(cols)-1], src[(rows-1)*stride+cols-1]
	if level >= AVX512 {
		splitPairsTwoWay(&dst[0], &back[0], &ranges[0], &src[0], rows, cols, stride, panel)
		return
	}
	for j := range (cols + 31) &^ 31 {
		at := func(k int) float32 {
			if j >= cols || k >= rows {
				return 0
			}
			return src[k*stride+j]
		}
		var largest, scale float32
		for k := range rows {
			ranges.join(j, at(k))
			largest = larger(largest, at(k))
		}
		scale, back[j] = scaling(largest)
		for k := range (rows + 31) &^ 31 {
			for half, v := range splitFP16(at(k) * scale) {
				dst[j/32*panel+halfPairPlace(k, j&31, half)] = v
			}
		}
	}
}

// TransposeFP16 makes a panel of B of a strip of A, in its place, or the other way round.
func TransposeFP16(level Level, panel []uint16, blocks int) {
	for b := range blocks {
		for tile := range 4 {
			turnTile(level, panel[b*FP16Block+tile*512:b*FP16Block+(tile+1)*512])
		}
	}
}

// ToHalf rounds to the nearest number of half precision, ties to even. NaN stays NaN.
func ToHalf(x float32) uint16 {
	b := math.Float32bits(x)
	sign, size := uint16(b>>16&0x8000), b&^(1<<31)
	switch {
	case size > 0x7f800000:
		return sign | 0x7e00 | uint16(size>>13&0x3ff)
	case size >= 0x477ff000: // 65520 and more
		return sign | 0x7c00
	case size < 0x38800000: // below 2⁻¹⁴: as many times 2⁻²⁴
		return sign | uint16(math.RoundToEven(float64(math.Float32frombits(size))*(1<<24)))
	}
	return sign | uint16((size+0xfff+size>>13&1-0x38000000)>>13)
}

// FromHalf widens a number of half precision.
func FromHalf(h uint16) float32 {
	sign, e, m := uint32(h&0x8000)<<16, uint32(h>>10&31), uint32(h&0x3ff)
	switch e {
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | m<<13)
	case 0:
		return math.Float32frombits(math.Float32bits(float32(m)/(1<<24)) | sign)
	}
	return math.Float32frombits(sign | (e+112)<<23 | m<<13)
}
