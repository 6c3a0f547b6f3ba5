package partition

import (
	"math"
	"math/bits"
)

// mlQueue holds vertices by gain, largest first, and of equals the one that came last:
// moves then follow one another in one place instead of nibbling everywhere.
//
// L. Hagen, D. Huang, A. Kahng: On implementation choices for iterative improvement
// partitioning algorithms, 1997.
//
// It is an array of lists. Gains up to mlExact have lists of their own, those beyond
// share one with others that differ by less than a sixteenth.
type mlQueue struct {
	head [2*mlMiddle + 1]uint32         // by list: the vertex in front, plus one
	full [(2*mlMiddle + 64) / 64]uint64 // by list: a bit, set if it is not empty
	node []mlNode                       // by vertex
	size int
}

// mlNode is a vertex's place.
type mlNode struct {
	next, prev uint32 // in its list, a ring, plus one
	list       uint32 // plus one; 0: not in the queue
}

const (
	mlExact  = 32
	mlMiddle = mlExact + 26*mlExact/2 // the list of gain zero
)

// mlKey is a gain as queues know it.
func mlKey(gain int64) int32 { return int32(max(min(gain, math.MaxInt32), -math.MaxInt32)) }

// mlList is the list of a gain.
func mlList(key int32) uint32 {
	size := uint32(max(key, -key))
	if size >= mlExact {
		octave := bits.Len32(size) - 6
		size = uint32(octave*mlExact/2) + size>>(octave+1) + mlExact/2
	}
	if key < 0 {
		return mlMiddle - size
	}
	return mlMiddle + size
}

// reset empties the queue; node is zero and has room for every vertex.
func (q *mlQueue) reset(node []mlNode) {
	q.head, q.full, q.size = [len(q.head)]uint32{}, [len(q.full)]uint64{}, 0
	q.node = node
}

func (q *mlQueue) has(v uint32) bool { return q.node[v].list != 0 }

func (q *mlQueue) len() int { return q.size }

func (q *mlQueue) clear() {
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

// top is the first list that is not empty.
func (q *mlQueue) top() uint32 {
	i := len(q.full) - 1
	for q.full[i] == 0 {
		i--
	}
	return uint32(i*64 + bits.Len64(q.full[i]) - 1)
}

// above tells whether somebody in the queue has more than key.
func (q *mlQueue) above(key int32) bool { return q.size > 0 && q.top() > mlList(key) }

// set inserts v, or changes its key.
func (q *mlQueue) set(v uint32, key int32) {
	list := mlList(key)
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

func (q *mlQueue) pop() uint32 {
	v := q.head[q.top()] - 1
	q.remove(v)
	return v
}

func (q *mlQueue) remove(v uint32) {
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
