package simd

import (
	"math"
	"unsafe"

	"starling/tensor/draw"
)

//go:generate sh -c "cd asm && go run ./attend -out ../attend_amd64.s -stubs ../attend_stubs_amd64.go -pkg simd"

// attendArgs and attendRowArgs are what the assembly reads: the order of their fields is
// known to asm/attend, and each takes eight bytes.
type attendArgs struct {
	ptr                  *int64
	index                *uint32
	rows                 int
	left                 *float32
	leftStride           int // numbers
	right                unsafe.Pointer
	rightStride          int // bytes, as all others
	max                  unsafe.Pointer
	maxStride            int
	inv                  unsafe.Pointer
	invStride            int
	out                  *float32
	lanes, group         int // floats an entry, entries a vector
	heads                uint64
	swaps                uint64
	slope                uint64
	tables               *[3][16]uint32
	drop, threshold, key uint64
	dstIDs               *uint32
	firstDst             uint64
	srcIDs               *uint32
	firstSrc             uint64
	last                 *uint32 // the last entry, whose row may be asked for early; nil: none
}

type attendRowArgs struct {
	ptr       *int64
	index     *uint32
	rows      int
	src       unsafe.Pointer
	srcStride int
	dst       unsafe.Pointer
	dstStride int
	mode      int
	weights   *float32
	gap       int
	patterns  *uint32
	loop      int // of vectors or blocks, heads that whole ones are of or 0, and 1 for bfloat16 rows that are asked for
	prefetch  int
	last      *uint32
	inv       unsafe.Pointer
	invStride int
	scale     uint64
	heads     uint64
	z         unsafe.Pointer
	zbuf      *float32
	headShape
}

func bits(x float32) uint64 { return uint64(math.Float32bits(x)) }

// laneTables are what lanes stand for with the given heads: lane l is head l%P of entry l/P.
func laneTables(heads, firstHead int) (t [3][16]uint32) {
	p := Lanes(heads)
	for l := range 16 {
		t[0][l], t[1][l] = uint32(l%p), uint32(l/p)
		c := uint32(draw.Head)
		t[2][l] = uint32(firstHead+l%p) * c * draw.C0
	}
	return t
}

// headLanes is a bit for each lane that is a head.
func headLanes(heads int) uint64 {
	p, mask := Lanes(heads), uint64(0)
	for l := range 16 {
		if l%p < heads {
			mask |= 1 << l
		}
	}
	return mask
}

// swapsFrom allows sums to add lanes l and l^d for d >= least.
func swapsFrom(least int) uint64 {
	s := uint64(0)
	for i, d := range [4]int{1, 2, 4, 8} {
		if d >= least {
			s |= 0xffff << (16 * i)
		}
	}
	return s
}

func onOff(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// rowsWithin is how many rows from r on have at most limit entries together; at least one.
func rowsWithin(ptr []int64, r, rows, limit int) int {
	hi := r + 1
	for hi < rows && ptr[hi+1]-ptr[r] <= int64(limit) {
		hi++
	}
	return hi - r
}

// pattern fills p with the head of each lane of a panel's vectors, as far as there are any its last: columns
// from col on of heads of the given width. Bfloat16 has even columns, then odd ones, of each 32.
func pattern(p []float32, col, cols, width int, bf16 bool) *uint32 {
	words := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(p))), panelCols)
	first := unusedCols(cols, bf16)
	clear(words[:first])
	for i := range panelCols - first {
		c := i
		if bf16 { // laneOf, the other way round
			c = i&^31 + i%16*2 + i>>4&1
		}
		words[first+i] = uint32(min(col+c, col+cols-1) / width)
	}
	return &words[0]
}

// unusedCols is where the vectors or blocks of a number of columns start in a panel.
func unusedCols(cols int, bf16 bool) int {
	block := 16
	if bf16 {
		block = 32
	}
	return panelCols - (cols+block-1)/block*block
}

