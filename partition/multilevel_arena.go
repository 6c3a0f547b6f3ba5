package partition

import (
	"math/bits"
	"unsafe"
)

// mlArena hands out small arrays from chunks outside the garbage collector's heap. Their
// sizes are powers of two. A free block is cut in halves until it fits, and joined with its
// other half as soon as that is free as well: what one level leaves behind serves the next
// one, whatever the sizes, and memory once touched is touched again.
//
// K. Knowlton: A fast storage allocator, 1965 (the buddy system).
type mlArena struct {
	chunks []*mlChunk
	number map[uintptr]uint32      // of the chunk at an address
	first  [mlChunkBits + 1]uint32 // by magnitude: a free block, plus one
}

// mlChunk is memory of 1<<mlChunkBits bytes at a multiple of that.
//
// A block's number is its chunk's and, below that, the unit it begins at. A free one keeps
// the numbers of its neighbours in the list, each plus one, in its own first words.
type mlChunk struct {
	raw   []byte // what the system gave, of which the chunk is a part
	at    unsafe.Pointer
	word  []uint32
	state [mlUnits]uint8 // by unit: the magnitude of the block that begins there, and whether it is free
	front int            // in bytes: blocks were cut up to here; the rest was never touched and is zero
}

const (
	mlChunkBits = 20
	mlUnitBits  = 6 // a unit is a line of the cache
	mlUnits     = 1 << (mlChunkBits - mlUnitBits)
	mlIsFree    = 0x80
)

// take gives size bytes. They are zero if they are to be clean.
func (a *mlArena) take(size int, clean bool) unsafe.Pointer {
	want := mlMagnitude(size)
	have := want
	for have < mlChunkBits && a.first[have] == 0 {
		have++
	}
	if a.first[have] == 0 {
		at := a.cut(want)
		if clean { // all of it will be touched
			mlPopulatePages(at, size)
		}
		return at
	}
	b := a.first[have] - 1
	a.unlink(b)
	for ; have > want; have-- {
		a.link(b+1<<(have-1-mlUnitBits), have-1)
	}
	c, unit := a.block(b)
	c.state[unit] = uint8(want)
	lo := int(unit) << mlUnitBits
	if clean {
		clear(c.word[lo/4 : (lo+size+3)/4])
	}
	return unsafe.Add(c.at, lo)
}

// cut takes a block that was never used before. What is passed over to reach a multiple of
// its size is free.
func (a *mlArena) cut(want int) unsafe.Pointer {
	for {
		if n := len(a.chunks); n > 0 {
			c := a.chunks[n-1]
			for c.front%(1<<want) != 0 {
				m := bits.TrailingZeros(uint(c.front))
				a.link(uint32((n-1)*mlUnits+c.front>>mlUnitBits), m)
				c.front += 1 << m
			}
			if at := c.front; at < 1<<mlChunkBits {
				c.front += 1 << want
				c.state[at>>mlUnitBits] = uint8(want)
				return unsafe.Add(c.at, at)
			}
		}
		a.grow()
	}
}

// mlPopulatePages populates the pages that begin within size bytes from at on, if they are
// worth a call of the system.
func mlPopulatePages(at unsafe.Pointer, size int) {
	const page, few = 4096, 4
	skip := int(-uintptr(at) % page)
	if pages := (size - skip + page - 1) / page; pages >= few {
		mlPopulate(unsafe.Slice((*byte)(unsafe.Add(at, skip)), pages*page))
	}
}

// mlMagnitude is that of the smallest block that holds size bytes.
func mlMagnitude(size int) int { return max(bits.Len(uint(max(size, 1)-1)), mlUnitBits) }

// give takes a block back; it tells whether it is the arena's.
func (a *mlArena) give(at unsafe.Pointer) bool {
	b, ok := a.find(at)
	if !ok {
		return false
	}
	c, unit := a.block(b)
	m := int(c.state[unit])
	c.state[unit] = 0
	for ; m < mlChunkBits; m++ {
		other := b ^ 1<<(m-mlUnitBits)
		if c.state[other%mlUnits] != uint8(m)|mlIsFree {
			break
		}
		a.unlink(other)
		b = min(b, other)
	}
	a.link(b, m)
	return true
}

// shrink takes back what a block has beyond size bytes.
func (a *mlArena) shrink(at unsafe.Pointer, size int) {
	b, ok := a.find(at)
	if !ok {
		return
	}
	want := mlMagnitude(size)
	c, unit := a.block(b)
	for m := int(c.state[unit]) - 1; m >= want; m-- {
		c.state[unit] = uint8(m)
		a.link(b+1<<(m-mlUnitBits), m)
	}
}

func (a *mlArena) block(b uint32) (c *mlChunk, unit uint32) { return a.chunks[b/mlUnits], b % mlUnits }

// find is the block that begins at an address.
func (a *mlArena) find(at unsafe.Pointer) (b uint32, ok bool) {
	within := uintptr(at) % (1 << mlChunkBits)
	chunk, ok := a.number[uintptr(at)-within]
	return chunk*mlUnits + uint32(within>>mlUnitBits), ok
}

// link adds a free block to the list of its magnitude.
func (a *mlArena) link(b uint32, magnitude int) {
	c, unit := a.block(b)
	c.state[unit] = uint8(magnitude) | mlIsFree
	next := a.first[magnitude]
	c.word[unit*mlUnitWords], c.word[unit*mlUnitWords+1] = next, 0
	if next != 0 {
		a.words(next - 1)[1] = b + 1
	}
	a.first[magnitude] = b + 1
}

// unlink removes a free block from its list.
func (a *mlArena) unlink(b uint32) {
	c, unit := a.block(b)
	w := a.words(b)
	next, prev := w[0], w[1]
	if next != 0 {
		a.words(next - 1)[1] = prev
	}
	if prev != 0 {
		a.words(prev - 1)[0] = next
	} else {
		a.first[c.state[unit]&^mlIsFree] = next
	}
	c.state[unit] = 0
}

const mlUnitWords = 1 << mlUnitBits / 4

// words are those of a free block that its list uses.
func (a *mlArena) words(b uint32) []uint32 {
	c, unit := a.block(b)
	return c.word[unit*mlUnitWords:][:2]
}

// grow adds a chunk.
func (a *mlArena) grow() {
	const size = 1 << mlChunkBits
	raw := mlMap(2 * size)
	c := &mlChunk{raw: raw}
	if raw == nil {
		raw = make([]byte, 2*size) // of the heap, which keeps it while c is there
	}
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % size
	c.at = unsafe.Pointer(&raw[skip])
	c.word = unsafe.Slice((*uint32)(c.at), size/4)
	if a.number == nil {
		a.number = map[uintptr]uint32{}
	}
	a.number[uintptr(c.at)] = uint32(len(a.chunks))
	a.chunks = append(a.chunks, c)
}

// free gives all chunks back to the system.
func (a *mlArena) free() {
	for _, c := range a.chunks {
		if c.raw != nil {
			mlUnmap(c.raw)
		}
	}
	*a = mlArena{}
}
