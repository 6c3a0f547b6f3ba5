package dataset

import (
	"encoding/binary"
	"slices"
	"unsafe"
)

// nameBatch numbers many names of a block together, shard by shard: a lock is taken
// once per shard and not once per name, and the slots of several are fetched at a time.
type nameBatch struct {
	table   *nameTable
	shards  [shards][]batchedName
	pending int
	sum     uint32 // of what is prefetched, so that it is not optimised away
}

// batchedName is a name of the block, where it is in it, and which of them it is.
type batchedName struct {
	key        nameKey
	tag, index uint32
	start, end uint32
}

const (
	mostBatched = 1 << 15 // names: 1 MiB of them, which fits a core's cache
	fetched     = 16      // slots prefetched at a time
)

// add adds an end of an edge, a range of the block.
func (n *nameBatch) add(b *block, name []byte, index int) {
	start := int(uintptr(unsafe.Pointer(unsafe.SliceData(name))) - uintptr(unsafe.Pointer(unsafe.SliceData(b.data))))
	k, h := n.key(b.data, start, len(name))
	s := &n.shards[h%shards]
	*s = append(*s, batchedName{k, uint32(h >> 32), uint32(index), uint32(start), uint32(start + len(name))})
	n.pending++
}

// key is the table's key. It reads a short name as two words if bytes follow
// it, in a third of the time.
func (n *nameBatch) key(data []byte, start, size int) (nameKey, uint64) {
	if size > shortName || start+shortName+1 > len(data) {
		return n.table.key(data[start : start+size])
	}
	b := data[start : start+shortName+1]
	low, high := uint64(1)<<(8*size)-1, uint64(1)<<(8*max(size-8, 0))-1 // all bits from 8 on
	k := nameKey{binary.LittleEndian.Uint64(b) & low, binary.LittleEndian.Uint64(b[8:])&high | uint64(size)<<56}
	return k, n.table.hash(k)
}

// number fills in the numbers of the block's names, of which there are two per edge, and
// empties the batch; false if the table is full.
func (n *nameBatch) number(b *block, edges int) bool {
	b.src, b.dst = slices.Grow(b.src, edges-len(b.src))[:edges], slices.Grow(b.dst, edges-len(b.dst))[:edges]
	ends := [2][]uint32{b.src, b.dst}
	for i := range shards {
		i = (i + b.index*29) % shards // other blocks use other shards
		s := &n.table.shards[i]
		s.mu.Lock()
		s.grow(len(n.shards[i]))
		for names := range slices.Chunk(n.shards[i], fetched) {
			n.prefetch(s, names)
			for _, x := range names {
				place, ok := s.number(x.key, x.tag, b.data[x.start:x.end], uint64(b.index)<<32+uint64(x.index))
				if !ok {
					s.mu.Unlock()
					return false
				}
				ends[x.index%2][x.index/2] = place*shards + uint32(i)
			}
		}
		s.mu.Unlock()
		n.shards[i] = n.shards[i][:0]
	}
	n.pending = 0
	return true
}

// prefetch reads the slots where names will be searched, so that cache misses overlap.
// One search after the other would wait for each.
func (n *nameBatch) prefetch(s *nameShard, names []batchedName) {
	mask, sum := uint32(len(s.slots)-1), uint32(0)
	for i := range names {
		sum += s.slots[names[i].tag&mask].tag
	}
	n.sum += sum
}
