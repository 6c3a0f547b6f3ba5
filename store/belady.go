package store

import "math"

// belady says which rows a cache of a fixed number of rows keeps when the next batches are known: Belady's rule, "A
// study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 1966. The row that is needed
// furthest in the future leaves first. Rows that no known batch needs leave before all others, those that were needed
// least often first. A row that was fetched is kept only if it is needed before a row that would leave for it.
//
// Batches are added in order (add) and planned in order (plan), each when those of the window after it are known. What
// it returns is a function of the lists that were added before, so that a plan made of the same draws is the same. It
// does not look at rows: it is pure.
type belady struct {
	capacity int
	entries  []beladyEntry
	free     []int32  // entries without a vertex
	at       places   // of vertices that are kept, or that a known batch needs
	window   []*needs // added and not planned
	added    int32
	kept     int
	idle     [mostCounted + 1]beladyQueue // rows that no known batch needs, by how often they were needed
	lowest   int                          // of idle: queues below it are empty
	due      []beladyQueue                // rows that the batch next, next+1 … needs
	next     int32
}

// mostCounted bounds how often a row's use is counted.
const mostCounted = 255

// never is the batch that needs a row which no known batch needs.
const never = math.MaxInt32

// beladyEntry is what is known of a vertex.
type beladyEntry struct {
	vertex uint32
	slot   int32  // of its row; -1: it is not kept
	next   int32  // the batch that needs it next
	stamp  uint32 // of its place in a queue; others of it there are old
	wanted int32  // batches of the window that need it
	last   int32  // the last of them, and where it is there
	place  int32
	count  uint8
}

// needs is a batch's distinct rows, and the batch that needs each of them next.
type needs struct {
	entry []int32
	next  []int32
}

// beladyQueue is rows that leave in order; those with an old stamp have moved on.
type beladyQueue struct {
	list []stamped
	head int
}

type stamped struct {
	entry int32
	stamp uint32
}

// planned is where a batch's rows are: slot is of those that the cache has, and -1-k of the one that is missed[k]. Puts
// are those that it keeps after the batch was served, in order: a later one may take an earlier one's slot.
type planned struct {
	slot   []int32
	missed []uint32 // places in the batch's list
	puts   []beladyPut
}

type beladyPut struct {
	place uint32 // among the missed
	slot  int32
}

func newBelady(capacity int) *belady {
	return &belady{capacity: capacity, at: newPlaces()}
}

// add makes the distinct rows of the next batch known.
func (b *belady) add(vertices []uint32) {
	n := &needs{entry: make([]int32, len(vertices)), next: make([]int32, len(vertices))}
	b.window = append(b.window, n)
	for int(b.added-b.next) >= len(b.due) {
		b.due = append(b.due, beladyQueue{})
	}
	for i, v := range vertices {
		x := b.entryOf(v)
		e := &b.entries[x]
		if e.wanted == 0 {
			e.next = b.added
			if e.slot >= 0 {
				b.enqueue(x)
			}
		} else {
			b.window[e.last-b.next].next[e.place] = b.added
		}
		e.wanted++
		e.last, e.place = b.added, int32(i)
		n.entry[i], n.next[i] = x, never
	}
	b.added++
}

func (b *belady) entryOf(v uint32) int32 {
	if x := b.at.find(v); x >= 0 {
		return x
	}
	x := int32(len(b.entries))
	if last := len(b.free) - 1; last >= 0 {
		x, b.free = b.free[last], b.free[:last]
	} else {
		b.entries = append(b.entries, beladyEntry{})
	}
	b.entries[x] = beladyEntry{vertex: v, slot: -1, next: never, stamp: b.entries[x].stamp + 1}
	b.at.put(v, x)
	return x
}

// enqueue puts a row that is kept where it leaves from.
func (b *belady) enqueue(x int32) {
	e := &b.entries[x]
	e.stamp++
	q := &b.idle[e.count]
	if e.next != never {
		q = &b.due[e.next-b.next]
	} else if len(q.list) > 2*b.capacity+1024 {
		b.compact(q)
	}
	if e.next == never {
		b.lowest = min(b.lowest, int(e.count))
	}
	q.list = append(q.list, stamped{x, e.stamp})
}

// compact takes out what has moved on.
func (b *belady) compact(q *beladyQueue) {
	left := q.list[:0]
	for _, s := range q.list[q.head:] {
		if b.entries[s.entry].stamp == s.stamp {
			left = append(left, s)
		}
	}
	q.list, q.head = left, 0
}

// plan serves the first batch of the window.
func (b *belady) plan() *planned {
	n := b.window[0]
	b.window = b.window[1:]
	b.next++
	b.due = append(b.due[1:], beladyQueue{})
	p := &planned{slot: make([]int32, len(n.entry))}
	for i, x := range n.entry {
		e := &b.entries[x]
		e.wanted--
		e.next = n.next[i]
		e.count = min(e.count, mostCounted-1) + 1
		if p.slot[i] = e.slot; e.slot >= 0 {
			b.enqueue(x)
		} else {
			p.missed = append(p.missed, uint32(i))
			p.slot[i] = -int32(len(p.missed))
		}
	}
	for k, i := range p.missed {
		x := n.entry[i]
		if slot := b.place(x); slot >= 0 {
			b.entries[x].slot = slot
			b.enqueue(x)
			p.puts = append(p.puts, beladyPut{uint32(k), slot})
			continue
		}
		b.forget(x)
	}
	return p
}

// place is a slot for a row, whose row leaves; -1: all that are kept are worth more.
func (b *belady) place(x int32) int32 {
	if b.kept < b.capacity {
		b.kept++
		return int32(b.kept - 1)
	}
	q := b.worst()
	if q == nil {
		return -1
	}
	old := q.list[q.head].entry
	o, e := &b.entries[old], &b.entries[x]
	if o.next < e.next || o.next == e.next && (o.next != never || o.count >= e.count) {
		return -1
	}
	q.head++
	slot := o.slot
	o.slot = -1
	o.stamp++
	b.forget(old)
	return slot
}

// worst is the queue whose first row leaves next; nil: nothing is kept.
func (b *belady) worst() *beladyQueue {
	for ; b.lowest < len(b.idle); b.lowest++ {
		if b.first(&b.idle[b.lowest]) {
			return &b.idle[b.lowest]
		}
	}
	for i := len(b.due) - 1; i >= 0; i-- {
		if b.first(&b.due[i]) {
			return &b.due[i]
		}
	}
	return nil
}

// first brings a queue to its first row that has not moved on, if it has one.
func (b *belady) first(q *beladyQueue) bool {
	for ; q.head < len(q.list); q.head++ {
		if s := q.list[q.head]; b.entries[s.entry].stamp == s.stamp {
			return true
		}
	}
	q.list, q.head = q.list[:0], 0
	return false
}

// forget lets go of a vertex that is neither kept nor needed by a known batch.
func (b *belady) forget(x int32) {
	e := &b.entries[x]
	if e.slot >= 0 || e.wanted > 0 {
		return
	}
	b.at.remove(e.vertex)
	b.free = append(b.free, x)
}
