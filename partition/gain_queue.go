package partition

import "slices"

// gainQueue is a heap of the numbers 0 to n-1, each at most once, by a bound of what moving it gains: the greatest
// first, of equals the first number.
type gainQueue struct {
	heap  []uint32
	at    []int32 // where a number is in the heap; -1: nowhere
	bound []int32
}

// grow empties the queue, for numbers below n.
func (q *gainQueue) grow(n int) {
	q.heap = slices.Grow(q.heap[:0], n)
	q.at = slices.Grow(q.at[:0], n)[:n]
	q.bound = slices.Grow(q.bound[:0], n)[:n]
	q.clear()
}

func (q *gainQueue) clear() {
	q.heap = q.heap[:0]
	for i := range q.at {
		q.at[i] = -1
	}
}

func (q *gainQueue) empty() bool         { return len(q.heap) == 0 }
func (q *gainQueue) has(x uint32) bool   { return q.at[x] >= 0 }
func (q *gainQueue) top() int32          { return q.bound[q.heap[0]] }
func (q *gainQueue) put(i int, x uint32) { q.heap[i], q.at[x] = x, int32(i) }

// before tells whether x comes before y.
func (q *gainQueue) before(x, y uint32) bool {
	return q.bound[x] > q.bound[y] || q.bound[x] == q.bound[y] && x < y
}

// raise puts x into the queue, or gives it a greater bound.
func (q *gainQueue) raise(x uint32, bound int32) {
	q.bound[x] = bound
	i := int(q.at[x])
	if i < 0 {
		i = len(q.heap)
		q.heap = append(q.heap, x)
	}
	for i > 0 {
		up := (i - 1) / 2
		y := q.heap[up]
		if !q.before(x, y) {
			break
		}
		q.put(i, y)
		i = up
	}
	q.put(i, x)
}

// pop takes out the first.
func (q *gainQueue) pop() (x uint32, bound int32) {
	x = q.heap[0]
	q.at[x] = -1
	n := len(q.heap) - 1
	last := q.heap[n]
	q.heap = q.heap[:n]
	if n == 0 {
		return x, q.bound[x]
	}
	i := 0
	for {
		down := 2*i + 1
		if down+1 < n && q.before(q.heap[down+1], q.heap[down]) {
			down++
		}
		if down >= n || !q.before(q.heap[down], last) {
			break
		}
		q.put(i, q.heap[down])
		i = down
	}
	q.put(i, last)
	return x, q.bound[x]
}
