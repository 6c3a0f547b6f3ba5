package store

import (
	"sync"
	"sync/atomic"
)

// Cache keeps rows of features that other hosts own. A cache never changes a result: rows of
// features do not change. It may be used by several goroutines.
type Cache interface {
	// get copies the row of a vertex to row and reports whether it is there.
	get(v uint32, row []byte) bool
	// put offers a row that was pulled.
	put(v uint32, row []byte)
}

// Caches are the names of cache policies; of belady, see Lookahead.
var Caches = []string{"none", "probability", "degree", "frequency", "s3fifo", "belady"}

// counted counts how often a cache had what was asked for.
type counted struct {
	Cache
	hits, misses atomic.Int64
}

// take copies the rows that are there, and returns the places of the others.
func (c *counted) take(to []byte, width int, numbers, places []uint32) []uint32 {
	if c == nil {
		return places
	}
	left := places[:0]
	all := int64(len(places))
	for _, i := range places {
		if !c.get(numbers[i], to[int(i)*width:(int(i)+1)*width]) {
			left = append(left, i)
		}
	}
	c.hits.Add(all - int64(len(left)))
	c.misses.Add(int64(len(left)))
	return left
}

// keep offers rows that were pulled.
func (c *counted) keep(rows []byte, width int, numbers, places []uint32) {
	if c == nil {
		return
	}
	for _, i := range places {
		c.put(numbers[i], rows[int(i)*width:(int(i)+1)*width])
	}
}

// static keeps the rows of vertices that were chosen beforehand and pulled before it is used.
type static struct {
	width int
	slot  rowTable // never changes
	rows  []byte
}

// newStatic makes place for rows, in the order of their vertices.
func newStatic(vertices []uint32, width int) *static {
	s := &static{width: width, rows: make([]byte, len(vertices)*width)}
	s.slot.begin()
	list := make([]uint32, 0, len(vertices))
	for _, v := range vertices {
		_, list = s.slot.add(list, v)
	}
	return s
}

func (s *static) get(v uint32, row []byte) bool {
	i, ok := s.slot.find(v)
	if ok {
		copy(row, s.rows[int(i)*s.width:(int(i)+1)*s.width])
	}
	return ok
}

func (s *static) put(uint32, []byte) {}

// s3fifo evicts by S3-FIFO (Yang et al., "FIFO queues are all you need for cache eviction",
// SOSP 2023): new rows enter a small queue, a tenth of the cache; those that are asked for
// again before they leave it move to the main queue, others leave a note of their number, and
// one whose number is noted enters the main queue at once. The main queue gives a row that was
// asked for since another round.
type s3fifo struct {
	width, small, main int // rows

	mu struct {
		sync.Mutex
		entry         map[uint32]*s3entry
		smallQ, mainQ queue
		noted         map[uint32]bool
		notedQ        queue
		rows          []byte
		free          []int // slots
	}
}

type s3entry struct {
	slot int
	freq uint8 // times it was asked for, up to 3
	main bool
}

// queue is first in, first out.
type queue struct {
	list []uint32
	head int
}

func (q *queue) push(v uint32) { q.list = append(q.list, v) }

func (q *queue) pop() uint32 {
	v := q.list[q.head]
	if q.head++; q.head > 1024 && 2*q.head > len(q.list) {
		q.list = append(q.list[:0], q.list[q.head:]...)
		q.head = 0
	}
	return v
}

func (q *queue) len() int { return len(q.list) - q.head }

func newS3FIFO(rows, width int) *s3fifo {
	s := &s3fifo{width: width, small: max(1, rows/10)}
	s.main = max(1, rows-s.small)
	s.mu.entry, s.mu.noted = map[uint32]*s3entry{}, map[uint32]bool{}
	s.mu.rows = make([]byte, (s.small+s.main)*width)
	for i := range s.small + s.main {
		s.mu.free = append(s.mu.free, i)
	}
	return s
}

func (s *s3fifo) get(v uint32, row []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.mu.entry[v]
	if e == nil {
		return false
	}
	e.freq = min(e.freq+1, 3)
	copy(row, s.mu.rows[e.slot*s.width:(e.slot+1)*s.width])
	return true
}

func (s *s3fifo) put(v uint32, row []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.entry[v] != nil {
		return
	}
	for len(s.mu.free) == 0 {
		s.evict()
	}
	last := len(s.mu.free) - 1
	e := &s3entry{slot: s.mu.free[last], main: s.mu.noted[v]}
	s.mu.free = s.mu.free[:last]
	copy(s.mu.rows[e.slot*s.width:(e.slot+1)*s.width], row)
	s.mu.entry[v] = e
	if e.main {
		s.mu.mainQ.push(v)
	} else {
		s.mu.smallQ.push(v)
	}
}

// evict makes progress towards a free slot. REQUIRES: mu held, and the cache is full.
func (s *s3fifo) evict() {
	if s.mu.smallQ.len() >= s.small || s.mu.mainQ.len() == 0 {
		v := s.mu.smallQ.pop()
		e := s.mu.entry[v]
		if e.freq > 0 {
			e.freq, e.main = 0, true
			s.mu.mainQ.push(v)
			return
		}
		s.note(v)
		s.drop(v, e)
		return
	}
	v := s.mu.mainQ.pop()
	if e := s.mu.entry[v]; e.freq > 0 {
		e.freq--
		s.mu.mainQ.push(v)
	} else {
		s.drop(v, e)
	}
}

func (s *s3fifo) drop(v uint32, e *s3entry) {
	s.mu.free = append(s.mu.free, e.slot)
	delete(s.mu.entry, v)
}

// note remembers the number of a row that left the small queue. It keeps one number per row of the main queue.
func (s *s3fifo) note(v uint32) {
	if s.mu.noted[v] {
		return
	}
	s.mu.noted[v] = true
	s.mu.notedQ.push(v)
	for s.mu.notedQ.len() > s.main {
		delete(s.mu.noted, s.mu.notedQ.pop())
	}
}