func attendFast(level Level, a *Attention) bool {
	bf16 := a.Z.B16 != nil
	if level < AVX512 || (!bf16 && a.Dst.B16 != nil) || len(a.Left.F32) >= 1<<31 {
		return false
	}
	p, cols := Lanes(a.Heads), a.Heads*a.Width
	work := a.Work
	patterns := work[:(cols+panelCols-1)/panelCols*panelCols]
	stage := work[len(patterns):][:panelCols]
	work = work[len(patterns)+panelCols:]
	for c := 0; c < cols; c += panelCols {
		pattern(patterns[c:], c, min(panelCols, cols-c), a.Width, bf16)
	}
	tables := laneTables(a.Heads, a.Drop.FirstHead)
	w := attendArgs{
		index: unsafe.SliceData(a.Index), left: unsafe.SliceData(a.Left.F32), leftStride: a.Left.Stride,
		out: &work[0], lanes: p, group: 16 / p, heads: headLanes(a.Heads), swaps: swapsFrom(p),
		slope: bits(a.Slope), tables: &tables,
		drop: onOff(a.Drop.On), threshold: uint64(a.Drop.Threshold) << 16, key: a.Drop.Key,
		srcIDs: unsafe.SliceData(a.Drop.SrcIDs), firstSrc: uint64(a.Drop.FirstSrc),
	}
	if a.Drop.SrcIDs != nil {
		w.firstSrc = 0
	}
	limit := len(work)/p - 16
	for r, n := 0, 0; r < a.Rows; r += n {
		n = rowsWithin(a.Ptr, r, a.Rows, limit)
		w.rows, w.ptr, w.out = n, &a.Ptr[r], &work[0]
		if to := a.Ptr[r+n]; to > a.Ptr[r] && len(a.Left.F32) > cached {
			w.last = &a.Index[to-1]
		}
		w.right, w.rightStride = a.Right.at(r, 0)
		w.max, w.maxStride = a.Max.at(r, 0)
		w.inv, w.invStride = a.Inv.at(r, 0)
		w.firstDst = uint64(a.Drop.FirstDst + uint32(r))
		if a.Drop.DstIDs != nil {
			w.dstIDs = &a.Drop.DstIDs[r]
		}
		attendWeights512((*byte)(unsafe.Pointer(&w)))
		a.sum512(level, r, n, &work[0], patterns, &stage[0])
	}
	return true
}

// sum512 sums rows r to r+n with weights, in panels of columns.
func (a *Attention) sum512(level Level, r, n int, weights *float32, patterns []float32, stage *float32) {
	bf16 := a.Z.B16 != nil
	s := attendRowArgs{
		ptr: &a.Ptr[r], index: unsafe.SliceData(a.Index), rows: n, gap: 4 * Lanes(a.Heads),
		scale: bits(1), heads: 1<<a.Heads - 1, zbuf: stage,
	}
	if a.Drop.On {
		s.scale = bits(a.Drop.Scale)
	}
	if to := a.Ptr[r+n]; to > a.Ptr[r] {
		s.prefetch, s.last = attendAhead(a.Z), &a.Index[to-1]
	}
	var rounded places // where rows are by which the processor does not round
	for c := 0; c < a.Heads*a.Width; c += panelCols {
		cols := min(panelCols, a.Heads*a.Width-c)
		s.src, s.srcStride = a.Z.at(0, c)
		s.dst, s.dstStride = a.Dst.at(r, c)
		s.inv, s.invStride = a.Inv.at(r, 0)
		s.mode = modeOf(level, a.Dst)
		if a.Stream && linesOnly(s.dst, s.dstStride, cols*a.Dst.size()) && s.mode != modeBF16 && (a.Dst.B16 != nil) == bf16 {
			s.mode |= modeStream
		}
		s.patterns = (*uint32)(unsafe.Pointer(&patterns[c]))
		s.headShape, s.tail = panelShape(cols, bf16)
		if bf16 && s.mode&modeNative == 0 {
			rounded = s.placesOf(1, cols, panelCols, a.Z, a.Dst)
			s.places = &rounded
		}
		first, heads := wholeHeads(c, cols, a.Width, bf16)
		s.weights = (*float32)(unsafe.Add(unsafe.Pointer(weights), 4*first))
		s.loop = 64*sumVectors(s.each, heads, bf16) + 2*heads
		if bf16 && s.prefetch > 0 {
			s.loop++
		}
		if raw := (*byte)(unsafe.Pointer(&s)); bf16 {
			attendSum512b16(raw)
		} else {
			attendSum512(raw)
		}
	}
}

// usualHeads is the number of heads that have loops of their own, beside one.
const usualHeads = 4

// wholeHeads is the heads of a panel of columns, one or usualHeads, if each vector or block is of one of them, and the
// first; or 0, 0.
func wholeHeads(col, cols, width int, bf16 bool) (first, heads int) {
	block := 16
	if bf16 {
		block = 32
	}
	first = col / width
	heads = (col+cols-1)/width + 1 - first
	if heads == 1 || width%block == 0 && col%width == 0 && cols%width == 0 && heads == usualHeads {
		return first, heads
	}
	return 0, 0
}

// sumVectors is the number of vectors or blocks that the loop which sums rows of this many whole heads is written for.
func sumVectors(each, heads int, bf16 bool) int {
	if bf16 && each > 4 && heads <= 1 {
		return Lanes(each)
	}
	return each
}

// linesOnly says whether rows are whole cache lines.
func linesOnly(p unsafe.Pointer, stride, bytes int) bool {
	return (uintptr(p)|uintptr(stride)|uintptr(bytes))&63 == 0
}

// modeOf is how rows of dst are written.
func modeOf(level Level, dst Strided) int {
	switch {
	case dst.B16 == nil:
		return 0
	case level >= AMX:
		return modeBF16 | modeNative
	}
	return modeBF16
}

// lineOf is where the first cache line in work starts.
func lineOf(work []float32) unsafe.Pointer {
	p := unsafe.Pointer(unsafe.SliceData(work))
	return unsafe.Add(p, -uintptr(p)&63)
}
