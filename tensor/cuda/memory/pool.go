package memory

import (
	"math/bits"
	"slices"
)

// pool is small pieces of the GPU's memory that are free. Operations run in the order of their calls, so what is freed
// may be used by the next operation. The lowest address that fits is taken: a step that comes again has the matrices of
// the one before in the same places, and its graph needs no new arguments.
type pool struct {
	free map[int][]piece // by size, in order of addresses
}

// piece is one that is free, and since when.
type piece struct {
	p     uintptr
	since int
}

// strictNamed is the variable with which pieces have their exact size and are filled with what is not a number when
// they are freed, so that tests find who reads or writes what is not theirs.
const strictNamed = "STARLING_CUDA_STRICT"

// sizeOf is how much is taken for n bytes: a multiple of 256; of small pieces one of 16 sizes between two powers of
// two, so that batches of about the same size use the same pieces.
func (mem *Memory) sizeOf(n int) int {
	step := 256
	if !mem.strict && n < largePiece {
		step = max(step, 1<<bits.Len(uint(n-1))>>5)
	}
	return (n + step - 1) / step * step
}

func (p *pool) take(size int) uintptr {
	list := p.free[size]
	if len(list) == 0 {
		return 0
	}
	first := list[0].p
	p.free[size] = slices.Delete(list, 0, 1)
	return first
}

func (p *pool) give(at uintptr, size, now int) {
	list := p.free[size]
	i, _ := slices.BinarySearchFunc(list, at, func(s piece, at uintptr) int { return int(s.p) - int(at) })
	p.free[size] = slices.Insert(list, i, piece{at, now})
}

// old takes out what has been free since before some time.
func (p *pool) old(before int) (all []lost) {
	for size, list := range p.free {
		p.free[size] = slices.DeleteFunc(list, func(s piece) bool {
			if s.since < before {
				all = append(all, lost{s.p, size})
				return true
			}
			return false
		})
	}
	return all
}
