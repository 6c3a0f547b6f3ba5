package multilevel

import (
	"math"
	"math/bits"
)

// bucketQueue is a priority queue of vertices by gain, largest first, and of equals the one
// inserted last: successive moves then stay in one region.
//
// L. Hagen, D. Huang, A. Kahng: On implementation choices for iterative improvement
// partitioning algorithms, 1997.
//
// It is an array of linked lists. Gains up to exactGains have lists of their own; larger ones
// share a list with others that differ by less than a sixteenth.
type bucketQueue struct {
	head [2*zeroBucket + 1]uint32         // by list: the vertex in front, plus one
	full [(2*zeroBucket + 64) / 64]uint64 // by list: a bit, set if it is not empty
	node []queueNode                      // by vertex
	size int
}

// queueNode is the position of a vertex.
type queueNode struct {
	next, prev uint32 // in its list, a ring, plus one
	list       uint32 // plus one; 0: not in the queue
}

const (
	exactGains = 32
	zeroBucket = exactGains + 26*exactGains/2 // the list of gain zero
)

// clampGain is a gain as a key of the queue.
func clampGain(gain int64) int32 { return int32(max(min(gain, math.MaxInt32), -math.MaxInt32)) }

// bucketOf is the list of a gain.
func bucketOf(key int32) uint32 {
	size := uint32(max(key, -key))
	if size >= exactGains {
		octave := bits.Len32(size) - 6
		size = uint32(octave*exactGains/2) + size>>(octave+1) + exactGains/2
	}
	if key < 0 {
		return zeroBucket - size
	}
	return zeroBucket + size
}

// reset empties the queue; node is zero and has an element for every vertex.
func (q *bucketQueue) reset(node []queueNode) {
	q.head, q.full, q.size = [len(q.head)]uint32{}, [len(q.full)]uint64{}, 0
	q.node = node
}

func (q *bucketQueue) has(v uint32) bool { return q.node[v].list != 0 }

func (q *bucketQueue) len() int { return q.size }

func (q *bucketQueue) clear() {
	for i, word := range q.full {
		for ; word != 0; word &= word - 1 {
			front := &q.head[i*64+bits.TrailingZeros64(word)]
			for v := *front; q.node[v-1].list != 0; v = q.node[v-1].next {
				q.node[v-1].list = 0
			}
			*front = 0
		}
		q.full[i] = 0
	}
	q.size = 0
}

// top is the list of the largest gain.
func (q *bucketQueue) top() uint32 {
	i := len(q.full) - 1
	for q.full[i] == 0 {
		i--
	}
	return uint32(i*64 + bits.Len64(q.full[i]) - 1)
}

// above reports whether a vertex in the queue has a larger gain than key.
func (q *bucketQueue) above(key int32) bool { return q.size > 0 && q.top() > bucketOf(key) }

// set inserts v, or changes its key.
func (q *bucketQueue) set(v uint32, key int32) {
	list := bucketOf(key)
	n := &q.node[v]
	if n.list == list+1 {
		return
	}
	if n.list != 0 {
		q.remove(v)
	}
	n.list = list + 1
	q.size++
	front := q.head[list]
	if front == 0 {
		q.full[list/64] |= 1 << (list % 64)
		q.head[list], n.next, n.prev = v+1, v+1, v+1
		return
	}
	back := q.node[front-1].prev
	n.next, n.prev = front, back
	q.node[back-1].next, q.node[front-1].prev = v+1, v+1
	q.head[list] = v + 1
}

func (q *bucketQueue) pop() uint32 {
	v := q.head[q.top()] - 1
	q.remove(v)
	return v
}

func (q *bucketQueue) remove(v uint32) {
	n := &q.node[v]
	if n.list == 0 {
		return
	}
	list := n.list - 1
	n.list = 0
	q.size--
	if n.next == v+1 { // the only one
		q.head[list] = 0
		q.full[list/64] &^= 1 << (list % 64)
		return
	}
	q.node[n.next-1].prev, q.node[n.prev-1].next = n.prev, n.next
	if q.head[list] == v+1 {
		q.head[list] = n.next
	}
}
