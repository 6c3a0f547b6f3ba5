package collective

import "unsafe"

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

// stepBytes are added, or copied, at a time where there are instructions for it.
const stepBytes = 256

func addFloat32(dst, src []byte) { addNumbers[float32](dst, src, addSteps32) }

func addFloat64(dst, src []byte) { addNumbers[float64](dst, src, addSteps64) }

func addNumbers[T Number](dst, src []byte, fast func(dst, src *byte, steps int)) {
	src = src[:len(dst)]
	if steps := len(dst) / stepBytes; canStep && steps > 0 {
		fast(&dst[0], &src[0], steps)
		dst, src = dst[steps*stepBytes:], src[steps*stepBytes:]
	}
	d, s := numbers[T](dst), numbers[T](src)
	for i := range d {
		d[i] += s[i]
	}
}
