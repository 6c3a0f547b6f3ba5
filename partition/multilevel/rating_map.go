package multilevel

import "math/bits"

// ratingMap sums weights by key: a hash table with linear probing, sized for the vertex at
// hand, so that it stays in the L1 cache where an array over all keys would miss. A slot is
// key+1 in the upper half and the sum in the lower; zero is empty.
type ratingMap struct {
	slot     []uint64
	used     []uint32
	keys     []uint32 // for gather
	reassign uint32
	mask     uint32
}

// reset sizes the table for at most the given number of keys. It must be empty.
func (t *ratingMap) reset(keys int) {
	bit := max(bits.Len(uint(keys))+1, 4)
	if 1<<bit > len(t.slot) {
		t.slot = make([]uint64, 1<<bit)
	}
	t.reassign, t.mask = uint32(32-bit), uint32(1)<<bit-1
}

// gather reads the keys of some neighbours. It is a loop of its own because its reads
// miss the cache: here many misses overlap, while a mispredicted branch of the table would
// wait for each.
func (t *ratingMap) gather(adj, key []uint32) []uint32 {
	if cap(t.keys) < len(adj) {
		t.keys = make([]uint32, 2*len(adj))
	}
	keys := t.keys[:len(adj)]
	for i, u := range adj {
		keys[i] = key[u]
	}
	return keys
}

// addUnit adds one for each of keys.
func (t *ratingMap) addUnit(keys []uint32) {
	slot, mask, reassign, used := t.slot, t.mask, t.reassign&31, t.used
	for _, key := range keys {
		i := key * golden >> reassign
		for {
			s := slot[i&mask]
			if uint32(s>>32) == key+1 {
				slot[i&mask] = s + 1
				break
			}
			if s == 0 {
				slot[i&mask] = (uint64(key)+1)<<32 | 1
				used = append(used, i&mask)
				break
			}
			i++
		}
	}
	t.used = used
}

// addWeighted adds a weight for each of keys.
func (t *ratingMap) addWeighted(keys, w []uint32) {
	slot, mask, reassign, used := t.slot, t.mask, t.reassign&31, t.used
	w = w[:len(keys)]
	for j, key := range keys {
		i := key * golden >> reassign
		for {
			s := slot[i&mask]
			if uint32(s>>32) == key+1 {
				slot[i&mask] = s + uint64(w[j])
				break
			}
			if s == 0 {
				slot[i&mask] = (uint64(key)+1)<<32 | uint64(w[j])
				used = append(used, i&mask)
				break
			}
			i++
		}
	}
	t.used = used
}

// golden is 2^32 over the golden ratio.
const golden = 0x9e3779b1

// get reads a sum; 0 if the key is absent.
func (t *ratingMap) get(key uint32) uint32 {
	want := uint64(key) + 1
	for i := key * golden >> t.reassign; ; i = (i + 1) & t.mask {
		s := t.slot[i]
		if s>>32 == want {
			return uint32(s)
		}
		if s == 0 {
			return 0
		}
	}
}

// clear empties the table.
func (t *ratingMap) clear() {
	for _, i := range t.used {
		t.slot[i] = 0
	}
	t.used = t.used[:0]
}
