package multilevel

import (
	"math/bits"
	"unsafe"
)

// buddyArena allocates small arrays from chunks outside the garbage collector's heap, in
// blocks of powers of two. A free block is split until it fits, and joined with its buddy
// as soon as that is free as well: the memory of one level serves the next, whatever the
// sizes, and no new pages are touched.
//
// K. Knowlton: A fast storage allocator, 1965 (the buddy system).
type buddyArena struct {
	chunks []*arenaChunk
	number map[uintptr]uint32    // of the chunk at an address
	first  [chunkBits + 1]uint32 // by order: a free block, plus one
}

// arenaChunk is memory of 1<<chunkBits bytes at a multiple of that.
//
// The number of a block is its chunk's number and, in the lower bits, the unit it begins at.
// A free block keeps the numbers of its neighbours in the free list, each plus one, in its
// own first words.
type arenaChunk struct {
	raw   []byte // the mapping that contains the chunk
	at    unsafe.Pointer
	word  []uint32
	state [chunkUnits]uint8 // by unit: the order of the block that begins there, and whether it is free
	front int               // in bytes: blocks were taken up to here; the rest was never touched and is zero
}

const (
	chunkBits  = 20
	unitBits   = 6 // a unit is a cache line
	chunkUnits = 1 << (chunkBits - unitBits)
	isFree     = 0x80
)

// take returns size bytes, zeroed if they are to be clean.
func (a *buddyArena) take(size int, clean bool) unsafe.Pointer {
	want := blockOrder(size)
	have := want
	for have < chunkBits && a.first[have] == 0 {
		have++
	}
	if a.first[have] == 0 {
		at := a.takeNew(want)
		if clean { // all of it will be touched
			populateRange(at, size)
		}
		return at
	}
	b := a.first[have] - 1
	a.unlink(b)
	for ; have > want; have-- {
		a.link(b+1<<(have-1-unitBits), have-1)
	}
	c, unit := a.block(b)
	c.state[unit] = uint8(want)
	lo := int(unit) << unitBits
	if clean {
		clear(c.word[lo/4 : (lo+size+3)/4])
	}
	return unsafe.Add(c.at, lo)
}

// takeNew takes a block that was never used before. What is skipped to align it to its size
// becomes free blocks.
func (a *buddyArena) takeNew(want int) unsafe.Pointer {
	for {
		if n := len(a.chunks); n > 0 {
			c := a.chunks[n-1]
			for c.front%(1<<want) != 0 {
				m := bits.TrailingZeros(uint(c.front))
				a.link(uint32((n-1)*chunkUnits+c.front>>unitBits), m)
				c.front += 1 << m
			}
			if at := c.front; at < 1<<chunkBits {
				c.front += 1 << want
				c.state[at>>unitBits] = uint8(want)
				return unsafe.Add(c.at, at)
			}
		}
		a.grow()
	}
}

// populateRange populates the pages that begin within size bytes from at on, if they are
// worth a system call.
func populateRange(at unsafe.Pointer, size int) {
	const page, few = 4096, 4
	skip := int(-uintptr(at) % page)
	if pages := (size - skip + page - 1) / page; pages >= few {
		populate(unsafe.Slice((*byte)(unsafe.Add(at, skip)), pages*page))
	}
}

// blockOrder is the order of the smallest block that holds size bytes: its size is 1<<order.
func blockOrder(size int) int { return max(bits.Len(uint(max(size, 1)-1)), unitBits) }

// give takes a block back; it reports whether it is the arena's.
func (a *buddyArena) give(at unsafe.Pointer) bool {
	b, ok := a.find(at)
	if !ok {
		return false
	}
	c, unit := a.block(b)
	m := int(c.state[unit])
	c.state[unit] = 0
	for ; m < chunkBits; m++ {
		other := b ^ 1<<(m-unitBits)
		if c.state[other%chunkUnits] != uint8(m)|isFree {
			break
		}
		a.unlink(other)
		b = min(b, other)
	}
	a.link(b, m)
	return true
}

// shrink frees what a block has beyond size bytes.
func (a *buddyArena) shrink(at unsafe.Pointer, size int) {
	b, ok := a.find(at)
	if !ok {
		return
	}
	want := blockOrder(size)
	c, unit := a.block(b)
	for m := int(c.state[unit]) - 1; m >= want; m-- {
		c.state[unit] = uint8(m)
		a.link(b+1<<(m-unitBits), m)
	}
}

func (a *buddyArena) block(b uint32) (c *arenaChunk, unit uint32) {
	return a.chunks[b/chunkUnits], b % chunkUnits
}

// find is the block that begins at an address.
func (a *buddyArena) find(at unsafe.Pointer) (b uint32, ok bool) {
	within := uintptr(at) % (1 << chunkBits)
	chunk, ok := a.number[uintptr(at)-within]
	return chunk*chunkUnits + uint32(within>>unitBits), ok
}

// link adds a free block to the list of its order.
func (a *buddyArena) link(b uint32, order int) {
	c, unit := a.block(b)
	c.state[unit] = uint8(order) | isFree
	next := a.first[order]
	c.word[unit*unitWords], c.word[unit*unitWords+1] = next, 0
	if next != 0 {
		a.words(next - 1)[1] = b + 1
	}
	a.first[order] = b + 1
}

// unlink removes a free block from its list.
func (a *buddyArena) unlink(b uint32) {
	c, unit := a.block(b)
	w := a.words(b)
	next, prev := w[0], w[1]
	if next != 0 {
		a.words(next - 1)[1] = prev
	}
	if prev != 0 {
		a.words(prev - 1)[0] = next
	} else {
		a.first[c.state[unit]&^isFree] = next
	}
	c.state[unit] = 0
}

const unitWords = 1 << unitBits / 4

// words are the list links of a free block.
func (a *buddyArena) words(b uint32) []uint32 {
	c, unit := a.block(b)
	return c.word[unit*unitWords:][:2]
}

// grow adds a chunk.
func (a *buddyArena) grow() {
	const size = 1 << chunkBits
	raw := mapPages(2 * size)
	c := &arenaChunk{raw: raw}
	if raw == nil {
		raw = make([]byte, 2*size) // on the heap, where c keeps it alive
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
func (a *buddyArena) free() {
	for _, c := range a.chunks {
		if c.raw != nil {
			unmapPages(c.raw)
		}
	}
	*a = buddyArena{}
}
