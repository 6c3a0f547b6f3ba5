package shards

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"slices"
)

// chunk collects edges, or rows of vertices, by the places of their ids in its own list of ids.
type chunk struct {
	text     bool
	most     int // ids
	mostEnds int // ends of edges, or vertices
	mostData int // bytes of names

	numbers []int64
	data    []byte
	from    []uint32 // where a name begins, and the last one ends
	n       int
	slots   []uint32 // open addressing: 1 + place; 0: free
	seed    maphash.Seed

	ends    []uint32 // of edges: source, target, source, …
	weights []float32

	pairs []numbered
	order []uint32
	rank  []uint32
}

type numbered struct {
	id int64
	at uint32
}

// newChunk makes a chunk that takes about half of the memory.
func newChunk(text bool, memory int64) *chunk {
	slots := 1 << 8
	for int64(slots)*2*4 <= memory/16 && slots < 1<<30 {
		slots *= 2
	}
	c := &chunk{text: text, most: slots / 2, mostEnds: int(max(memory/32, 64)), mostData: int(min(max(memory/8, 1<<17), 1<<31)),
		slots: make([]uint32, slots), seed: maphash.MakeSeed()}
	c.reset()
	return c
}

// edgesOfChunk bounds the edges of a chunk.
func edgesOfChunk(memory int64) int64 { return max(memory/64, 32) }

func (c *chunk) reset() {
	clear(c.slots)
	c.numbers, c.data, c.from, c.n = c.numbers[:0], c.data[:0], append(c.from[:0], 0), 0
	c.ends, c.weights = c.ends[:0], c.weights[:0]
}

// full tells whether there may be no space for another edge with names of these lengths.
func (c *chunk) full(bytes int) bool {
	return c.n+2 > c.most || len(c.ends)+2 > c.mostEnds || len(c.data) > 0 && len(c.data)+bytes > c.mostData
}

// number is the place of a number among the ids.
func (c *chunk) number(id int64) uint32 {
	mask := uint64(len(c.slots) - 1)
	h := uint64(id) * 0x9e3779b97f4a7c15
	for at := (h ^ h>>32) & mask; ; at = (at + 1) & mask {
		s := c.slots[at]
		if s == 0 {
			c.numbers = append(c.numbers, id)
			c.n++
			c.slots[at] = uint32(c.n)
			return uint32(c.n - 1)
		}
		if c.numbers[s-1] == id {
			return s - 1
		}
	}
}

// name is the place of a name.
func (c *chunk) name(id []byte) uint32 {
	mask := uint64(len(c.slots) - 1)
	for at := maphash.Bytes(c.seed, id) & mask; ; at = (at + 1) & mask {
		s := c.slots[at]
		if s == 0 {
			c.data = append(c.data, id...)
			c.from = append(c.from, uint32(len(c.data)))
			c.n++
			c.slots[at] = uint32(c.n)
			return uint32(c.n - 1)
		}
		if bytes.Equal(c.at(s-1), id) {
			return s - 1
		}
	}
}

func (c *chunk) at(i uint32) []byte { return c.data[c.from[i]:c.from[i+1]] }

// sort puts the ids in order, and makes the ends places in that order.
func (c *chunk) sort() {
	c.rank = slices.Grow(c.rank[:0], c.n)[:c.n]
	if c.text {
		c.order = c.order[:0]
		for i := range uint32(c.n) {
			c.order = append(c.order, i)
		}
		slices.SortFunc(c.order, func(a, b uint32) int { return bytes.Compare(c.at(a), c.at(b)) })
		for i, at := range c.order {
			c.rank[at] = uint32(i)
		}
	} else {
		c.pairs = c.pairs[:0]
		for i, id := range c.numbers {
			c.pairs = append(c.pairs, numbered{id, uint32(i)})
		}
		slices.SortFunc(c.pairs, func(a, b numbered) int { return cmp.Compare(a.id, b.id) })
		for i, p := range c.pairs {
			c.rank[p.at] = uint32(i)
		}
	}
	for i, x := range c.ends {
		c.ends[i] = c.rank[x]
	}
}

// eachKey calls put with the ids in order, as keys.
func (c *chunk) eachKey(put func(key []byte) error) error {
	var key [8]byte
	for i := range c.n {
		k := key[:]
		if c.text {
			k = c.at(c.order[i])
		} else {
			putNumber(k, c.pairs[i].id)
		}
		if err := put(k); err != nil {
			return err
		}
	}
	return nil
}

// Keys are ids, ordered by their bytes.

// putNumber writes the key of a number.
func putNumber(key []byte, id int64) { binary.BigEndian.PutUint64(key, uint64(id)^1<<63) }

func numberOf(key []byte) int64 { return int64(binary.BigEndian.Uint64(key) ^ 1<<63) }
