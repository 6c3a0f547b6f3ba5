package dataset

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"hash/maphash"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"sync"

	"starling/graph"
)

// nameTable numbers names for several goroutines at once. It is split by hash
// into shards with a lock each; a shard is a few large arrays without pointers for the
// garbage collector. Which number a name gets depends on timing; inOrder
// corrects that by the position where each was first seen.
type nameTable struct {
	seed   maphash.Seed // for long names
	mix    [2]uint64    // for short ones
	shards [shards]nameShard
}

// shards is a power of two; a name's number is its index in the shard times
// shards, plus the shard.
const shards = 16

type nameShard struct {
	mu    sync.Mutex
	slots []nameSlot // open addressing
	used  uint32
	text  []byte   // the long names, a line each
	_     [64]byte // keeps neighbours' locks on other cache lines
}

// nameSlot holds everything of a name except the bytes of a long one: most
// lookups miss the cache, and should do so once.
type nameSlot struct {
	key   nameKey
	first uint64 // least position it was seen at
	tag   uint32 // part of the hash
	place uint32 // 1 + number within the shard; 0: free
}

// nameKey is the name itself if it has at most shortName bytes, with their number in
// the highest. That of a long name is its hash, and longName with the start of its
// line in text; before that is known all bits are set.
type nameKey [2]uint64

const (
	shortName = 15
	longName  = 0xff << 56
)

var errTooManyNames = &graph.InputError{Field: "ids", Found: "2^32 different names or more", Want: "fewer",
	Fix: "split the graph"}

func newNameTable() *nameTable {
	return &nameTable{seed: maphash.MakeSeed(), mix: [2]uint64{rand.Uint64(), rand.Uint64()}}
}

// key is the key of a name, and its hash.
func (t *nameTable) key(name []byte) (nameKey, uint64) {
	if len(name) > shortName {
		h := maphash.Bytes(t.seed, name)
		return nameKey{h, math.MaxUint64}, h
	}
	var b [shortName + 1]byte
	copy(b[:], name)
	b[shortName] = byte(len(name))
	k := nameKey{binary.LittleEndian.Uint64(b[:]), binary.LittleEndian.Uint64(b[8:])}
	return k, t.hash(k)
}

// hash of a short name.
func (t *nameTable) hash(k nameKey) uint64 {
	high, low := bits.Mul64(k[0]^t.mix[0], k[1]^t.mix[1])
	return high ^ low
}

