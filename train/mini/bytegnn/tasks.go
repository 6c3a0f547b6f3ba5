package bytegnn

import (
	"cmp"
	"container/heap"
	"sync"
)

// task is a part of the sampling of a batch that computes. Tasks of an older batch run first,
// and of one batch the cheaper: ByteGNN's fine order.
type task struct {
	dag  int64 // numbered as launched
	cost int64
	run  func(lane int)
	made uint64
}

func before(a, b *task) bool {
	return cmp.Or(cmp.Compare(a.dag, b.dag), cmp.Compare(a.cost, b.cost), cmp.Compare(a.made, b.made)) < 0
}

type taskHeap []*task

func (h taskHeap) Len() int           { return len(h) }
func (h taskHeap) Less(i, j int) bool { return before(h[i], h[j]) }
func (h taskHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *taskHeap) Push(x any)        { *h = append(*h, x.(*task)) }
func (h *taskHeap) Pop() any {
	last := len(*h) - 1
	t := (*h)[last]
	*h = (*h)[:last]
	return t
}

// taskQueue runs tasks on some threads, in their order.
type taskQueue struct {
	mu struct {
		sync.Mutex
		ready  taskHeap
		made   uint64
		closed bool
	}
	more    *sync.Cond
	wg      sync.WaitGroup
	threads int
}

// firstLane is the lane of the first thread in a trace.
const firstLane = 2

func newTaskQueue(threads int) *taskQueue {
	q := &taskQueue{threads: threads}
	q.more = sync.NewCond(&q.mu)
	for i := range threads {
		q.wg.Go(func() { q.work(firstLane + i) })
	}
	return q
}

// put makes a task ready.
func (q *taskQueue) put(dag, cost int64, run func(lane int)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.mu.made++
	heap.Push(&q.mu.ready, &task{dag: dag, cost: cost, run: run, made: q.mu.made})
	q.more.Signal()
}

func (q *taskQueue) work(lane int) {
	for {
		q.mu.Lock()
		for len(q.mu.ready) == 0 && !q.mu.closed {
			q.more.Wait()
		}
		if q.mu.closed {
			q.mu.Unlock()
			return
		}
		t := heap.Pop(&q.mu.ready).(*task)
		q.mu.Unlock()
		t.run(lane)
	}
}

// close ends the threads after the tasks that they run. Tasks that are ready are forgotten.
func (q *taskQueue) close() {
	q.mu.Lock()
	q.mu.closed = true
	q.mu.Unlock()
	q.more.Broadcast()
	q.wg.Wait()
}
