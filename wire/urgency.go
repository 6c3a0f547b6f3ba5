package wire

import (
	"container/heap"

	"starling/coflow"
)

// urgency is a priority queue: the first is the most urgent in an order of coflows, and of
// those that are equal in it the one that was put first.
type urgency[T queued] struct {
	order coflow.Order
	list  []T
	count uint64 // of those put so far
}

// queued is what can be in an urgency.
type queued interface{ turn() *turn }

// turn is when something in an urgency is next.
type turn struct {
	coflow coflow.ID
	order  uint64 // of putting
	at     int    // in the list, from 1; 0: it is in none
}

func (u *urgency[T]) put(x T, id coflow.ID) {
	u.count++
	t := x.turn()
	t.coflow, t.order = id, u.count
	heap.Push((*urgencyHeap[T])(u), x)
}

// putBack puts what was taken where it was.
func (u *urgency[T]) putBack(x T) { heap.Push((*urgencyHeap[T])(u), x) }

func (u *urgency[T]) empty() bool { return len(u.list) == 0 }

// first is the next to be taken. REQUIRES: not empty.
func (u *urgency[T]) first() T { return u.list[0] }

// take takes out the first. REQUIRES: not empty.
func (u *urgency[T]) take() T { return heap.Pop((*urgencyHeap[T])(u)).(T) }

// remove takes out x, if it is in the queue.
func (u *urgency[T]) remove(x T) bool {
	at := x.turn().at - 1
	if at < 0 || at >= len(u.list) || u.list[at].turn() != x.turn() {
		return false
	}
	heap.Remove((*urgencyHeap[T])(u), at)
	return true
}

// clear takes out all, in no order.
func (u *urgency[T]) clear() []T {
	all := u.list
	u.list = nil
	for _, x := range all {
		x.turn().at = 0
	}
	return all
}

// urgencyHeap is an urgency as package heap sees it.
type urgencyHeap[T queued] urgency[T]

func (u *urgencyHeap[T]) Len() int { return len(u.list) }

func (u *urgencyHeap[T]) Less(i, j int) bool {
	a, b := u.list[i].turn(), u.list[j].turn()
	if u.order.Before(a.coflow, b.coflow) {
		return true
	}
	return a.order < b.order && !u.order.Before(b.coflow, a.coflow)
}

func (u *urgencyHeap[T]) Swap(i, j int) {
	u.list[i], u.list[j] = u.list[j], u.list[i]
	u.list[i].turn().at, u.list[j].turn().at = i+1, j+1
}

func (u *urgencyHeap[T]) Push(x any) {
	u.list = append(u.list, x.(T))
	x.(T).turn().at = len(u.list)
}

func (u *urgencyHeap[T]) Pop() any {
	var none T
	last := len(u.list) - 1
	x := u.list[last]
	u.list[last] = none
	u.list = u.list[:last]
	x.turn().at = 0
	return x
}