// number is the number of a name seen at the given position; false when the
// table is full.
func (t *nameTable) number(name []byte, seen uint64) (uint32, bool) {
	k, h := t.key(name)
	s := &t.shards[h%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grow(1)
	place, ok := s.number(k, uint32(h>>32), name, seen)
	return place*shards + uint32(h%shards), ok
}

// number is the index of a name. REQUIRES: mu held, a free slot.
func (s *nameShard) number(k nameKey, tag uint32, name []byte, seen uint64) (place uint32, ok bool) {
	slot, found := s.look(k, tag, name)
	if !found {
		if s.used >= 1<<32/shards-1 {
			return 0, false
		}
		s.used++
		if k[1] >= longName {
			k[1] = longName | uint64(len(s.text))
			s.text = append(append(s.text, name...), '\n')
		}
		*slot = nameSlot{k, seen, tag, s.used}
	}
	if seen < slot.first {
		slot.first = seen
	}
	return slot.place - 1, true
}

// find is the number of a name that is there.
func (t *nameTable) find(name []byte) (uint32, bool) {
	k, h := t.key(name)
	s := &t.shards[h%shards]
	if len(s.slots) == 0 {
		return 0, false
	}
	slot, found := s.look(k, uint32(h>>32), name)
	if !found {
		return 0, false
	}
	return (slot.place-1)*shards + uint32(h%shards), true
}

// look finds the slot of a name, or the free one for it.
func (s *nameShard) look(k nameKey, tag uint32, name []byte) (slot *nameSlot, found bool) {
	mask := uint32(len(s.slots) - 1)
	for at := tag & mask; ; at = (at + 1) & mask {
		slot = &s.slots[at]
		if slot.place == 0 {
			return slot, false
		}
		if slot.key == k || slot.key[0] == k[0] && min(slot.key[1], k[1]) >= longName && s.is(slot, name) {
			return slot, true
		}
	}
}

// is compares a long name, which has no line break inside.
func (s *nameShard) is(slot *nameSlot, name []byte) bool {
	line := s.text[slot.key[1]&^longName:]
	return len(line) > len(name) && line[len(name)] == '\n' && string(line[:len(name)]) == string(name)
}

// name appends the name of a slot to b.
func (s *nameShard) name(b []byte, slot *nameSlot) []byte {
	if slot.key[1] >= longName {
		line := s.text[slot.key[1]&^longName:]
		return append(b, line[:bytes.IndexByte(line, '\n')]...)
	}
	at := len(b)
	b = binary.LittleEndian.AppendUint64(b, slot.key[0])
	b = binary.LittleEndian.AppendUint64(b, slot.key[1])
	return b[:at+int(slot.key[1]>>56)]
}

// grow grows the slots until a quarter stays free with more names. The tag holds all
// hash bits that choose one. REQUIRES: mu held.
func (s *nameShard) grow(more int) {
	size := max(64, len(s.slots))
	for 4*(int(s.used)+more) > 3*size {
		size *= 2
	}
	if size == len(s.slots) {
		return
	}
	old := s.slots
	s.slots = make([]nameSlot, size)
	mask := uint32(size - 1)
	for _, x := range old {
		if x.place == 0 {
			continue
		}
		at := x.tag & mask
		for s.slots[at].place != 0 {
			at = (at + 1) & mask
		}
		s.slots[at] = x
	}
}

// inOrder lists the names by first appearance, and for each number the position in
// that list.
func (t *nameTable) inOrder() (names []string, to []uint32) {
	all := t.byFirst()
	most := uint32(0)
	for i := range t.shards {
		most = max(most, t.shards[i].used)
	}
	to = make([]uint32, int(most)*shards)
	names = make([]string, len(all))
	graph.Parallel(int64(len(all)), 1<<14, func(lo, hi int64) {
		var line []byte // names are slices of large strings, not one allocation each
		for v := lo; v < hi; v++ {
			e := all[v]
			s := &t.shards[e.shard]
			slot := &s.slots[e.slot]
			to[int(slot.place-1)*shards+int(e.shard)] = uint32(v)
			at := len(line)
			line = s.name(line, slot)
			names[v] = text(line[at:])
		}
	})
	return names, to
}

// appearance is where a name was first seen, and where it is now.
type appearance struct {
	first       uint64
	shard, slot uint32
}

// byFirst lists all names by first appearance: distributed to blocks, the upper half of
// first, and sorted in each.
func (t *nameTable) byFirst() []appearance {
	var at [shards][]int // for each shard and block, a count; then where the next one goes
	each(shards, func(shard int64) {
		for _, x := range t.shards[shard].slots {
			if x.place != 0 {
				for int(x.first>>32) >= len(at[shard]) {
					at[shard] = append(at[shard], 0)
				}
				at[shard][x.first>>32]++
			}
		}
	})
	total := 0
	var starts []int
	for block, more := 0, true; more; block++ {
		starts = append(starts, total)
		more = false
		for i := range at {
			if block < len(at[i]) {
				at[i][block], total = total, total+at[i][block]
				more = true
			}
		}
	}
	all := make([]appearance, total)
	each(shards, func(shard int64) {
		for i, x := range t.shards[shard].slots {
			if x.place != 0 {
				next := &at[shard][x.first>>32]
				all[*next] = appearance{x.first, uint32(shard), uint32(i)}
				*next++
			}
		}
	})
	each(len(starts)-1, func(block int64) {
		slices.SortFunc(all[starts[block]:starts[block+1]],
			func(a, b appearance) int { return cmp.Compare(a.first, b.first) })
	})
	return all
}

// each calls f for 0 to n-1, on all cores.
func each(n int, f func(i int64)) {
	graph.Parallel(int64(n), 1, func(lo, hi int64) {
		for i := lo; i < hi; i++ {
			f(i)
		}
	})
}
