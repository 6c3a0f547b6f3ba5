package collective

import (
	"unsafe"

	"starling/tensor/simd"
)

// Number is what can be summed.
type Number interface{ float32 | float64 }

// Bytes is the memory of a slice of plain numbers, for calls that move bytes.
func Bytes[T Number | int32 | uint32 | int64 | uint64 | uint16](s []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(s))), len(s)*int(unsafe.Sizeof(*new(T))))
}

// numbers sees bytes as the numbers they are. Segments are cut between numbers
// and scratch memory is aligned, so the bytes are too.
func numbers[T Number](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(*new(T))))
}

// width is the size of a number.
func width[T Number]() int { return int(unsafe.Sizeof(*new(T))) }

// adder is dst += src for one type of number.
func adder[T Number]() func(dst, src []byte) {
	if width[T]() == 4 {
		return addFloat32
	}
	return addFloat64
}

var level = simd.Best()

// addFloat32 leaves the loop to the kernels, where they have instructions for it:
// 1·x + 1·y rounds once, as x + y does.
func addFloat32(dst, src []byte) {
	if level == simd.Generic {
		addNumbers(numbers[float32](dst), numbers[float32](src))
		return
	}
	d, s := simd.Block{Data: unsafe.Pointer(unsafe.SliceData(dst))}, simd.Block{Data: unsafe.Pointer(unsafe.SliceData(src))}
	m := simd.Map{Dst: d, Src: d, Other: s, Rows: 1, Cols: len(dst) / 4, Alpha: 1, Beta: 1, Combine: true}
	m.Run(level)
}

func addFloat64(dst, src []byte) { addNumbers(numbers[float64](dst), numbers[float64](src)) }

func addNumbers[T Number](d, s []T) {
	s = s[:len(d)]
	for i := range d {
		d[i] += s[i]
	}
}
