package wire

import (
	"container/heap"
	"sync"
	"sync/atomic"

	"starling/coflow"
)

// message is one to be sent.
type message struct {
	header
	payload []byte
	pending *Pending

	// Guarded by the lock of the queue it is in.
	order  uint64 // in which it came
	next   int64  // the first byte that no chunk has
	flying int    // chunks being written
	cut    bool   // no more chunks will be taken
	failed error  // meanwhile: whoever is writing ends the wait
}

// chunk is a piece of a message, being written.
type chunk struct {
	m      *message
	offset int64
	bytes  []byte
}

// header is the chunk's, without its checksum.
func (c *chunk) header() header {
	h := c.m.header
	h.offset, h.chunk = c.offset, len(c.bytes)
	return h
}

// ending is how a queue ends.
type ending uint8

const (
	open    ending = iota
	parting        // what is queued still leaves
	broken         // nothing leaves any more
)

// sendQueue holds the messages to one peer, the most urgent coflow first. It is
// asked again for every chunk, so an urgent message overtakes a large one that is
// under way.
type sendQueue struct {
	sync.Mutex
	wake  sync.Cond
	aside sync.Cond // for connections after the first, while the link is slow
	slow  bool
	heap  urgency
	order uint64
	state ending
	cause error // of broken, and of messages that come too late
	// flying is how many chunks are being written; count how many messages wait,
	// to be looked at without the lock.
	flying int
	count  atomic.Int32
	// quiet: whoever puts a message also sends it, so nobody is woken.
	quiet bool
}

func newSendQueue() *sendQueue {
	q := &sendQueue{}
	q.wake.L, q.aside.L = &q.Mutex, &q.Mutex
	return q
}

// wakeAll tells whoever sends that the queue ends, or that the link is another.
// REQUIRES: the lock held.
func (q *sendQueue) wakeAll() {
	q.wake.Broadcast()
	q.aside.Broadcast()
}

// put adds a message; it fails at once if the queue has ended.
func (q *sendQueue) put(m *message) {
	q.Lock()
	defer q.Unlock()
	if q.state != open {
		m.pending.finish(q.cause)
		return
	}
	q.order++
	m.order = q.order
	heap.Push(&q.heap, m)
	q.count.Add(1)
	if !q.quiet {
		q.wake.Signal()
	}
}

// waiting says whether any message has chunks to be taken.
func (q *sendQueue) waiting() bool { return q.count.Load() > 0 }

// take cuts the next chunk, of at most max bytes.
// REQUIRES: the lock held, and the queue not empty.
func (q *sendQueue) take(max int) chunk {
	m := q.heap[0]
	n := min(int64(max), m.length-m.next)
	c := chunk{m: m, offset: m.next, bytes: m.payload[m.next : m.next+n]}
	m.next += n
	m.flying++
	q.flying++
	if m.next == m.length {
		m.cut = true
		heap.Pop(&q.heap)
		q.count.Add(-1)
	}
	return c
}

// written says that a chunk has left, or failed to.
// REQUIRES: the lock held.
func (q *sendQueue) written(c *chunk, err error) {
	m := c.m
	m.flying--
	q.flying--
	if q.state != open {
		q.wakeAll() // whoever waits for the last to leave
	}
	if err != nil && m.failed == nil {
		m.failed = err
	}
	if m.cut && m.flying == 0 {
		m.pending.finish(m.failed)
	}
}

// end stops the queue: parting lets what is queued leave, broken does not. Those
// whose buffers are being written from end when that has stopped.
func (q *sendQueue) end(state ending, cause error) {
	q.Lock()
	defer q.Unlock()
	if state <= q.state {
		return
	}
	q.state, q.cause = state, cause
	q.wakeAll()
	if state != broken {
		return
	}
	for _, m := range q.heap {
		m.cut = true
		m.failed = cause
		if m.flying == 0 {
			m.pending.finish(cause)
		}
	}
	q.heap = nil
	q.count.Store(0)
}

// urgency is a heap of messages, in the order of coflows and then as they came.
type urgency []*message

func (u urgency) Len() int { return len(u) }

func (u urgency) Less(i, j int) bool {
	a, b := u[i], u[j]
	if coflow.Before(a.key.Coflow, b.key.Coflow) {
		return true
	}
	return a.order < b.order && !coflow.Before(b.key.Coflow, a.key.Coflow)
}

func (u urgency) Swap(i, j int) { u[i], u[j] = u[j], u[i] }

func (u *urgency) Push(m any) { *u = append(*u, m.(*message)) }

func (u *urgency) Pop() any {
	last := len(*u) - 1
	m := (*u)[last]
	(*u)[last] = nil
	*u = (*u)[:last]
	return m
}
