package partition

import "math/bits"

// mlRating sums weights by key: a hash table with linear probing that is as small
// as the vertex at hand allows, so it stays in the first-level cache, where an
// array over all keys would miss at every step. A slot is key+1 in the upper half
// and the sum in the lower; zero is empty.
type mlRating struct {
	slot  []uint64
	used  []uint32
	keys  []uint32 // for gather
	shift uint32
	mask  uint32
}

// reset makes room for at most keys different ones. The table must be empty.
func (t *mlRating) reset(keys int) {
	bit := max(bits.Len(uint(keys))+1, 4)
	if 1<<bit > len(t.slot) {
		t.slot = make([]uint64, 1<<bit)
	}
	t.shift, t.mask = uint32(32-bit), uint32(1)<<bit-1
}

// gather reads the keys of some neighbours. It is a loop of its own because its
// reads miss the cache: here many are under way at once, while a wrong guess at a
// branch of the table would wait for each.
func (t *mlRating) gather(adj, key []uint32) []uint32 {
	if cap(t.keys) < len(adj) {
		t.keys = make([]uint32, 2*len(adj))
	}
	keys := t.keys[:len(adj)]
	for i, u := range adj {
		keys[i] = key[u]
	}
	return keys
}

// addOnes adds one for each of keys.
func (t *mlRating) addOnes(keys []uint32) {
	slot, mask, shift, used := t.slot, t.mask, t.shift&31, t.used
	for _, key := range keys {
		i := key * mlSpreader >> shift
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

// addAll adds a weight for each of keys.
func (t *mlRating) addAll(keys, w []uint32) {
	slot, mask, shift, used := t.slot, t.mask, t.shift&31, t.used
	w = w[:len(keys)]
	for j, key := range keys {
		i := key * mlSpreader >> shift
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

// mlSpreader is 2^32 over the golden ratio.
const mlSpreader = 0x9e3779b1

// get reads a sum; 0 if the key is absent.
func (t *mlRating) get(key uint32) uint32 {
	want := uint64(key) + 1
	for i := key * mlSpreader >> t.shift; ; i = (i + 1) & t.mask {
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
func (t *mlRating) clear() {
	for _, i := range t.used {
		t.slot[i] = 0
	}
	t.used = t.used[:0]
}
