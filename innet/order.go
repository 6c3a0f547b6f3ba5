package innet

import "container/heap"

// Order is the order in which vertices of a graph are sent (§3.2.2): breadth first, so that
// rows of one aggregator leave close together, and among the vertices that were reached
// those with more neighbours first, so that few sums are left to finish at once; first in,
// first out among equals. A component is begun at its vertex of most neighbours.
//
// ptr and adj are the graph's edges in both directions.
func Order(ptr, adj []uint32) []uint32 {
	n := len(ptr) - 1
	degree := func(v uint32) uint32 { return ptr[v+1] - ptr[v] }
	order, seen := make([]uint32, 0, n), make([]bool, n)
	var queue reached
	enqueue := func(v uint32) {
		if !seen[v] {
			seen[v] = true
			heap.Push(&queue, vertexAt{v, degree(v), queue.count})
			queue.count++
		}
	}
	for _, root := range byDegree(n, degree) {
		for enqueue(root); len(queue.list) > 0; {
			v := heap.Pop(&queue).(vertexAt).vertex
			order = append(order, v)
			for _, u := range adj[ptr[v]:ptr[v+1]] {
				enqueue(u)
			}
		}
	}
	return order
}

// byDegree returns the vertices, by descending number of neighbours, equal ones by number.
func byDegree(n int, degree func(v uint32) uint32) []uint32 {
	most := uint32(0)
	for v := range uint32(n) {
		most = max(most, degree(v))
	}
	at := make([]uint32, most+2) // at[i]: where vertices of most-i+1 neighbours begin
	for v := range uint32(n) {
		at[most-degree(v)+1]++
	}
	for i := range most {
		at[i+1] += at[i]
	}
	out := make([]uint32, n)
	for v := range uint32(n) {
		slot := &at[most-degree(v)]
		out[*slot] = v
		*slot++
	}
	return out
}

// reached is the queue of vertices that have been reached.
type reached struct {
	list  []vertexAt
	count uint32
}

type vertexAt struct{ vertex, degree, order uint32 }

func (r *reached) Len() int      { return len(r.list) }
func (r *reached) Swap(i, j int) { r.list[i], r.list[j] = r.list[j], r.list[i] }
func (r *reached) Push(x any)    { r.list = append(r.list, x.(vertexAt)) }

func (r *reached) Less(i, j int) bool {
	a, b := r.list[i], r.list[j]
	return a.degree > b.degree || a.degree == b.degree && a.order < b.order
}

func (r *reached) Pop() any {
	last := len(r.list) - 1
	x := r.list[last]
	r.list = r.list[:last]
	return x
}
