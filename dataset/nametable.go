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
	slots []nameSlot // open addressing
	used  uint32
	text  []byte   // the names, a line each
	_     [64]byte // keeps neighbours' locks on other cache lines
}

// nameSlot holds all there is to know of a name but its bytes: most look-ups miss
// the cache, so they should do it once here and once there.
type nameSlot struct {
	tag   uint32 // part of the hash
	place uint32 // 1 + number within the shard; 0: free
	start int64  // of its line in text
	first uint64 // least position it was seen at
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
	if 4*int(s.used+1) > 3*len(s.slots) {
		s.grow()
	}
	slot, found := s.look(name, h)
	if !found {
		if s.used >= 1<<32/shards-1 {
			return 0, false
		}
		s.used++
		*slot = nameSlot{uint32(h >> 32), s.used, int64(len(s.text)), seen}
		s.text = append(append(s.text, name...), '\n')
	}
	slot.first = min(slot.first, seen)
	return (slot.place-1)*shards + at, true
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
	return (slot.place-1)*shards + uint32(h%shards), true
}

// look finds the slot of a name, or the free one where it belongs.
func (s *nameShard) look(name []byte, h uint64) (slot *nameSlot, found bool) {
	mask, tag := uint32(len(s.slots)-1), uint32(h>>32)
	for at := tag & mask; ; at = (at + 1) & mask {
		slot = &s.slots[at]
		if slot.place == 0 {
			return slot, false
		}
		if slot.tag == tag && s.is(slot.start, name) {
			return slot, true
		}
	}
}

// is compares a line of text with a name, which has no line break inside.
func (s *nameShard) is(start int64, name []byte) bool {
	line := s.text[start:]
	return len(line) > len(name) && line[len(name)] == '\n' && string(line[:len(name)]) == string(name)
}

// grow doubles the slots. The tag holds all hash bits that choose one.
func (s *nameShard) grow() {
	old := s.slots
	s.slots = make([]nameSlot, max(64, 2*len(old)))
	mask := uint32(len(s.slots) - 1)
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

// inOrder lists the names by first appearance, and for each shard and place the
// position in that list.
func (t *nameTable) inOrder() (names []string, to [][]uint32) {
	type entry struct {
		first         uint64
		start         int64
		shard, number uint32
	}
	var all []entry
	to = make([][]uint32, shards)
	for i := range t.shards {
		s := &t.shards[i]
		to[i] = make([]uint32, s.used)
		for _, x := range s.slots {
			if x.place != 0 {
				all = append(all, entry{x.first, x.start, uint32(i), x.place - 1})
			}
		}
	}
	slices.SortFunc(all, func(a, b entry) int { return cmp.Compare(a.first, b.first) })
	names = make([]string, len(all))
	for v, e := range all {
		to[e.shard][e.number] = uint32(v)
		line := t.shards[e.shard].text[e.start:]
		names[v] = string(line[:bytes.IndexByte(line, '\n')])
	}
	return names, to
}
