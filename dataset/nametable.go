package dataset

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"slices"
	"sync"

	"starling/graph"
)

// nameTable numbers names for several goroutines at once. It is split by hash
// into shards with a lock each; a shard keeps the bytes of its names end to end, so
// that a hundred million names are a few large arrays and nothing for the garbage
// collector to visit. Which number a name gets depends on timing; inOrder makes up
// for it with the place where each was first seen.
type nameTable struct {
	seed   maphash.Seed
	shards [shards]nameShard
}

// shards is a power of two; a name's number is its place in the shard times
// shards, plus the shard.
const shards = 64

type nameShard struct {
	mu    sync.Mutex
	slots []uint32 // open addressing: 1 + place of a name, 0 if free
	tags  []uint32 // by place: part of the hash, so that most comparisons end there
	ends  []int64  // by place: end of its bytes
	first []uint64 // by place: least position it was seen at
	text  []byte
	_     [64]byte // keeps neighbours' locks on other cache lines
}

var errTooManyNames = &graph.InputError{Field: "ids", Found: "2^32 different names or more", Want: "fewer", Fix: "split the graph"}

func newNameTable() *nameTable { return &nameTable{seed: maphash.MakeSeed()} }

// number is the number of a name seen at the given position; false when the
// table is full.
func (t *nameTable) number(name []byte, seen uint64) (uint32, bool) {
	h := maphash.Bytes(t.seed, name)
	at := uint32(h % shards)
	s := &t.shards[at]
	s.mu.Lock()
	defer s.mu.Unlock()
	if 4*(len(s.tags)+1) > 3*len(s.slots) {
		s.grow()
	}
	slot, found := s.look(name, h)
	if found {
		place := s.slots[slot] - 1
		s.first[place] = min(s.first[place], seen)
		return place*shards + at, true
	}
	place := uint32(len(s.tags))
	if place >= 1<<32/shards-1 {
		return 0, false
	}
	s.slots[slot] = place + 1
	s.tags, s.first = append(s.tags, uint32(h>>32)), append(s.first, seen)
	s.text = append(s.text, name...)
	s.ends = append(s.ends, int64(len(s.text)))
	return place*shards + at, true
}

// find is the number of a name that is there.
func (t *nameTable) find(name []byte) (uint32, bool) {
	h := maphash.Bytes(t.seed, name)
	s := &t.shards[h%shards]
	if len(s.slots) == 0 {
		return 0, false
	}
	slot, found := s.look(name, h)
	if !found {
		return 0, false
	}
	return (s.slots[slot]-1)*shards + uint32(h%shards), true
}

// look finds the slot of a name, or the free one where it belongs.
func (s *nameShard) look(name []byte, h uint64) (slot uint32, found bool) {
	mask := uint32(len(s.slots) - 1)
	for slot = uint32(h>>32) & mask; ; slot = (slot + 1) & mask {
		p := s.slots[slot]
		if p == 0 {
			return slot, false
		}
		if s.tags[p-1] == uint32(h>>32) && bytes.Equal(s.name(p-1), name) {
			return slot, true
		}
	}
}

func (s *nameShard) name(place uint32) []byte {
	var start int64
	if place > 0 {
		start = s.ends[place-1]
	}
	return s.text[start:s.ends[place]]
}

// grow doubles the slots. The tag holds all hash bits that choose one.
func (s *nameShard) grow() {
	s.slots = make([]uint32, max(64, 2*len(s.slots)))
	mask := uint32(len(s.slots) - 1)
	for place, tag := range s.tags {
		slot := tag & mask
		for s.slots[slot] != 0 {
			slot = (slot + 1) & mask
		}
		s.slots[slot] = uint32(place) + 1
	}
}

// inOrder lists the names by first appearance, and for each shard and place the
// position in that list.
func (t *nameTable) inOrder() (names []string, to [][]uint32) {
	type entry struct {
		first  uint64
		number uint32
	}
	var all []entry
	to = make([][]uint32, shards)
	for i := range t.shards {
		s := &t.shards[i]
		to[i] = make([]uint32, len(s.tags))
		for place, first := range s.first {
			all = append(all, entry{first, uint32(place)*shards + uint32(i)})
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.first, b.first) })
	names = make([]string, len(all))
	for v, e := range all {
		i, place := e.number%shards, e.number/shards
		to[i][place] = uint32(v)
		names[v] = string(t.shards[i].name(place))
	}
	return names, to
}
