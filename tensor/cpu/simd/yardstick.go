package simd

import (
	"encoding/binary"
	"unsafe"
)

// Yardsticks: what this machine can do at best, to compare kernels with. Each
// function does a given amount of work on the calling core and nothing else;
// callers time it interleaved with what they measure, on as many cores. FMALoop is
// the one for arithmetic.
//
// The streams do the same traffic as a kernel with as many inputs and outputs. A
// stream's bytes are those it reads and those it writes; that a store first
// fetches the line is not counted, for kernels pay it too.

// streamStep is how many numbers one turn of the streams' loops takes.
const streamStep = 64

// StreamRead reads a and returns the bytes that moved.
func StreamRead(l Level, a []float32) int {
	return stream(l, streamRead, nil, a, nil)
}

// StreamCopy copies src to dst, of the same length, and returns the bytes that moved.
func StreamCopy(l Level, dst, src []float32) int {
	return stream(l, streamCopy, dst[:len(src)], src, nil)
}

// StreamTriad computes dst = a + 3·b and returns the bytes that moved.
func StreamTriad(l Level, dst, a, b []float32) int {
	return stream(l, streamTriad, dst[:len(a)], a, b[:len(a)])
}

type streamKind int

const (
	streamRead streamKind = iota
	streamCopy
	streamTriad
)

func stream(l Level, kind streamKind, dst, a, b []float32) int {
	turns := 0
	if l > Generic {
		if turns = len(a) / streamStep; turns > 0 {
			streamFast(l, kind, unsafe.SliceData(dst), &a[0], unsafe.SliceData(b), turns)
		}
	}
	rest := turns * streamStep
	switch kind {
	case streamRead:
		sink(a[rest:])
		return len(a) * 4
	case streamCopy:
		copy(dst[rest:], a[rest:])
		return len(a) * 8
	default:
		for i := rest; i < len(a); i++ {
			dst[i] = a[i] + 3*b[i]
		}
		return len(a) * 12
	}
}

// sink adds numbers up in a way the compiler cannot leave out.
//
//go:noinline
func sink(a []float32) (sum float32) {
	for _, x := range a {
		sum += x
	}
	return sum
}

// GatherRows reads the rows of src that the list names, stride bytes each, and
// returns the bytes read. Nothing is stored. Of a row's last four bytes, none are read if there are fewer.
func GatherRows(l Level, src []byte, stride int, list []uint32) int {
	words := stride / 4
	switch {
	case len(list) == 0 || words == 0:
		return 0
	case l > Generic:
		gatherFast(l, &src[0], stride, list, words)
	default:
		for _, r := range list {
			sinkRow(src[int(r)*stride:][:4*words])
		}
	}
	return len(list) * 4 * words
}

// sinkRow is sink for numbers that may lie anywhere.
//
//go:noinline
func sinkRow(row []byte) (sum uint32) {
	for len(row) > 0 {
		sum += binary.LittleEndian.Uint32(row)
		row = row[4:]
	}
	return sum
}
