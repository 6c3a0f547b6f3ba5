package simd

import (
	"math"
	"unsafe"
)

//go:generate sh -c "cd asm && go run ./sparse -out ../sparse_amd64.s -stubs ../sparse_stubs_amd64.go -pkg simd"

// sumArgs is RowSums as the assembly reads it: the order and size of the fields
// are known to asm/sparse. A factor that is left out is a one that is never stepped over.
type sumArgs struct {
	dst, src             unsafe.Pointer
	ptr                  *int64
	index                *uint32
	value                *float32
	valueStep            int
	colScale             *float32
	colMask              int
	rowScale             *float32
	rowStep              int
	dstStride, srcStride int    // bytes
	rows, vectors        int    // vectors of 16 float32 or blocks of 32 bfloat16 of a source row
	mask                 uint64 // of the last vector's lanes
	self                 uint64
	first                int
	mode                 int
	acc                  *float32
	prefetch             int // bytes of index
	last                 *uint32
	selfScale            *float32
	selfMask             int
}

const (
	modeAdd    = 1
	modeBF16   = 2
	modeStream = 4
	modeNative = 8
	modeDirect = 16
)

var one = float32(1)

// start is the address of a row's first number, and stride the bytes between rows.
func (s *Strided) start() (p unsafe.Pointer, stride int) {
	if s.B16 != nil {
		return unsafe.Pointer(unsafe.SliceData(s.B16)), 2 * s.Stride
	}
	return unsafe.Pointer(unsafe.SliceData(s.F32)), 4 * s.Stride
}

// at is the address of column c of row r and the bytes between rows.
func (s *Strided) at(r, c int) (p unsafe.Pointer, stride int) {
	p, stride = s.start()
	return unsafe.Add(p, r*stride+c*s.size()), stride
}

// factor is a list's address and 1, or that of a one and 0.
func factor(list []float32) (*float32, int) {
	if list == nil {
		return &one, 0
	}
	return unsafe.SliceData(list), 1
}

func aggregateFast(level Level, a *RowSums) bool {
	switch {
	case level >= AVX512:
		aggregateAVX512(level, a)
	case level == AVX2 && a.Dst.B16 == nil:
		aggregateAVX2(a)
	case level == AVX2:
		aggregateAVX2Rounded(a)
	default:
		return false
	}
	return true
}

// aggregateAVX512 sums rows in registers: of wider ones panelCols columns at a time.
func aggregateAVX512(level Level, a *RowSums) {
	s := newSumArgs(a)
	bf16, dst, src := a.Src.B16 != nil, s.dst, s.src
	if bf16 && level >= AMX {
		s.mode |= modeNative
	}
	if !a.Add && (a.Dst.B16 != nil) == bf16 && (!bf16 || level >= AMX) {
		s.mode |= modeDirect
	}
	for c := 0; c < a.Cols; c += panelCols {
		cols := min(panelCols, a.Cols-c)
		s.vectors, s.mask = vectorsOf(cols, bf16)
		s.dst, s.src = unsafe.Add(dst, c*a.Dst.size()), unsafe.Add(src, c*a.Src.size())
		s.mode &^= modeStream
		if a.Stream && !a.Add && a.Dst.size() == a.Src.size() && linesOnly(s.dst, s.dstStride, cols*a.Dst.size()) {
			s.mode |= modeStream
		}
		if raw := (*byte)(unsafe.Pointer(&s)); bf16 {
			aggregate512b16(raw)
		} else {
			aggregate512(raw)
		}
	}
}

// tailMasks[8-n:] are the lanes' masks of a vector of n numbers.
var tailMasks = [16]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff,
	0xffffffff}

func aggregateAVX2(a *RowSums) {
	s := newSumArgs(a)
	if a.Src.B16 == nil {
		s.vectors = (a.Cols + 7) / 8
		s.mask = uint64(uintptr(unsafe.Pointer(&tailMasks[-a.Cols&7])))
		aggregate256((*byte)(unsafe.Pointer(&s)))
		return
	}
	s.mask = uint64(uintptr(unsafe.Pointer(&tailMasks[0])))
	if s.vectors = a.Cols / 8; s.vectors > 0 {
		aggregate256b16((*byte)(unsafe.Pointer(&s)))
	}
	if done := a.Cols &^ 7; done < a.Cols {
		rest := *a
		rest.Dst.F32, rest.Src.B16, rest.Cols = a.Dst.F32[done:], a.Src.B16[done:], a.Cols-done
		aggregateGeneric(&rest)
	}
}

// aggregateAVX2Rounded sums into scratch, a row at a time, and rounds in plain Go.
func aggregateAVX2Rounded(a *RowSums) {
	row := make([]float32, a.Cols)
	one := *a
	one.Dst, one.Rows, one.Add, one.RowScale = Strided{F32: row, Stride: a.Cols}, 1, false, nil
	for r := range a.Rows {
		one.Ptr, one.First = a.Ptr[r:r+2], a.First+r
		aggregateAVX2(&one)
		scale := float32(1)
		if a.RowScale != nil {
			scale = a.RowScale[r]
		}
		a.Dst.put(row, scale, a.Add, r, 0)
	}
}

func newSumArgs(a *RowSums) sumArgs {
	s := sumArgs{
		ptr: unsafe.SliceData(a.Ptr), index: unsafe.SliceData(a.Index), rows: a.Rows,
		self: uint64(math.Float32bits(a.Self)), first: a.First, acc: unsafe.SliceData(a.Acc),
	}
	s.dst, s.dstStride = a.Dst.start()
	s.src, s.srcStride = a.Src.start()
	s.value, _ = factor(nil)
	s.colScale, s.colMask = factor(a.ColScale)
	s.colMask = -s.colMask
	s.selfScale, s.selfMask = factor(a.SelfScale)
	s.selfMask = -s.selfMask
	s.rowScale, s.rowStep = factor(a.RowScale)
	s.rowStep *= 4
	if a.Add {
		s.mode |= modeAdd
	}
	if a.Dst.B16 != nil {
		s.mode |= modeBF16
	}
	if from, to := a.Ptr[0], a.Ptr[a.Rows]; from < to {
		s.prefetch, s.last = a.ahead(), &a.Index[to-1]
		if a.Value != nil {
			s.value, s.valueStep = &a.Value[from], 4
		}
	}
	return s
}

// ahead is as aheadOf; bfloat16 rows of more than a line are prefetched even if they stay in
// the third-level cache (width 40 of 13 MiB: 0.81 of a gather's speed, 0.66 without).
func (a *RowSums) ahead() int {
	if a.Cols > 32 && 2*len(a.Src.B16) >= 2<<20 {
		return 4 * prefetchEntries
	}
	return aheadOf(a.Src)
}
