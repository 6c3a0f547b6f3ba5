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
	end                  *uint32 // room for the assembly
}

const (
	modeAdd    = 1
	modeBF16   = 2
	modeStream = 4
)

var one = float32(1)

// start is the address of a row's first number, and stride the bytes between rows.
func (s *Strided) start() (p unsafe.Pointer, stride int) {
	if s.B16 != nil {
		return unsafe.Pointer(unsafe.SliceData(s.B16)), 2 * s.Stride
	}
	return unsafe.Pointer(unsafe.SliceData(s.F32)), 4 * s.Stride
}

// factor is a list's address and 1, or that of a one and 0.
func factor(list []float32) (*float32, int) {
	if list == nil {
		return &one, 0
	}
	return unsafe.SliceData(list), 1
}

func aggregateFast(level Level, a *RowSums) bool {
	if level < AVX512 {
		return false
	}
	s := sumArgs{
		ptr: unsafe.SliceData(a.Ptr), index: unsafe.SliceData(a.Index), rows: a.Rows,
		vectors: (a.Cols + 15) / 16, mask: 0xffff >> (-a.Cols & 15),
		self: uint64(math.Float32bits(a.Self)), first: a.First, acc: unsafe.SliceData(a.Acc),
	}
	s.dst, s.dstStride = a.Dst.start()
	s.src, s.srcStride = a.Src.start()
	s.value, _ = factor(nil)
	s.colScale, s.colMask = factor(a.ColScale)
	s.colMask = -s.colMask
	s.rowScale, s.rowStep = factor(a.RowScale)
	s.rowStep *= 4
	if a.Add {
		s.mode |= modeAdd
	}
	if a.Dst.B16 != nil {
		s.mode |= modeBF16
	}
	if a.Stream && !a.Add && (uintptr(s.dst)|uintptr(s.dstStride)|uintptr(a.Cols*a.Dst.size()))&63 == 0 && a.Dst.size() == a.Src.size() {
		s.mode |= modeStream
	}
	if from, to := a.Ptr[0], a.Ptr[a.Rows]; from < to {
		s.prefetch, s.last = aheadOf(a.Src), &a.Index[to-1]
		if a.Value != nil {
			s.value, s.valueStep = &a.Value[from], 4
		}
	}
	if raw := (*byte)(unsafe.Pointer(&s)); a.Src.B16 != nil {
		s.vectors, s.mask = (a.Cols+31)/32, 0xffffffff>>(-a.Cols&31)
		aggregate512b16(raw)
	} else {
		aggregate512(raw)
	}
	return true
}

// GatherAVX512 reads the listed rows of src and adds them up: the yardstick of the
// benchmarks of sparse times dense.
func GatherAVX512(src Strided, index []uint32, bytes int) float32 {
	p, stride := src.start()
	return gather512((*byte)(p), stride, unsafe.SliceData(index), len(index), bytes/64)
}
