package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// Messages are lists of numbers in the byte order of the machine, which is little-endian.

// resize is memory for n numbers, s where that is long enough. New memory has a little more, since batches differ, and
// nothing is copied to it.
func resize[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	return make([]T, n, n+n/16)
}

// bytesOf is the memory of numbers.
func bytesOf[T any](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// listOf copies numbers off a message, which may begin at any address.
func listOf[T any](b []byte) []T {
	out := make([]T, len(b)/int(unsafe.Sizeof(*new(T))))
	copy(bytesOf(out), b)
	return out
}

func numbersOf(b []byte) []uint32 { return listOf[uint32](b) }

// appendAt appends the numbers at places.
func appendAt(b []byte, numbers, places []uint32) []byte {
	for _, i := range places {
		b = binary.LittleEndian.AppendUint32(b, numbers[i])
	}
	return b
}

// upTo is 0 to n-1.
func upTo(n int) []uint32 {
	out := make([]uint32, n)
	for i := range out {
		out[i] = uint32(i)
	}
	return out
}

// reader takes lists off a message. Memory is taken for what is there, never for what a message announces;
// short is set once there was too little.
type reader struct {
	b     []byte
	short bool
}

// take is the next n entries of some bytes each.
func (r *reader) take(n, size int) []byte {
	if n < 0 || n > len(r.b)/size {
		r.short, r.b = true, nil
		return nil
	}
	b := r.b[:n*size]
	r.b = r.b[n*size:]
	return b
}

func (r *reader) numbers(n int) []uint32  { return listOf[uint32](r.take(n, 4)) }
func (r *reader) counts(n int) []int32    { return listOf[int32](r.take(n, 4)) }
func (r *reader) floats(n int) []float32  { return listOf[float32](r.take(n, 4)) }
func (r *reader) doubles(n int) []float64 { return listOf[float64](r.take(n, 8)) }

// one is the next number, 0 where there is none.
func (r *reader) one() uint32 {
	if v := r.numbers(1); len(v) == 1 {
		return v[0]
	}
	return 0
}

// below refuses numbers of vertices that a graph does not have.
func below(numbers []uint32, nodes int64) error {
	for _, v := range numbers {
		if int64(v) >= nodes {
			return fmt.Errorf("vertex %d of %d", v, nodes)
		}
	}
	return nil
}

// amounts refuses what is negative, infinite or no number: degrees, sums and probabilities are neither.
func amounts(list []float64) error {
	for _, x := range list {
		if !(x >= 0 && x <= math.MaxFloat64) {
			return fmt.Errorf("%g where a degree or a sum was expected", x)
		}
	}
	return nil
}

// degrees are numbers of 4 bytes, or of 8 where edges have weights.
func (r *reader) degrees(n int, weighted bool) []float64 {
	if weighted {
		return r.doubles(n)
	}
	list := r.numbers(n)
	out := make([]float64, len(list))
	for i, x := range list {
		out[i] = float64(x)
	}
	return out
}
